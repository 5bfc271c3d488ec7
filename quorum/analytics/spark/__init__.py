"""The Spark data source `quorate.metadata`, and a local Spark session.

Files in reading order:

- `columns.py`, `options.py`, `source.py`, `wanted.py`: the data source, its columns, options and
  filters.
- `rows.py`, `framed.py`, `kinds.py`, `vectors.py`, `arrays.py`, `public_configs.py`: decoding of a
  slice with numpy and Arrow.
- `registration.py`: the data source in a session, and the interpreter of its workers.
- `session.py`, `java.py`: a local session, and its Java.
"""
