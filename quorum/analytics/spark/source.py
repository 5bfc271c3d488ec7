"""The Spark data source `quorate.metadata`, which returns one row per record of a metadata log.

    spark.read.format("quorate.metadata").load("/var/lib/quorate/1")
    spark.read.format("quorate.metadata").load(["/backup/*/1", "s3://logs/west/node-1"])

A location is a node's directory, a metadata log, the directory of `quorate up`, a local archive of
one of these, or a pattern of these. It is local, or a URL that pyarrow or fsspec reads
(`log/places.py`, `log/files.py`).

Options:

- `nodes`: if several logs of one cluster are given, the default "one" reads the log that certainly
  has every committed record. If the logs of all voters are given, it leaves out the records that
  are not committed. "all" reads every log, and the column `committed` tells them apart.
- `include`: "snapshots" adds the rows of every snapshot. "base" adds the rows of the snapshot that
  the log starts from, if older segments were deleted, and leaves out the rows of the log that this
  snapshot covers. The default adds none.
- `mode`: "permissive", the default, continues behind damage, and returns a row that describes it in
  `remark`, `remark_end` and `value`. "strict" raises an error for damage and for records in a newer
  version, and with `include` "base" also if that snapshot is missing.
- `json`: "false" leaves the column `record` empty and is much faster.
- `sliceBytes`: the maximum size of a slice of a segment in bytes, 4 MiB by default. The task of a
  slice also reads the rest of its last batch. A snapshot has slices of 4 MiB.
- `types`: record types, separated by commas, such as "TOPIC_RECORD,PARTITION_RECORD". Rows of other
  types are left out, except one row of every 32,768 records or fewer: the last one that took
  effect. The newest row is thus always there. Rows with a `remark` stay too.
- `topicIds`: topic ids, separated by commas. Records with the id of another topic are left out,
  with the exceptions of `types`. Records without a topic id stay, such as those of configs.
- `pushdown`: "true" skips segments, slices, record types and rows that conditions exclude
  (`wanted.py`). The default is "false". Set it only for a DataFrame that is used once and has one
  scan in its query: Spark 4.1 to 4.3 keeps the rest of a scan for the next scan of the same
  DataFrame, so that `df.where("offset < 5").count()` and then `df.count()` would both count 5.
  Spark refuses it unless spark.sql.python.filterPushdown.enabled is true, as `analytics.register`
  sets it.

Spark does not tell a source which columns a query uses. Calling `.schema("offset bigint, type
string")` before `load` avoids the cost of the other columns.

A stream, `spark.readStream`, has the option `maxRecordsPerBatch` too (`streaming.py`).

Tasks decode the log. The driver reads only the headers of batches, those of all segments that a
pushed condition on the offset does not exclude by their names. `load` cannot read them in tasks:
Spark calls `partitions` in a process that has no session to run a job, and a task alone cannot know
whether a later marker aborts the metadata transaction of its records. `analytics.read_tables` plans
once, and in tasks if the logs are large. Its table `records` has the rows that took effect.

Every worker must find the files under the same path. The files of an archive are in the temporary
directory of the driver's machine (`archives/extracted.py`), so workers on other machines do not
find them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)

from quorate.quorum.analytics.log.errors import BadOption
from quorate.quorum.analytics.log.plan import Choice, planned
from quorate.quorum.analytics.spark.columns import COLUMNS, spark_schema
from quorate.quorum.analytics.spark.options import Options
from quorate.quorum.analytics.spark.source_rows import SlicePartition, rows_of_slice
from quorate.quorum.analytics.spark.wanted import Wanted

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyspark.sql.datasource import Filter  # since Spark 4.1
    from pyspark.sql.types import StructType

NAME = "quorate.metadata"
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


class MetadataLogSource(DataSource):
    """The data source as Spark's driver sees it."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `spark.read.format`."""
        return NAME

    def schema(self) -> str:
        """Return the schema with all columns, as Spark DDL."""
        return spark_schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader for the chosen columns and options.

        Raise BadOption if a column or the value of an option is invalid. Only "false" switches
        `json` off, and any other text than "false" switches `pushdown` on."""
        options = Options(dict(self.options))
        pushes = options.flag("pushdown", "false")
        made = NarrowingReader if pushes else MetadataLogReader
        return made(
            options.choice(),
            columns=columns_of(schema),
            with_json=options.flag("json", "true"),
            chosen=options.types(),
            topics=options.topics(),
        )

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return a reader that follows the logs. Its methods raise the errors of `reader`."""
        options = Options(dict(self.options))
        try:
            from quorate.quorum.analytics.spark.streaming import MetadataStreamReader

            with_json = options.flag("json", "true")
            return MetadataStreamReader(options, columns=columns_of(schema), with_json=with_json)
        except (BadOption, ImportError) as error:
            return RefusedStream(str(error))


class RefusedStream(DataSourceStreamReader):
    """A stream that cannot begin. PySpark hides errors of `streamReader` behind one of its own."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Raise BadOption with the reason."""
        raise BadOption(self._text())

    def latestOffset(self, start: Any, limit: Any) -> dict[str, Any]:  # noqa: N802
        """Raise BadOption with the reason, if the stream continues from a checkpoint."""
        raise BadOption(self._text())

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Raise BadOption with the reason."""
        raise BadOption(self._text())

    def _text(self) -> str:
        return f"the stream cannot begin (streams need Spark 4.2 or newer): {self.reason}"


def columns_of(schema: StructType) -> tuple[str, ...]:
    """Return the column names of a schema. Raise BadOption if the source has no such column or
    type."""
    for field in schema.fields:
        kind = field.dataType.simpleString()
        if COLUMNS.get(field.name) != kind:
            raise BadOption(
                f"the column `{field.name}` {kind} is not one of the source: {spark_schema()}"
            )
    return tuple(field.name for field in schema.fields)


class MetadataLogReader(DataSourceReader):
    """Plans the slices on the driver, and reads one slice in each task.

    Spark pickles the reader and sends it to the workers."""

    def __init__(
        self,
        choice: Choice,
        *,
        columns: tuple[str, ...],
        with_json: bool,
        chosen: frozenset[str] | None = None,
        topics: frozenset[int] | None = None,
    ) -> None:
        self.choice = choice
        self.chosen = chosen
        self.topics = topics
        self.columns = columns
        self.with_json = with_json and "record" in columns
        self.wanted = Wanted()

    def partitions(self) -> list[InputPartition]:
        """Return one partition per slice that the query's conditions do not exclude.

        Segments that the conditions on the offset exclude by their names are not read. Raise
        NoMetadataLog if a location holds no metadata log. A strict reader raises
        MissingBase."""
        first, last = self.wanted.first_offset, self.wanted.last_offset
        choice = replace(self.choice, first_offset=first, last_offset=last)
        return [SlicePartition(piece) for piece in planned(choice) if self.wanted.reaches(piece)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one partition. Errors are those of `rows.arrow_batches`."""
        return rows_of_slice(
            partition,
            self.columns,
            with_json=self.with_json,
            strict=self.choice.strict,
            wanted=self.wanted,
            chosen=self.chosen,
            topics=self.topics,
        )


class NarrowingReader(MetadataLogReader):
    """A reader that skips slices and record types that the query's conditions exclude."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Note the conditions, and return all of them so that Spark applies them as well.

        The reader skips only whole slices and record types, so rows that the query excludes may
        remain.
        """
        for each in filters:
            self.wanted = self.wanted.narrowed(each)
        return filters
