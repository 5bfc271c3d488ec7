"""Kafka's protocol without connections: messages, codecs, framing of fields, error codes.

Pure code: it does no I/O, so every other package may import it.

Inputs and outputs: bytes of a request, response or metadata record, and the dataclasses that
declare them. Every field of a request or record has a bound; a reader without one does not compile.

Files in reading order:

- `wire.py`: the declaration of a message; `schemas/`: the messages; `bounds.py`: the bounds.
- `layout.py`, `reading.py`, `writing.py`, `source.py`: the compilers of readers and writers.
- `codec.py`: decode and encode, whole or in steps; `headers.py`, `varint.py`: the rest of a frame.
- `hot/`: Produce and Fetch, written by hand.
- `apis.py`: the APIs and versions that are served; `errors.py`: Kafka's error codes.
- `failed.py`, `failures.py`: the responses that report a failure of the whole request.

Sources: Kafka's message definitions, KIP-482 (flexible versions), KIP-511, KIP-896.
"""
