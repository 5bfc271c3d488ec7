"""The record types and columns of the data source that each table is made of.

One decoding of the log serves all tables of a call. It makes only these columns, and only the rows
of these types. A task also keeps the last row of each part of the log, because unfinished intervals
count up to the time of the last record, which may be of any type.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.quorum.analytics.spark.columns import COLUMNS
from quorate.quorum.analytics.tables.events import CLUSTER, SEQUENCE
from quorate.quorum.analytics.tables.partition_states import CHANGE, CLEAR, MERGED, WHOLE
from quorate.quorum.analytics.tables.quorum import LEADER_CHANGE, VOTERS
from quorate.quorum.analytics.tables.sessions import BROKER_EVENTS

ALWAYS = frozenset({CLUSTER, *SEQUENCE, "timestamp_ms", "effective", "type", "remark"})
"""The columns that every table uses."""


@dataclass(frozen=True, slots=True)
class Needs:
    """The record types (None: all) and the columns of the data source."""

    types: frozenset[str] | None
    columns: frozenset[str]

    def __or__(self, other: Needs) -> Needs:
        """Return the needs of both."""
        both = None if self.types is None or other.types is None else self.types | other.types
        return Needs(both, self.columns | other.columns)

    def schema(self) -> str:
        """Return the columns as Spark DDL, in the order of the data source."""
        return ", ".join(f"`{name}` {COLUMNS[name]}" for name in COLUMNS if name in self.columns)


def _needs(types: tuple[str, ...], *columns: str) -> Needs:
    return Needs(frozenset(types), ALWAYS | set(columns))


def _all_types(*columns: str) -> Needs:
    return Needs(None, ALWAYS | set(columns))


NAMES_OF_TOPICS = _needs(("TOPIC_RECORD",), "topic", "topic_id")
TOPICS = _needs(("TOPIC_RECORD", "REMOVE_TOPIC_RECORD"), "topic", "topic_id")
_OF_PARTITIONS = TOPICS | _needs(
    (WHOLE, CHANGE), "partition_id", "leader_epoch", "partition_epoch", "cause", "timestamp"
)
LEADERS = _OF_PARTITIONS | _needs((), "leader")
ISRS = LEADERS | _needs((), "isr", "replicas")
REPLICAS = ISRS | _needs((), "adding_replicas", "removing_replicas")
ELRS = ISRS | _needs((CLEAR,), "elr", "last_known_elr")
PARTITIONS = REPLICAS | ELRS | _needs((), *MERGED)
CONFIGS = TOPICS | _needs(("CONFIG_RECORD",), "resource_type", "resource_name", "name", "value")
SESSIONS = _needs(
    BROKER_EVENTS, "broker_id", "broker_epoch", "fenced", "in_controlled_shutdown", "cause"
)
QUORUM = _needs((LEADER_CHANGE, VOTERS), "epoch", "controller_id", "voters")
WARNINGS = _all_types(
    "epoch", "version", "resource_type", "resource_name", "name", "value", "voters", "remark_end",
    "committed",
)  # fmt: skip

NEEDS: dict[str, Needs] = {
    "topics": TOPICS | _needs((WHOLE,), "partition_id"),
    "partitions": PARTITIONS,
    "leadership": LEADERS,
    "isr": ISRS | CONFIGS,
    "elr": ELRS,
    "state_changes": PARTITIONS,
    "sessions": SESSIONS,
    "availability": LEADERS,
    "min_isr_windows": ISRS | CONFIGS,
    "churn": ISRS,
    "reassignments": REPLICAS,
    "reassignment_steps": REPLICAS,
    "brokers": SESSIONS | PARTITIONS,
    "configs": CONFIGS,
    "quorum": QUORUM,
    "quorum_health": _all_types("epoch", "controller_id", "voters"),
    "causes": LEADERS | SESSIONS,
    "warnings": WARNINGS,
}
"""The needs of each table but `records`, which is read on its own."""


def needs_of(*tables: str) -> Needs:
    """Return what these tables need together. The table `records` adds nothing."""
    whole = _needs(())
    for name in tables:
        if name in NEEDS:
            whole |= NEEDS[name]
    return whole
