"""The output of `quorate reassign-partitions --list` and --verify, in the lines of Kafka's tool."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from quorate.cli.client.admin import Admin
from quorate.cli.reassign import reassignments
from quorate.cli.reassign.move_tables import ongoing_table
from quorate.cli.reassign.partition_files import TopicPartition, text_of
from quorate.cli.reassign.plan import Assignment
from quorate.cli.terminal.safe_text import echo
from quorate.cli.terminal.tables import show


def print_all(admin: Admin, output: str) -> None:
    """Print all reassignments that are in progress, as text or, if `output` is "json", as JSON."""
    ongoing = reassignments.ongoing_reassignments(admin)
    if output == "json":
        found = [
            {
                "topic": topic,
                "partition": partition,
                "replicas": list(each.replicas),
                "adding": list(each.adding),
                "removing": list(each.removing),
            }
            for (topic, partition), each in ongoing.items()
        ]
        echo(json.dumps(found, indent=2))
        return
    if not ongoing:
        echo("No partition reassignments found.")
        return
    show(lines(ongoing), [ongoing_table(ongoing)])


def lines(ongoing: Mapping[TopicPartition, reassignments.Ongoing]) -> Iterator[str]:
    """Yield the lines of Kafka's tool."""
    yield "Current partition reassignments:"
    for key, each in ongoing.items():
        parts = (
            ("replicas", each.replicas),
            ("adding", each.adding),
            ("removing", each.removing),
        )
        shown = [f"{name}: {','.join(map(str, ids))}." for name, ids in parts if ids]
        yield f"{text_of(key)}: {' '.join(shown)}"


def verify_lines(
    plan: Assignment, present: Assignment, ongoing: Mapping[TopicPartition, reassignments.Ongoing]
) -> Iterator[str]:
    """Yield a line for each partition of the plan. `present` are the current replicas."""
    for key in sorted(plan):
        if key in ongoing:
            yield f"Reassignment of partition {text_of(key)} is still in progress."
        else:
            yield done_line(key, present.get(key, ()), plan[key])


def done_line(key: TopicPartition, present: tuple[int, ...], target: tuple[int, ...]) -> str:
    """Return the line of a partition that is not being reassigned."""
    if present == target:
        return f"Reassignment of partition {text_of(key)} is completed."
    return (
        f"There is no active reassignment of partition {text_of(key)}, but replica set is "
        f"{','.join(map(str, present))} rather than {','.join(map(str, target))}."
    )
