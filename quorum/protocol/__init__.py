"""Kafka's protocol without connections: messages, codecs, headers and error codes.

The package is pure: it does no I/O, so every other package may import it. It decides nothing about
the cluster. It bounds every field of a request or stored record; a reader of a field without a
bound does not compile.

Inputs and outputs: the bytes of a request, a response or a metadata record, and the dataclasses
that declare them.

Files in reading order:

- `wire.py` is the declaration of a message, `schemas/` the messages, and `field_bounds.py` their
  bounds.
- `layout.py` plans the fields of one version. `reader_compiler.py`,
  `incremental_reader_compiler.py` and `writer_compiler.py` turn the plan into Python code, which
  `code_builder.py` compiles.
- `codec.py` decodes and encodes messages, whole or in steps. `headers.py` and `varint.py` serve the
  other parts of a frame.
- `hot/` parses and builds Produce and Fetch by hand.
- `apis.py` lists the APIs and the versions that are served. `errors.py` lists Kafka's error codes.
  `authorized_operations.py` holds the bit fields of KIP-430.
- `error_response.py` and `schemas/error_responses.py` build the responses to a request that failed
  as a whole.

Sources: Kafka's message definitions, KIP-482 (flexible versions), KIP-511 (ApiVersions), KIP-896
(minimum versions).
"""
