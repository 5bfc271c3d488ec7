"""Archives of a node's directory, which may come from an untrusted source.

- `decompression.py`: a compressed file as a stream, with a bounded part of it in memory.
- `unpacking.py`: safe extraction, with limits for members, bytes and names.
- `extracted.py`: a temporary directory with the files of an archive, for the data source.
"""
