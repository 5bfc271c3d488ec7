"""Topics as tables of a terminal: one table for each topic, one row for each partition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quorate.cli.terminal.tables import Bar, Cell, Mark, Part, Table, Value
from quorate.cli.topics.topic_view import PartitionView, Report, TopicView, ids

COLUMNS = (
    "Partition",
    "Leader",
    "In sync",
    "ISR",
    "Replicas",
    "Adding",
    "Removing",
    "ELR",
    "Last known ELR",
)


def tables(topics: Sequence[TopicView], report: Report, live: frozenset[int]) -> Iterator[Part]:
    """Yield the tables of --describe that pass the filters. `live` are the ids of live brokers."""
    for topic in topics:
        if report.overrides:
            if topic.configs and not report.of_partitions:
                yield title(topic)
            continue
        rows = [
            row(partition, live)
            for partition in topic.partitions
            if report.shows(partition, topic.min_isr, live)
        ]
        if rows or not report.of_partitions:
            yield Table(title=title(topic), columns=COLUMNS, rows=rows)


def title(topic: TopicView) -> str:
    """Return the line above a topic's partitions."""
    configs = "".join(f", {name}={value}" for name, value in topic.configs.items())
    return f"{topic.name}: {len(topic.partitions)} partitions, id {topic.topic_id}{configs}"


def row(partition: PartitionView, live: frozenset[int]) -> tuple[Value, ...]:
    """Return the row of a partition. A leader that is not alive is marked."""
    leader = partition.leader
    return (
        partition.partition,
        leader if leader in live else Cell("none" if leader is None else str(leader), Mark.BAD),
        Bar(len(partition.isr), len(partition.replicas)),
        ids(partition.isr) or None,
        ids(partition.replicas),
        ids(partition.adding) or None,
        ids(partition.removing) or None,
        ids(partition.elr or ()) or None,
        ids(partition.last_known_elr or ()) or None,
    )
