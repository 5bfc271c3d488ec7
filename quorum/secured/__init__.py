"""The files of a cluster with TLS, logins and ACLs, which one directory holds.

`quorate up --secure` and `LocalCluster(secure=True)` make them, so that tests meet what operators
run. `quorate certs` makes the certificates of other deployments with the same code.

Files in reading order:

- private_files.py: files and directories without access for other users.
- authority_dir.py: a certificate authority, and what it has issued.
- secured_dir.py: the files and settings of a whole cluster.
"""
