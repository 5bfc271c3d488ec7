"""The tasks of the data source: each one reads the rows of one slice."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import InputPartition

from quorate.quorum.analytics.log.segments import Slice
from quorate.quorum.analytics.spark.wanted import Wanted

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

EVERYTHING = Wanted()
GC_THRESHOLD = 100_000
"""Objects between two runs of the garbage collector while a task makes rows.

Rows are many objects without reference cycles. Rare collections make a task a fifth faster.
"""


class SlicePartition(InputPartition):
    """One slice of a log as a Spark partition. One task reads it."""

    def __init__(self, piece: Slice) -> None:
        super().__init__(piece.path)
        self.piece = piece


def rows_of_slice(
    partition: InputPartition,
    columns: tuple[str, ...],
    *,
    with_json: bool,
    strict: bool,
    wanted: Wanted = EVERYTHING,
    chosen: frozenset[str] | None = None,
    topics: frozenset[int] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one partition. Errors are those of `rows.arrow_batches`.

    `chosen` are the types of the option `types`, and `topics` are from `topicIds`."""
    from quorate.quorum.analytics.spark.rows import Request, arrow_batches

    _freeze_modules()
    if not isinstance(partition, SlicePartition):
        return iter(())  # Spark passes another object if there is no partition at all.
    request = Request(columns, with_json, wanted.types, strict, wanted.values, chosen, topics)
    return _with_rare_collections(arrow_batches(partition.piece, request))


@cache
def _freeze_modules() -> None:
    """Exempt the objects that exist now from the garbage collector, once in each worker.

    Spark collects garbage after each task, and would look at all objects of the imported modules.
    Other processes than Spark's workers decide on their own collections."""
    if TaskContext.get() is not None:
        gc.freeze()


def _with_rare_collections(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches, with the garbage collector set to GC_THRESHOLD while one is made.

    Spark reuses a worker's process for other tasks, so the setting is restored after each batch."""
    while True:
        before = gc.get_threshold()
        gc.set_threshold(GC_THRESHOLD)
        try:
            batch = next(batches, None)
        finally:
            gc.set_threshold(*before)
        if batch is None:
            return
        yield batch
