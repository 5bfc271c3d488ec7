"""`quorate certs`: certificates for deployments that have no authority of their own.

command.py has the commands. One directory holds the authority and what it has issued
(`quorum/secured/authority_dir.py`). Keys have mode 0600, directories 0700.
"""
