"""The key set of a token provider, read again and again while a broker runs (KIP-768).

- source.py: one read of the key set, from an https endpoint or a file. Its time and size are
  bounded.
- refresher.py: the task that reads it, its retries, and the keys in use.

Only brokers with a listener for OAUTHBEARER import these modules.
"""
