"""The tables of the console, made of one reading of the cluster. All functions are pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from quorate.cli.console.views.table import Row, Table
from quorate.cli.status.cluster_status import Status
from quorate.cli.status.partition_problems import RANKS, Problem
from quorate.cli.topics.topic_view import PartitionView, TopicView

OK = "ok"
BROKERS = ("broker", "state", "leads", "replicas", "address", "rack", "cause")
TOPICS = ("topic", "state", "problems", "partitions", "replication", "min ISR")
PARTITIONS = ("topic", "partition", "state", "leader", "isr", "replicas", "cause")

NOT_KNOWN = "?"
OF_TOPICS = ("topics", "partitions", "counts", "causes", "elections")
"""The values of the overview that controllers do not know."""


@dataclass(frozen=True, slots=True)
class ClusterTables:
    """One reading of the cluster. `overview` has the values above the tables, as JSON values."""

    overview: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, Table] = field(
        default_factory=lambda: {
            "brokers": Table(BROKERS, ()),
            "topics": Table(TOPICS, ()),
            "partitions": Table(PARTITIONS, ()),
        }
    )

    def with_views(self, views: Mapping[str, Table]) -> ClusterTables:
        """Return the same reading with the tables of `views` in addition."""
        return ClusterTables(self.overview, {**self.tables, **views})


def tables_of(status: Status, topics: Sequence[TopicView]) -> ClusterTables:
    """Return the tables of a status, which must describe exactly these topics."""
    found = {(each.topic, each.partition): each for each in status.problems}
    return ClusterTables(
        overview_of(status),
        {
            "brokers": Table(BROKERS, broker_rows(status, topics)),
            "topics": Table(TOPICS, topic_rows(status, topics)),
            "partitions": Table(PARTITIONS, partition_rows(topics, found)),
        },
    )


def tables_in_outage(status: Status, before: ClusterTables) -> ClusterTables:
    """Return the tables `before` with the quorum and the brokers of a status from controllers,
    which do not know the topics."""
    overview = overview_of(status)
    kept = {key: before.overview[key] for key in OF_TOPICS if key in before.overview}
    rows = [(row[0], row[1], NOT_KNOWN, NOT_KNOWN, *row[4:]) for row in broker_rows(status, ())]
    return ClusterTables({**overview, **kept}, {**before.tables, "brokers": Table(BROKERS, rows)})


def overview_of(status: Status) -> dict[str, Any]:
    """Return the lines and counts above the tables."""
    lines = list(status.lines())
    return {
        "cluster_id": status.cluster_id,
        "quorum": next(line for line in lines if line.startswith("Quorum: ")),
        "lost": bool(status.quorum_lost),
        "brokers": len(status.brokers),
        "fenced": sum(each.state != "up" for each in status.brokers),
        "topics": status.topics,
        "partitions": status.partitions,
        "counts": dict(status.counts),
        "causes": [each.line() for each in status.groups],
        "elections": [each.line() for each in status.unclean_elections[:5]],
    }


def broker_rows(status: Status, topics: Sequence[TopicView]) -> list[Row]:
    """Return a row for each broker, fenced ones first."""
    leads: dict[int, int] = {}
    replicas: dict[int, int] = {}
    for partition in (each for topic in topics for each in topic.partitions):
        if partition.leader is not None:
            leads[partition.leader] = leads.get(partition.leader, 0) + 1
        for broker in partition.replicas:
            replicas[broker] = replicas.get(broker, 0) + 1
    return [
        (
            each.id,
            each.state,
            leads.get(each.id, 0),
            replicas.get(each.id, 0),
            each.address,
            each.rack,
            each.why,
        )
        for each in sorted(status.brokers, key=lambda each: (each.state == "up", each.id))
    ]


def topic_rows(status: Status, topics: Sequence[TopicView]) -> list[Row]:
    """Return a row for each topic, with its worst state. The topics with problems come first."""
    worst: dict[str, str] = {}
    counts: dict[str, int] = {}
    for each in status.problems:
        worst.setdefault(each.topic, each.state)  # the worst problem comes first
        counts[each.topic] = counts.get(each.topic, 0) + 1
    ordered = sorted(topics, key=lambda each: (RANKS.get(worst.get(each.name, ""), 9), each.name))
    return [
        (
            each.name,
            worst.get(each.name, OK),
            counts.get(each.name, 0),
            len(each.partitions),
            max((one.replication_factor for one in each.partitions), default=0),
            each.min_isr,
        )
        for each in ordered
    ]


def partition_rows(
    topics: Sequence[TopicView], found: Mapping[tuple[str, int], Problem]
) -> list[Row]:
    """Return a row for each partition. Those in `found`, which is ordered, come first."""
    bad: dict[tuple[str, int], Row] = {}
    good: list[Row] = []
    for topic in topics:
        for each in topic.partitions:
            key = topic.name, each.partition
            problem = found.get(key)
            row = partition_row(topic.name, each, problem)
            if problem is None:
                good.append(row)
            else:
                bad[key] = row
    return [*(bad[key] for key in found if key in bad), *good]


def partition_row(topic: str, partition: PartitionView, problem: Problem | None) -> Row:
    """Return the row of a partition. Its cause holds the visible reasons and the recorded one."""
    reasons: list[str] = []
    if problem is not None:
        reasons = [*map(str, problem.reasons), *([problem.why] if problem.why else [])]
    return (
        topic,
        partition.partition,
        OK if problem is None else problem.state,
        partition.leader,
        partition.isr,
        partition.replicas,
        "; ".join(reasons),
    )
