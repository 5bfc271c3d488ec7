"""The Spark data source `quorate.metadata`: one row per record of a metadata log.

    spark.read.format("quorate.metadata").load("/var/lib/quorate/1")

Options: `include` ("snapshots": also the rows of every snapshot; "base": of the one at which a log
begins whose older segments are gone), `json` ("false" leaves `record` empty and is faster),
`sliceBytes` (how much of a segment one task reads). Tasks decode; the driver only lists files.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from quorate.quorum.analytics.columns import spark_schema
from quorate.quorum.analytics.errors import BadOption
from quorate.quorum.analytics.segments import (
    SLICE_BYTES,
    Slice,
    history_slices,
    log_slices,
    metadata_dir,
    snapshot_slices,
)

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

NAME = "quorate.metadata"
INCLUDES = ("base", "snapshots")
GC_THRESHOLD = 100_000
"""Rows are many objects without cycles: a task that looks for some less often is a fifth faster."""


class SlicePartition(InputPartition):
    def __init__(self, piece: Slice) -> None:
        super().__init__(piece.path)
        self.piece = piece


class MetadataLogSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return spark_schema()

    def reader(self, schema: object) -> DataSourceReader:
        return MetadataLogReader(
            directory=self._option("path", ""),
            include=self._option("include", ""),
            slice_bytes=int(self._option("sliceBytes", str(SLICE_BYTES))),
            with_json=self._option("json", "true").lower() != "false",
        )

    def _option(self, name: str, default: str) -> str:
        return str(self.options.get(name, default))


class MetadataLogReader(DataSourceReader):
    def __init__(self, *, directory: str, include: str, slice_bytes: int, with_json: bool) -> None:
        if include and include not in INCLUDES:
            raise BadOption(f"include is {include!r}: it must be one of {', '.join(INCLUDES)}")
        self.directory = directory
        self.include = include
        self.slice_bytes = slice_bytes
        self.with_json = with_json

    def partitions(self) -> list[InputPartition]:
        directory = metadata_dir(self.directory)
        if self.include == "base":
            slices = history_slices(directory, self.slice_bytes)
        else:
            slices = log_slices(directory, self.slice_bytes)
        if self.include == "snapshots":
            slices += snapshot_slices(directory)
        return [SlicePartition(piece) for piece in slices]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from quorate.quorum.analytics.rows import Request, arrow_batches

        assert isinstance(partition, SlicePartition)
        gc.set_threshold(GC_THRESHOLD)
        return arrow_batches(partition.piece, Request(with_json=self.with_json))
