"""The data source `quorate.metadata` as a stream: `spark.readStream.format("quorate.metadata")`.

The offset of a stream is a JSON object with one entry for each log: the next offset to read, and
the epoch of the record before it. The name of an entry is the cluster, or CLUSTER/NODE if `nodes`
is "all".

- The first batch begins with the base snapshot if older segments were deleted.
- A batch has whole metadata transactions. The stream waits for the end of an unfinished one.
- If the logs of all voters are given, only committed records are delivered. With fewer logs, a
  record may be delivered and then replaced. The stream then ends with StreamDiverged.
- If records are deleted before the stream reads them, it ends with OutOfHistory.

The records of a batch follow from its two offsets alone. A sink that writes each batch once
therefore gets each record once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from quorate.quorum.analytics.log.commits import with_commits
from quorate.quorum.analytics.log.errors import OutOfHistory, StreamDiverged
from quorate.quorum.analytics.log.forward import pieces
from quorate.quorum.analytics.log.places import NodeLog, logs_at
from quorate.quorum.analytics.log.plan import Choice
from quorate.quorum.analytics.log.ranges import slices_between, stable_end
from quorate.quorum.analytics.log.seek import epoch_at, last_batch
from quorate.quorum.analytics.log.segments import Slice, base_snapshot, log_start_offset
from quorate.quorum.analytics.spark.options import Options
from quorate.quorum.analytics.spark.source_rows import SlicePartition, rows_of_slice

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

Offsets = dict[str, Any]
"""For each log, `next` and `epoch`."""
NO_LIMIT = 1 << 62


class MetadataStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Finds new records on the driver, and reads one slice in each task.

    PySpark hides errors of constructors, so options are checked by the methods."""

    def __init__(self, options: Options, *, columns: tuple[str, ...], with_json: bool) -> None:
        self.options = options
        self.columns = columns
        self.with_json = with_json
        self._target: Offsets | None = None

    def initialOffset(self) -> Offsets:  # noqa: N802
        """Return the offset before all records."""
        self.options.choice()
        self.options.types()
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the limit of a batch that the option `maxRecordsPerBatch` sets."""
        limit = self.options.max_records_per_batch()
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Note the present end of all logs. Later records are left to the next run."""
        self._target = self.reportLatestOffset()

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:  # noqa: N802
        """Return the end of the batch that begins at `start`. Raise StreamDiverged."""
        max_records = limit.max_rows if isinstance(limit, ReadMaxRows) else NO_LIMIT
        end = dict(start)
        for name, log in self._logs().items():
            _require_no_divergence(name, log, start.get(name))
            first = _first_offset(log, start.get(name))
            available = _end_of(log)
            if self._target is not None:
                available = min(available, self._target.get(name, {"next": 0})["next"])
            if available > first:
                reached = stable_end(log.directory, first, available, max_records)
                if reached > first:
                    end[name] = {"next": reached, "epoch": epoch_at(log.directory, reached - 1)}
        return end

    def reportLatestOffset(self) -> Offsets:  # noqa: N802
        """Return the present ends of all logs, from which Spark reports the lag."""
        return {
            name: {"next": end, "epoch": epoch_at(log.directory, end - 1)}
            for name, log in self._logs().items()
            if (end := _end_of(log))
        }

    def partitions(self, start: Offsets, end: Offsets) -> list[InputPartition]:
        """Return one partition for each slice of the batch. Raise OutOfHistory if records of the
        batch were deleted, and StreamDiverged if they were replaced."""
        logs, choice = self._logs(), self.options.choice()
        slices: list[Slice] = []
        for name, reached in end.items():
            if reached == start.get(name):
                continue
            log = logs.get(name)
            if log is None:
                raise OutOfHistory(f"the stream has records of {name}, whose log is gone")
            _require_no_divergence(name, log, reached)
            slices += _slices_of(name, log, start.get(name), reached["next"], choice)
        return [SlicePartition(piece) for piece in slices]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one partition."""
        return rows_of_slice(
            partition,
            self.columns,
            with_json=self.with_json,
            strict=self.options.choice().strict,
            chosen=self.options.types(),
        )

    def commit(self, end: Offsets) -> None:
        """Do nothing: the logs are not changed."""

    def stop(self) -> None:
        """Do nothing: no file stays open."""

    def _logs(self) -> dict[str, NodeLog]:
        choice = self.options.choice()
        logs = with_commits(logs_at(choice.locations))
        if choice.every_node:
            return {f"{log.origin.cluster_id}/{log.origin.node_id}": log for log in logs}
        return {log.origin.cluster_id: log for log in logs if log.is_chosen}


def _end_of(log: NodeLog) -> int:
    """Return the end of the records that may be delivered."""
    if log.committed.rest_is_known:
        return log.committed.end_offset
    last = last_batch(log.directory)
    return 0 if last is None else last.next_offset


def _first_offset(log: NodeLog, start: Any) -> int:
    """Return the offset at which the next batch begins in the log."""
    if start is not None:
        return int(start["next"])
    base = base_snapshot(log.directory)
    if base is not None and base.snapshot is not None:
        return base.snapshot.end_offset
    return log_start_offset(log.directory)


def _slices_of(name: str, log: NodeLog, start: Any, end: int, choice: Choice) -> list[Slice]:
    slices: list[Slice] = []
    first = _first_offset(log, start)
    if start is None and (base := base_snapshot(log.directory)) is not None:
        slices += pieces(base)
    log_start = log_start_offset(log.directory)
    if first < log_start:
        raise OutOfHistory(
            f"{name}: the records from offset {first} to {log_start - 1} were deleted before the "
            "stream read them. Start it with a new checkpoint, which begins with the snapshot"
        )
    slices += slices_between(log.directory, first, end, choice.slice_bytes)
    return [replace(piece, origin=log.origin, committed=log.committed) for piece in slices]


def _require_no_divergence(name: str, log: NodeLog, reached: Any) -> None:
    """Raise StreamDiverged if the last record that the stream delivered is no longer in the log."""
    if reached is None or reached["next"] <= log_start_offset(log.directory):
        return
    epoch = epoch_at(log.directory, reached["next"] - 1)
    if epoch is not None and epoch != reached["epoch"]:
        _refuse(name, reached, epoch)


def _refuse(name: str, reached: Any, epoch: int) -> NoReturn:
    raise StreamDiverged(
        f"{name}: the stream delivered records up to offset {reached['next'] - 1} of epoch "
        f"{reached['epoch']}, but the log has epoch {epoch} there, because uncommitted records "
        "were replaced. Start with a new checkpoint and a new table. Load the logs of all voters, "
        "so that only committed records are delivered"
    )
