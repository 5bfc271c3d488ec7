"""Reassignments as tables of a terminal. All functions are pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from quorate.cli.reassign.partition_files import TopicPartition, text_of
from quorate.cli.reassign.reassignments import Ongoing
from quorate.cli.terminal.tables import Bar, Cell, Mark, Part, Table, Value

IN_PROGRESS = Cell("in progress", Mark.WARN)
COMPLETED = Cell("completed", Mark.GOOD)
OTHER_REPLICAS = Cell("not in progress, other replicas", Mark.BAD)


def ongoing_table(ongoing: Mapping[TopicPartition, Ongoing]) -> Table:
    """Return the table of --list."""
    return Table(
        columns=("Partition", "Replicas", "Adding", "Removing"),
        rows=[
            (text_of(key), ids(each.replicas), ids(each.adding), ids(each.removing))
            for key, each in ongoing.items()
        ],
    )


def progress_parts(
    plan: Mapping[TopicPartition, tuple[int, ...]],
    present: Mapping[TopicPartition, tuple[int, ...]],
    ongoing: Mapping[TopicPartition, Ongoing],
) -> Iterator[Part]:
    """Yield the tables of --verify: the share that is completed, then the partitions, those that
    need attention first. `present` are the current replicas."""
    rows: list[tuple[Cell, TopicPartition]] = []
    for key in sorted(plan):
        if key in ongoing:
            rows.append((IN_PROGRESS, key))
        else:
            is_done = present.get(key, ()) == plan[key]
            rows.append((COMPLETED if is_done else OTHER_REPLICAS, key))
    done = sum(state is COMPLETED for state, _ in rows)
    yield Table(rows=[("Completed", Bar(done, len(rows), "partitions"))])
    order = (OTHER_REPLICAS, IN_PROGRESS, COMPLETED)
    yield Table(
        columns=("Partition", "State", "Replicas", "Target"),
        rows=[
            (text_of(key), state, ids(present.get(key, ())), ids(plan[key]))
            for state, key in sorted(rows, key=lambda row: order.index(row[0]))
        ],
    )


def ids(values: Sequence[int]) -> Value:
    """Return ids separated by commas, or None if there are none."""
    return ",".join(map(str, values)) or None
