"""SASL: clients prove their identity (KIP-43, KIP-84, KIP-152, KIP-368). All modules are pure.

- scram_mechanisms.py: the mechanisms, and the keys of a credential
- unknown_users.py, random_text.py: credentials for users that do not exist; salts and nonces
"""
