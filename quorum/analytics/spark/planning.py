"""The plan of the slices of one DataFrame, made once, for large logs in Spark's tasks.

Without it, the data source plans anew for each scan of each query, in one process that reads every
byte of the logs.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from quorate.quorum.analytics.log.chunks import Chunk, ChunkPass, chunks_of, combined, pass_chunk
from quorate.quorum.analytics.log.errors import MissingBase
from quorate.quorum.analytics.log.first_pass import Border, Pass
from quorate.quorum.analytics.log.plan import Choice, planned
from quorate.quorum.analytics.log.plan_text import encoded
from quorate.quorum.analytics.log.segments import Passes, StoredFile, passes_here

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyspark.sql import SparkSession

IN_TASKS_ABOVE_BYTES = 256 << 20
"""The bytes of the segments of all logs together above which tasks make the first pass."""
MAX_TASKS = 2_000
"""The largest number of tasks of the first pass. Each one makes the passes over some parts."""


def plan(spark: SparkSession, choice: Choice) -> str:
    """Return the plan for the option `plan` of the data source. Block, also for a job of Spark.

    If `choice` is strict and the base snapshot is missing, return no plan, so that the use of the
    rows raises MissingBase. Other errors are those of `planned`."""
    try:
        return encoded(planned(replace(choice, plan=""), passes_over=_passes_in(spark)))
    except MissingBase:
        return ""


def _passes_in(spark: SparkSession) -> Passes:
    def passes_over(segments: Sequence[StoredFile], slice_bytes: int) -> list[Pass]:
        if sum(each.size_bytes for each in segments) <= IN_TASKS_ABOVE_BYTES:
            return passes_here(segments, slice_bytes)
        return passes_in_tasks(spark, segments, slice_bytes)

    return passes_over


def passes_in_tasks(
    spark: SparkSession, segments: Sequence[StoredFile], slice_bytes: int
) -> list[Pass]:
    """Return the passes over the segments, made by one task for each part of a segment, or by
    MAX_TASKS if there are more parts."""
    chunks = chunks_of(segments)
    texts = [(json.dumps([*each.segment, each.start, each.end, slice_bytes]),) for each in chunks]
    rows = (
        spark.createDataFrame(texts, "chunk string")
        .repartition(min(len(texts), MAX_TASKS), "chunk")
        .mapInArrow(_pass_texts, "passed string")
        .collect()
    )
    parts: defaultdict[str, list[ChunkPass]] = defaultdict(list)
    for row in rows:
        part = _part_of(json.loads(row["passed"]))
        parts[part.path].append(part)
    return [
        combined(sorted(parts[each.path], key=lambda part: part.first))
        or passes_here([each], slice_bytes)[0]
        for each in segments
    ]


def _pass_texts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the passes over the parts in the column `chunk`. Spark calls it in tasks."""
    import pyarrow

    for batch in batches:
        passed = [_passed(json.loads(text)) for text in batch.column("chunk").to_pylist()]
        yield pyarrow.RecordBatch.from_pydict({"passed": passed})


def _passed(chunk: list[Any]) -> str:
    path, offset, size, start, end, slice_bytes = chunk
    part = pass_chunk(Chunk(StoredFile(path, offset, size), start, end), slice_bytes)
    borders = [[each.position, each.base_offset, each.newest_ms] for each in part.borders]
    return json.dumps([part.path, part.first, part.end, borders, part.markers])


def _part_of(passed: list[Any]) -> ChunkPass:
    path, first, end, borders, markers = passed
    return ChunkPass(
        path,
        first,
        end,
        tuple(Border(*each) for each in borders),
        tuple((offset, kind) for offset, kind in markers),
    )
