"""The Spark data source `quorate.metadata`, and a local Spark session.

Files in reading order:

- `columns.py`, `source.py`, `wanted.py`: the data source, its columns, and its filters.
- `rows.py`, `framed.py`, `vectors.py`, `arrays.py`: decoding of a slice with numpy and Arrow.
- `session.py`, `java.py`: a local session, and its Java.
"""
