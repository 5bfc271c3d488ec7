"""TLS of listening ports: our own protocol over OpenSSL's memory buffers.

Connections to other nodes use asyncio's own TLS.

asyncio's own TLS reports a connection only after its handshake, so that the limits of connections
cannot see a client that never finishes one. uvloop's `start_tls` loses the first bytes of some
clients. Here a connection exists from accept on, and both event loops behave alike.

Decisions:

- The protocol of the port (`transport.py`) runs unchanged on a `TlsTransport`, which encrypts. The
  bounds of its connections therefore hold from accept on.
- Handshakes cost about a millisecond of CPU each. They run in slices of the event loop, in the
  order in which the clients' bytes arrived (`handshakes.py`).
- A connection has HANDSHAKE_TIMEOUT_S from accept until its handshake is complete.
- A failed handshake closes its connection, with one bounded log line and a counter.
- The peer's certificate gives the link its identity (`identity.py`).
- `cryptography` reads certificates and PKCS12 files. It is imported when a node has TLS.

Files in reading order:

- `listener_tls.py`: the TLS of one listener: its context, counters and log.
- `tls_protocol.py`: one connection: handshake and decryption; `tls_transport.py`: encryption.
- `handshakes.py`: the order and slices of handshakes; `handshake_errors.py`: their reasons.
- `settings.py`: the settings of one listener; `stores.py`: keystores and truststores; `context.py`:
  the SSLContext that they make.
- `identity.py`, `distinguished_name.py`: from a certificate to a principal.
- `dialing_transport.py`: TLS for the connections that a node opens.
- `issuing.py`: makes certificate authorities and certificates.
"""
