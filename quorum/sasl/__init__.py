"""SASL: clients prove their identity (KIP-43, KIP-84, KIP-152, KIP-368). All modules are pure.

- request_order.py: the rule of every frame of a connection that must authenticate
- exchange.py, mechanisms.py: one authentication, and the enabled mechanisms of a listener
- plain.py, scram_server.py, scram_client.py, scram_messages.py: PLAIN, and both ends of SCRAM
- scram_mechanisms.py: the mechanisms, and the keys of a credential
- oauthbearer.py, oauthbearer_messages.py: OAUTHBEARER. bearer_token.py: its result.
- token_signature.py, key_set.py, token_claims.py: the signature of a token, the keys of its
  provider, and its claims. Only the shell of a listener with OAUTHBEARER imports the first two,
  because they import PyJWT and cryptography.
- session.py: the lifetime of a session
- unknown_users.py, random_text.py: credentials for users that do not exist; salts and nonces
"""
