"""One step of each table: from carried rows and new records to final, open and carried rows.

The functions are lazy. A step reads nothing but the carried rows and the new records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from quorate.quorum.analytics.current.carried import (
    above_mark,
    for_isr,
    for_leadership,
    for_sessions,
)
from quorate.quorum.analytics.tables.isr import isr
from quorate.quorum.analytics.tables.leadership import (
    RUN_KEY,
    RUNS,
    availability_of_runs,
    leadership,
    runs_of,
    spells_as_runs,
)
from quorate.quorum.analytics.tables.sessions import sessions


@dataclass(frozen=True, slots=True)
class Step:
    """One table after a step."""

    rows: DataFrame
    """The new final rows, and all open rows. The column `final` tells them apart."""
    carried: DataFrame
    """The rows that the next step needs."""


@dataclass(frozen=True, slots=True)
class Of:
    """The functions of one table that is made of records."""

    make: Callable[[DataFrame], DataFrame]
    carry: Callable[[DataFrame], DataFrame]
    end: str
    """The offset that makes a row final. It is null in an open row."""


OF_RECORDS = {
    "leadership": Of(leadership, for_leadership, "end_offset"),
    "isr": Of(isr, for_isr, "offset"),
    "sessions": Of(sessions, for_sessions, "end_offset"),
}
"""The tables that are made of records."""
AVAILABILITY = "availability"
"""The table that is made of the rows of `leadership`."""
INCREMENTAL = (*OF_RECORDS, AVAILABILITY)
"""The tables that a stream can keep current."""


def carried_schemas(new: DataFrame) -> dict[str, StructType | str]:
    """Return the columns of the carried rows of each table."""
    return {**dict.fromkeys(OF_RECORDS, new.schema), AVAILABILITY: RUNS}


def steps(
    tables: tuple[str, ...], new: DataFrame, carried: Mapping[str, DataFrame]
) -> dict[str, Step]:
    """Return a step of each of these tables, and of those that they are made of.

    `new` are records that took effect. `carried` has the carried rows of the last step by table,
    and none before the first one."""
    wanted = {"leadership" if name == AVAILABILITY else name for name in tables}
    made = {
        name: of_records(OF_RECORDS[name], new, carried.get(name))
        for name in OF_RECORDS
        if name in wanted
    }
    if AVAILABILITY in tables:
        made[AVAILABILITY] = of_availability(made["leadership"].rows, carried.get(AVAILABILITY))
    return made


def of_records(table: Of, new: DataFrame, carried: DataFrame | None) -> Step:
    """Return the step of a table that is made of records."""
    before = new.where(f.lit(False)) if carried is None else carried
    records = before.unionByName(above_mark(new, before, "offset"))
    made = table.make(records).withColumn("final", f.col(table.end).isNotNull())
    return Step(above_mark(made, before, table.end), table.carry(records))


def of_availability(spells: DataFrame, carried: DataFrame | None) -> Step:
    """Return the step of `availability` from the rows of the step of `leadership`.

    The carried rows are the ended runs of the partitions that exist. A row is final if its
    partition was removed."""
    open_runs = spells_as_runs(spells.where("not final"))
    ended = spells_as_runs(spells.where("final"))
    if carried is not None:
        ended = carried.unionByName(ended)
    ended = runs_of(ended)
    rows = availability_of_runs(runs_of(ended.unionByName(open_runs)))
    made = rows.withColumn("final", ~f.col("lasts")).drop("lasts")
    # A topic id is one of one topic, whose name may be null.
    key = [name for name in RUN_KEY if name != "topic"]
    return Step(made, ended.join(open_runs.select(*key), key, "left_semi"))
