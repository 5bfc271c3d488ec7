"""The rights, credentials and quotas of clients.

- acls.py, scram_credentials.py, client_quotas.py: the requests that change them.
- authorized.py: the decision of a client's request under the permissions of the client.
"""
