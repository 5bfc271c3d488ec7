"""The columns of each table in words, for `DESCRIBE` and for docs/tables.md.

The docstring of a table's function lists the columns with their types, and explains those that are
special to the table. COMMON explains the others.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

Make = Callable[[DataFrame], DataFrame]


class ColumnText(NamedTuple):
    """A column: its name, its Spark type, and a phrase that explains it."""

    name: str
    type: str
    text: str


COMMON = {
    "cluster_id": "the id of the cluster, or the path of the log if no meta.properties names it",
    "topic": "the topic's name; null if its creation is not in the log",
    "topic_id": "the topic's id, which a topic of the same name created later does not have",
    "partition": "the number of the partition in its topic",
    "broker": "the broker's id",
    "broker_epoch": "the epoch of the broker's registration",
    "leader": "the broker that leads, or in tables of the quorum the active controller; -1: none",
    "leader_before": "the leader before the change",
    "isr_before": "the in-sync replicas before the change",
    "replicas_before": "the replicas before the change",
    "leader_epoch": "the leader epoch of the partition",
    "partition_epoch": "the number of changes of the partition since its creation",
    "epoch": "the epoch of the quorum",
    "voters": "the ids of the voters",
    "replicas": "the brokers with a replica, the preferred leader first",
    "isr": "the in-sync replicas",
    "elr": "the eligible leader replicas (KIP-966)",
    "last_known_elr": "the last known eligible leader replicas (KIP-966)",
    "added": "the members that are new",
    "removed": "the members that left",
    "size": "the number of members of the ISR",
    "replication_factor": "the number of replicas",
    "adding_replicas": "the replicas that a reassignment adds",
    "removing_replicas": "the replicas that a reassignment removes",
    "from_replicas": "the replicas before",
    "to_replicas": "the replicas to reach",
    "offset": "the offset of the record",
    "time": "the time of the record",
    "timestamp": "the time of the record",
    "timestamp_ms": "the time of the record, in ms since 1970",
    "type": "the type of the record, as Kafka names it",
    "name": "the name of the config",
    "value": "the value of the config",
    "start_offset": "the offset of the record with which it begins",
    "start_time": "when it begins",
    "start_ms": "when it begins, in ms since 1970",
    "end_offset": "the offset of the record with which it ends; null while it lasts",
    "end_time": "when it ends; null while it lasts",
    "end_ms": "when it ends, in ms since 1970; null while it lasts",
    "duration_ms": "how long it lasts, in ms; up to the last record of the log if it has no end",
    "created_time": "when it was created",
    "created_ms": "when it was created, in ms since 1970",
    "changed_time": "the time of the last record about it",
    "changed_ms": "the time of the last record about it, in ms since 1970",
    "removed_offset": "the offset of its removal; null while it exists",
    "removed_time": "when it was removed; null while it exists",
    "removed_ms": "when it was removed, in ms since 1970; null while it exists",
    "registered_offset": "the offset of the first record with this broker epoch",
    "registered_ms": "the time of that record, in ms since 1970",
    "unfenced_ms": "when it entered service, in ms since 1970",
    "total_ms": "the known life of the partition, in ms",
    "leaderless_ms": "the time without a leader, in ms",
    "windows": "every time without a leader, in order",
    "cause": "the cause that the record states, or unknown",
    "end_cause": "the cause of the end; null while it lasts",
    "longest_out_ms": "the longest time outside of the ISR, in ms",
    "first_left_ms": "when it left for the first time, in ms since 1970",
    "last_left_ms": "when it left for the last time, in ms since 1970",
    "first_registered_ms": "when it registered for the first time, in ms since 1970",
    "joined_time": "when it entered the ISR",
    "joined_ms": "when it entered the ISR, in ms since 1970",
    "last_ms": "the time of that record, in ms since 1970",
}
"""Texts of columns that mean the same in all tables that have them."""

OF_RECORDS = {
    "cluster_id": "the cluster, from meta.properties, or the path of the log",
    "node_id": "the node whose log this is",
    "snapshot_index": "the position in the base snapshot; null for rows of the log",
    "epoch": "the epoch of the controller that wrote the record",
    "effective": "false in a metadata transaction without effect (KIP-868)",
    "version": "the version of the record",
    "partition_id": "the number of the partition in its topic",
    "leader_recovery_state": "1: elected uncleanly, not recovered yet",
    "broker_id": "the broker's id",
    "incarnation_id": "the id of the broker's process",
    "fenced": "true: the broker is fenced; false: it is in service",
    "in_controlled_shutdown": "true: the broker is shutting down",
    "controller_id": "the controller's id",
    "resource_type": "2: topic, 4: broker, 8: broker logger, 16: client metrics, 32: group",
    "resource_name": "the topic or the broker; empty: the default of all brokers",
    "name": "the name of a config, a quota, a feature or a metadata transaction",
    "value": "the value of a config or a quota; of a remark, a sentence",
    "feature_level": "the finalized level of the feature",
    "remark": "a problem with the log here; null if the record was read",
    "remark_end": "of damage: the first offset that can be read again",
    "committed": "true if the files prove it, false if it is not committed, null if not known",
    "file": "the file that holds the record",
    "record": "the record as Kafka's JSON",
}
"""Texts of columns of the data source that mean something else in it, or that only it has."""


def columns_of(make: Make) -> list[ColumnText]:
    """Return the columns that the docstring of a table's function lists, with their texts.

    The compiler removes the indentation of docstrings since Python 3.13, and cleandoc does so in
    any version."""
    _, _, listed = inspect.cleandoc(make.__doc__ or "").partition("\n\n")
    found = re.findall(r"^([a-z_]+) +([a-z]+(?:<.*>)?)(?: +(\S.*))?$", listed, re.MULTILINE)
    return [ColumnText(name, kind, text or COMMON.get(name, "")) for name, kind, text in found]


def of_records(columns: dict[str, str]) -> list[ColumnText]:
    """Return the columns of the table `records` from the columns of the data source."""
    return [
        ColumnText(name, kind, OF_RECORDS.get(name) or COMMON.get(name, ""))
        for name, kind in columns.items()
        if name != "effective"
    ]


def summary_of(make: Make) -> str:
    """Return the text of a table: its function's docstring up to the list of columns."""
    return inspect.cleandoc(make.__doc__ or "").partition("\n\n")[0].replace("\n", " ")


def with_comments(table: DataFrame, columns: list[ColumnText]) -> DataFrame:
    """Return the table with the texts as comments of its columns, which `DESCRIBE` shows."""
    texts = {column.name: column.text for column in columns}
    return table.select(
        *(
            f.col(f"`{name}`").alias(name, metadata={"comment": texts[name]})
            if texts.get(name)
            else f.col(f"`{name}`")
            for name in table.columns
        )
    )
