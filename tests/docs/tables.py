"""The page docs/tables.md, made from the registry of the history tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from quorate.quorum.analytics.tables import TABLES, columns_in
from quorate.quorum.analytics.tables.descriptions import summary_of
from quorate.quorum.analytics.tables.needs import NEEDS
from quorate.quorum.analytics.tables.of_topics import CONDITIONS
from quorate.quorum.analytics.tables.warnings import KINDS

PAGE = Path(__file__).parents[2] / "docs" / "tables.md"
HEAD = """# The tables of a cluster's history

`make docs` writes this page from the docstrings of `quorum/analytics/tables`.
`DESCRIBE TABLE leadership` shows the same texts in Spark. Times are in UTC. An interval contains
its beginning and not its end.

## Tables that follow the logs

`quorate history stream DIR... --out OUT --table leadership --table isr` keeps tables current in the
directory OUT: `leadership`, `isr`, `sessions` and `availability`. A batch reads only its new
records, and the rows that the batch before carried to it. After each batch, the tables equal those
of a query over all records. A later run with the same tables continues them.

- Each record counts once, also if the process is killed at any time, or if two runs overlap. A
  batch becomes visible in one step, with the replacement of `OUT/_commit.json`.
- The files are Parquet files. `_commit.json` names the folders of each table: `final` rows, which
  no later record can change, and `open` rows, which last until a record ends them. Read these
  folders, or call `quorate.quorum.analytics.current_tables(spark, OUT)`. Other folders are older or
  incomplete.
- The offset of a cluster is its watermark: final rows up to it never change. The line of each batch
  shows the offsets, the lag in records, and the rows of each table, also as JSON.
- A batch does not compare the newest record with the clock of this machine. If the clock of a
  controller is fast, open rows last up to its time (`clock-ahead` of the table `warnings`).
- There is no Delta format, because its library is not among the dependencies of `quorate[spark]`.

## What a condition saves

The log is decoded once for all tables of a call but `records`, and the rows are cached. Each table
names below the record types that it decodes. Name the tables that you use: `only=` of `read_tables`
does, and `quorate history sql` finds the names in the query.

`read_tables(spark, DIR, topics=("orders",))` and `--topic` of `quorate history sql`, `export` and
`report` decode only the records of these topics, and those about no topic. A partition record has
the id of its topic and not its name, so the records that create topics are read first. Strict mode
decodes everything. The page of a report with `--parquet` does so too, because these tables are
those of the whole history.

{complete} are about the whole cluster. They are complete also with `topics`.

Other conditions on a topic, a time or an offset do not reach the log. The records before a time
decide on the state at that time. Spark applies such conditions to the cached rows.

The first pass over a log reads the headers of all batches. `read_tables` makes it once, in Spark's
tasks if the logs exceed 256 MiB. `load` of the data source makes it in one process of the driver
for each use of the rows, because Spark calls a Python data source in a process that cannot run
jobs. A task cannot do without the first pass: a later marker may abort the metadata transaction of
its records. For large logs, prefer `read_tables(spark, DIR, only=("records",))`.

The data source itself, `spark.read.format("quorate.metadata")`, has the option `pushdown`. With
"true", conditions on `offset` skip whole segments and slices. Conditions that the time is later or
equal skip slices. Equality (`=`, `IN`) with `type` skips the decoding of other types, and so does a
condition on a column that only some types fill, such as `topic`. The default is "false", because
Spark 4.1 to 4.3 keeps the rest of such a scan for the next scan of the same DataFrame, without an
error. Set it only for a DataFrame that is used once. No table of this page uses it.
"""


def page() -> str:
    """Return the page."""
    whole = [f"`{name}`" for name in TABLES if name not in CONDITIONS]
    complete = f"The tables {', '.join(whole[:-1])} and {whole[-1]}"
    return HEAD.format(complete=complete) + "".join(_section(name) for name in TABLES)


def _section(name: str) -> str:
    return "\n".join(_lines(name)) + "\n"


def _lines(name: str) -> Iterator[str]:
    yield f"\n## {name}\n"
    yield f"{summary_of(TABLES[name].make)}\n"
    if name in NEEDS:
        types = NEEDS[name].types
        named = "all" if types is None else ", ".join(f"`{each}`" for each in sorted(types))
        yield f"Record types that are decoded: {named}.\n"
    yield "| column | type | meaning |"
    yield "|---|---|---|"
    for column in columns_in(name):
        kind = column.type.replace(",", ", ")
        yield f"| `{column.name}` | `{kind}` | {column.text} |"
    if name == "warnings":
        yield "\n| kind | severity |"
        yield "|---|---|"
        yield from (f"| `{kind}` | {severity} |" for kind, severity in KINDS.items())
