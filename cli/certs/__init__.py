"""`quorate certs`: certificates for deployments that have no authority of their own.

One directory holds the authority and what it has issued. Keys have mode 0600, directories 0700.

- command.py: the commands.
- authority_dir.py: the files of the directory, and their replacement.
"""
