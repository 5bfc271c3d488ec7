"""Readings of clusters of any size, made without a cluster."""

from __future__ import annotations

from quorate.cli.console.cluster_tables import ClusterTables, tables_of
from quorate.cli.console.views.views import Views
from quorate.cli.console.watcher import Reading
from quorate.cli.status.cluster_status import BrokerLine, Status
from quorate.cli.status.partition_problems import count_states, groups, problems
from quorate.cli.topics.topic_view import PartitionView, TopicView


def partition(number: int, leader: int | None = 4, isr: tuple[int, ...] = (4, 5)) -> PartitionView:
    return PartitionView(partition=number, leader=leader, replicas=(4, 5), isr=isr)


def topic(name: str, partitions: tuple[PartitionView, ...]) -> TopicView:
    return TopicView(name=name, topic_id=name, partitions=partitions, configs={}, min_isr=2)


def tables(topics: list[TopicView]) -> ClusterTables:
    """Return the tables of a cluster whose broker 4 is up and whose broker 5 is fenced."""
    found = problems(topics, frozenset({4}))
    brokers = (
        BrokerLine(id=4, address="b4:9092", state="up", rack=None),
        BrokerLine(id=5, address="b5:9092", state="fenced", rack="r1", why="session-expired"),
    )
    status = Status(
        cluster_id="c1",
        leader=1,
        epoch=3,
        high_watermark=120,
        voter_lags={1: 0, 2: 4},
        brokers=brokers,
        topics=len(topics),
        partitions=sum(len(each.partitions) for each in topics),
        problems=tuple(found),
        counts=count_states(found),
        groups=tuple(groups(found, {})),
    )
    return tables_of(status, topics).with_views(Views().tables())


def reading(partitions: int) -> Reading:
    """Return a reading: the last partition is offline, and the one before it lacks a replica."""
    made = [partition(number) for number in range(partitions)]
    made[-1] = partition(partitions - 1, None, ())
    made[-2] = partition(partitions - 2, 4, (4,))
    return Reading(1, tables([topic("orders", tuple(made))]))
