"""Tables that a stream keeps current: each batch reads its new records, and not the whole log.

A table has final rows, which no later record can change, and open rows, which last until a later
record ends them. A batch of new records goes these ways:

- `carried.py`: the rows that one batch carries to the next, in place of all earlier records. They
  have the form of records, so the functions of `tables/` make the tables of carried and new rows.
- `steps.py`: one batch: the new final rows, all open rows, and the rows to carry.
- `directory.py`: the Parquet files, and the commit that makes one batch visible in one step.
- `following.py`: the stream that runs a step for each batch, and the reader of the tables.

Invariant: after each batch, the final and open rows together are those of the batch tables over the
same records.

Each record counts once. The carried rows hold the last applied offset of each cluster, and a step
ignores the records up to it. Offsets order the records of a cluster, and no record comes late: the
last applied offset is the watermark of its cluster.
"""
