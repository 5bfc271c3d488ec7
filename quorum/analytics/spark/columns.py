"""The columns of the data source `quorate.metadata`, and the record fields that fill them.

There is one row per record. A column is null if the record does not set it, also if the record says
"no change" (Kafka's -2 and similar values). In a PARTITION_RECORD, which holds the whole state, a
null `elr` or `last_known_elr` means that there are none. The column `record` holds the whole record
as Kafka's JSON.

The columns (offset, snapshot_index) give the order of the log. A DataFrame has no order of its own.
The rows of a snapshot have the offset of the last record that the snapshot covers, and their
position in the snapshot as `snapshot_index`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from quorate.quorum.analytics.log.damage import (
    CONFLICT,
    DAMAGED_BATCH,
    DAMAGED_RECORD,
    DIVERGENCE,
    GAP,
)
from quorate.quorum.analytics.spark.vectors import Ints, Mask, Spans, Values
from quorate.quorum.ids import uuid_to_text
from quorate.quorum.metadata import records as r
from quorate.quorum.metadata.acl_records import AccessControlEntryRecord
from quorate.quorum.metadata.image import TOPIC_RESOURCE
from quorate.quorum.metadata.record_text import Unknown
from quorate.quorum.metadata.redaction import redacted
from quorate.quorum.raft.control_records import LeaderChangeMessage, VotersRecord

COLUMNS: dict[str, str] = {
    "cluster_id": "string",  # of meta.properties, or the path of the log; never null
    "node_id": "int",  # of the node whose log this is
    "offset": "bigint",
    "snapshot_index": "int",  # null for rows of the log
    "epoch": "int",  # of the controller that wrote the record
    "timestamp": "timestamp",
    "timestamp_ms": "bigint",
    "effective": "boolean",  # false: in a metadata transaction without effect (KIP-868)
    "type": "string",
    "version": "int",
    "topic": "string",
    "topic_id": "string",
    "partition_id": "int",
    "leader": "int",  # -1: none
    "leader_epoch": "int",
    "partition_epoch": "int",
    "replicas": "array<int>",
    "isr": "array<int>",
    "removing_replicas": "array<int>",
    "adding_replicas": "array<int>",
    "elr": "array<int>",
    "last_known_elr": "array<int>",
    "leader_recovery_state": "int",
    "broker_id": "int",
    "broker_epoch": "bigint",
    "incarnation_id": "string",
    "fenced": "boolean",
    "in_controlled_shutdown": "boolean",
    "controller_id": "int",
    "voters": "array<int>",
    "resource_type": "int",
    "resource_name": "string",
    "name": "string",  # of a config, a quota, a feature or a metadata transaction
    "value": "string",  # also of a remark: a sentence about it
    "feature_level": "int",
    "cause": "string",
    "remark": "string",  # a problem with the log here; see `REMARKS`
    "remark_end": "bigint",  # of damage: the first offset that can be read again
    "committed": "boolean",  # null: the files do not prove it
    "file": "string",
    "record": "string",
}
"""The Spark type of each column, in the order of the schema."""

UNKNOWN_TYPE, UNKNOWN_VERSION = "unknown-type", "unknown-version"
SNAPSHOT_NAME = "snapshot-name"
REMARKS = {
    DAMAGED_BATCH: "A batch cannot be read. The row has the first offset that is lost.",
    DAMAGED_RECORD: "A record of a sound batch cannot be decoded.",
    GAP: "Records are missing, or offsets repeat. The row has the first offset that is missing.",
    DIVERGENCE: "Two nodes of the cluster have different committed records from this offset on.",
    CONFLICT: "A node has records of another epoch from this offset on, which Raft may replace.",
    UNKNOWN_TYPE: "A record of a type that this version does not know.",
    UNKNOWN_VERSION: "A record of a known type in a version that this version does not know.",
    SNAPSHOT_NAME: "Not a problem: a snapshot ends at this offset. It was not read.",
}
"""The values of the column `remark`. It is null for a record that was read and understood."""

UUIDS = frozenset({"topic_id", "incarnation_id"})
"""Columns with 16 bytes in the log and 22 characters in the table."""


class Numbers(NamedTuple):
    """The numbers of a column. `valid` is false for nulls; None means that there is no null."""

    values: Ints
    valid: Mask | None = None


class Fill(NamedTuple):
    """The way in which records of one type fill one column.

    `of` takes the values from decoded records. `at_once` takes them from the vectors of `fields`.
    Both give the same values. Without `at_once`, records of this type are always decoded one by
    one."""

    of: Callable[[list[Any]], list[Any]]
    fields: tuple[str, ...] = ()
    at_once: Callable[..., Numbers | Spans] | None = None


def _as_is(values: Values) -> Numbers | Spans:
    return values if isinstance(values, Spans) else Numbers(values)


def _plain(name: str) -> Fill:
    get = attrgetter(name)
    return Fill(lambda records: list(map(get, records)), (name,), _as_is)


def _uuid(name: str) -> Fill:
    get = attrgetter(name)
    text = lru_cache(maxsize=4096)(uuid_to_text)
    return Fill(lambda records: list(map(text, map(get, records))), (name,), _as_is)


def _unless(name: str, unchanged: int) -> Fill:
    get = attrgetter(name)
    return Fill(
        lambda records: [None if (v := get(each)) == unchanged else v for each in records],
        (name,),
        lambda values: Numbers(values, values != unchanged),
    )


def _unless_empty(name: str) -> Fill:
    get = attrgetter(name)
    return Fill(
        lambda records: [get(each) or None for each in records],
        (name,),
        lambda text: Spans(text.start, np.where(text.length > 0, text.length, -1)),
    )


def _change(name: str) -> Fill:
    get = attrgetter(name)
    return Fill(
        lambda records: [{-1: False, 1: True}.get(get(each)) for each in records],
        (name,),
        lambda values: Numbers(values == 1, abs(values) == 1),
    )


def _config_topic(records: list[r.ConfigRecord]) -> list[str | None]:
    return [
        each.resource_name if each.resource_type == TOPIC_RESOURCE else None for each in records
    ]


def _config_topic_at_once(resource_type: Ints, name: Spans) -> Spans:
    return Spans(name.start, np.where(resource_type == TOPIC_RESOURCE, name.length, -1))


CONFIG_TOPIC = Fill(_config_topic, ("resource_type", "resource_name"), _config_topic_at_once)


def _config_values(records: list[r.ConfigRecord]) -> list[str | None]:
    """Return the values, but HIDDEN for a secret one."""
    return [redacted(each).value for each in records]


def _voters(records: list[LeaderChangeMessage | VotersRecord]) -> list[list[int]]:
    return [sorted(voter.voter_id for voter in each.voters) for each in records]


def _keys(records: list[r.ClientQuotaRecord]) -> list[str]:
    return [each.key for each in records]


def _quotas(records: list[r.ClientQuotaRecord]) -> list[str | None]:
    return [None if each.remove else str(each.value) for each in records]


def remark_of(message: Unknown) -> str:
    """Return the remark on a record that this version cannot read."""
    return UNKNOWN_TYPE if message.type.startswith("UNKNOWN_") else UNKNOWN_VERSION


def _remarks(records: list[Unknown]) -> list[str]:
    return [remark_of(each) for each in records]


def _constant(value: object) -> Fill:
    return Fill(lambda records: [value] * len(records))


def _same(*names: str) -> dict[str, Fill]:
    return {name: _plain(name) for name in names}


CAUSE = {"cause": _unless_empty("cause")}
BROKER = {**_same("broker_id", "broker_epoch"), **CAUSE}
PARTITION = {"topic_id": _uuid("topic_id"), "partition_id": _plain("partition_id")}
LEGACY_BROKER = {"broker_id": _plain("id"), "broker_epoch": _plain("epoch")}
REPLICA_SETS = _same("replicas", "isr", "removing_replicas", "adding_replicas")

FILLED_BY: dict[type, dict[str, Fill]] = {
    r.RegisterBrokerRecord: {
        **BROKER,
        "incarnation_id": _uuid("incarnation_id"),
        **_same("fenced", "in_controlled_shutdown"),
    },
    r.UnregisterBrokerRecord: BROKER,
    r.BrokerRegistrationChangeRecord: {
        **BROKER,
        "fenced": _change("fenced"),
        "in_controlled_shutdown": _change("in_controlled_shutdown"),
    },
    r.FenceBrokerRecord: {**LEGACY_BROKER, "fenced": _constant(True)},
    r.UnfenceBrokerRecord: {**LEGACY_BROKER, "fenced": _constant(False)},
    r.TopicRecord: {"topic": _plain("name"), "topic_id": _uuid("topic_id")},
    r.RemoveTopicRecord: {"topic_id": _uuid("topic_id")},
    r.PartitionRecord: {
        **PARTITION,
        **REPLICA_SETS,
        **_same("leader", "leader_epoch", "partition_epoch", "leader_recovery_state"),
        "elr": _plain("eligible_leader_replicas"),
        "last_known_elr": _plain("last_known_elr"),
        **CAUSE,
    },
    r.PartitionChangeRecord: {
        **PARTITION,
        **REPLICA_SETS,
        "leader": _unless("leader", r.NO_LEADER_CHANGE),
        "leader_recovery_state": _unless("leader_recovery_state", r.NO_RECOVERY_CHANGE),
        "elr": _plain("eligible_leader_replicas"),
        "last_known_elr": _plain("last_known_elr"),
        **CAUSE,
    },
    r.ConfigRecord: {
        "topic": CONFIG_TOPIC,
        **_same("resource_type", "resource_name", "name"),
        # The names are for `public_configs`.
        "value": Fill(
            _config_values, ("value", "resource_type", "name"), lambda value, *_: _as_is(value)
        ),
    },
    r.ClientQuotaRecord: {"name": Fill(_keys), "value": Fill(_quotas)},
    r.FeatureLevelRecord: _same("name", "feature_level"),
    r.ProducerIdsRecord: _same("broker_id", "broker_epoch"),
    r.RegisterControllerRecord: {
        "controller_id": _plain("controller_id"),
        "incarnation_id": _uuid("incarnation_id"),
    },
    r.ClearElrRecord: {"topic": _unless_empty("topic_name")},
    r.BeginTransactionRecord: _same("name"),
    AccessControlEntryRecord: _same("resource_type", "resource_name"),
    LeaderChangeMessage: {"controller_id": _plain("leader_id"), "voters": Fill(_voters)},
    VotersRecord: {"voters": Fill(_voters)},
    Unknown: {"remark": Fill(_remarks)},
}
"""The columns that each record type fills.

Types that are not listed fill no column of their own: NoOp, markers, footers, unknown records.
"""


def spark_schema() -> str:
    """Return the schema with all columns, as Spark DDL."""
    return ", ".join(f"`{name}` {kind}" for name, kind in COLUMNS.items())
