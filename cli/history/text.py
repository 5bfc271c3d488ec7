"""The output lines of `quorate history`: states, stories of partitions, and rows."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from quorate.cli.terminal.safe_text import safe_lines
from quorate.cli.terminal.tables import MAX_ROWS, Table, Value, is_drawn, terminal_lines
from quorate.quorum.analytics.log.text import clock, span

if TYPE_CHECKING:
    from quorate.quorum.analytics.replay.story import Event, Stories, Story


WIDTH_ROWS = 1_000
"""The number of rows from which the widths of columns are computed. Later cells may be wider."""


def table_lines(names: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of a table, without more than WIDTH_ROWS rows in memory.

    Columns are as wide as the cells of the first rows, and numbers are right-aligned."""
    following = iter(rows)
    first = list(islice(following, WIDTH_ROWS))
    cells = [[_cell(row[name]) for name in names] for row in first]
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    numeric = [
        bool(first) and all(isinstance(row[name], int | float) for row in first) for name in names
    ]
    later = ([_cell(row[name]) for name in names] for row in following)
    for line in chain([[*names]], cells, later):
        padded = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, numeric, strict=True)
        )
        yield "  ".join(padded).rstrip()


def shown_lines(
    names: Sequence[str], rows: Iterable[Mapping[str, Any]], indent: int = 0
) -> Iterator[str]:
    """Yield the lines of a table for standard output. A terminal gets a drawn table if there are at
    most MAX_ROWS rows. Plain lines are indented by `indent` spaces."""
    following = iter(rows)
    if is_drawn(sys.stdout):
        first = list(islice(following, MAX_ROWS + 1))
        if len(first) <= MAX_ROWS:
            cells = [[_value(row[name]) for name in names] for row in first]
            yield from terminal_lines([Table(columns=names, rows=cells)])
            return
        following = chain(first, following)
    lines = (f"{' ' * indent}{line}" for line in table_lines(names, following))
    yield from safe_lines(lines, sys.stdout)


def _value(value: object) -> Value:
    return value if isinstance(value, int | float) or value is None else _cell(value)


def json_lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of a JSON array, with one row in each line."""
    opened = "["
    for row in rows:
        yield opened + json.dumps(row, default=str)
        opened = ","
    yield "[]" if opened == "[" else "]"


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="milliseconds")
    if isinstance(value, list | dict):
        return json.dumps(value, default=str)
    return str(value)


# The state at a moment.


def moment_lines(state: Mapping[str, Any], part: str = "") -> Iterator[str]:
    """Yield the lines of the cluster's state at a moment. `part` describes what is shown of it."""
    quorum = state["quorum"]
    leader = "unknown" if quorum["leader"] is None else quorum["leader"]
    yield f"offset {state['offset']}, {state['time']} UTC"
    if part:
        yield f"only {part}"
    yield f"quorum: leader {leader}, epoch {quorum['epoch']}, voters {_ids(quorum['voters'])}"
    features = ", ".join(f"{name} {level}" for name, level in state["features"].items())
    yield f"features: {features or 'none'}"
    for broker in state["brokers"]:
        rack = f", rack {broker['rack']}" if broker["rack"] else ""
        at = "".join(f", {endpoint}" for endpoint in broker["endpoints"])
        yield f"broker {broker['id']}: {broker['standing']}, epoch {broker['epoch']}{rack}{at}"
    for topic in state["topics"]:
        yield f"topic {topic['name']} ({topic['id']}), {len(topic['partitions'])} partitions"
        for partition in topic["partitions"]:
            yield f"  {_partition(partition)}"
    for config in state["configs"]:
        name = config["resource_name"] or "(default)"
        values = ", ".join(f"{key}={value}" for key, value in config["configs"].items())
        yield f"config of {config['resource_type']} {name}: {values}"
    for quota in state.get("client_quotas", ()):
        entity = ", ".join(
            f"the default {kind}" if name is None else f"{kind} {name}"
            for kind, name in quota["entity"].items()
        )
        values = ", ".join(f"{key}={value}" for key, value in quota["quotas"].items())
        yield f"quotas of {entity}: {values}"
    for credential in state.get("scram_credentials", ()):
        yield (
            f"{credential['mechanism']} credential of user {credential['user']}: "
            f"{credential['iterations']} iterations"
        )
    for acl in state.get("acls", ()):
        yield (
            f"acl: {acl['permission']} {acl['operation']} on {acl['pattern_type']} "
            f"{acl['resource_type']} {acl['resource_name']} for {acl['principal']} "
            f"from {acl['host']}"
        )
    if state.get("skipped"):
        skipped = ", ".join(f"{count} {kind}" for kind, count in state["skipped"].items())
        yield f"not shown, because Quorate does not know them: {skipped}"


def _partition(partition: Mapping[str, Any]) -> str:
    leader = "none" if partition["leader"] < 0 else partition["leader"]
    parts = [
        f"partition {partition['partition']}: leader {leader}",
        f"leader epoch {partition['leader_epoch']}",
        f"replicas {_ids(partition['replicas'])}",
        f"isr {_ids(partition['isr'])}",
    ]
    sets = ("elr", "last_known_elr", "adding_replicas", "removing_replicas")
    parts += [
        f"{each.replace('_', ' ')} {_ids(partition[each])}" for each in sets if partition[each]
    ]
    if partition["leader_recovery_state"]:
        parts.append("recovering from an unclean election")
    return ", ".join(parts)


def _ids(ids: Sequence[int]) -> str:
    return ",".join(map(str, ids)) or "none"


# Stories of partitions.


def story_lines(stories: Stories) -> Iterator[str]:
    """Yield the lines of the stories, with an empty line between them."""
    for number, story in enumerate(stories.told):
        if number:
            yield ""
        yield f"{story.topic}-{story.partition} (topic id {story.topic_id})"
        for event in story.events:
            yield f"{clock(event.timestamp_ms)}  offset {event.offset}  {event.what}"
            yield f"    {_reason(event)}"
        yield _end(story, stories)


def _reason(event: Event) -> str:
    cause = f" [{event.cause}]" if event.cause else ""
    return f"{'Inferred: ' if event.inferred else ''}{event.why}{cause}"


def _end(story: Story, stories: Stories) -> str:
    state = story.state
    lost_ms = story.without_leader_ms + story.leaderless_ms(stories.end_ms)
    lost = f" Without a leader for {span(lost_ms)} in all." if lost_ms else ""
    when = f"When the log ends, {clock(stories.end_ms)}, offset {stories.end_offset}:"
    if state is None:
        return f"{when} it is deleted.{lost}"
    if state.leader < 0:
        return f"{when} nobody leads it, isr {_ids(state.isr)}.{lost}"
    return f"{when} broker {state.leader} leads, isr {_ids(state.isr)}.{lost}"


def story_json(stories: Stories) -> dict[str, Any]:
    """Return the stories as JSON values. Times are in ms."""
    return {
        "end_offset": stories.end_offset,
        "end_ms": stories.end_ms,
        "partitions": [
            {
                "topic": story.topic,
                "topic_id": story.topic_id,
                "partition": story.partition,
                "without_leader_ms": story.without_leader_ms + story.leaderless_ms(stories.end_ms),
                "events": [_event_json(event) for event in story.events],
            }
            for story in stories.told
        ],
    }


def _event_json(event: Event) -> dict[str, Any]:
    state = event.partition
    return {
        "offset": event.offset,
        "timestamp_ms": event.timestamp_ms,
        "time": clock(event.timestamp_ms),
        "what": event.what,
        "why": event.why,
        "cause": event.cause,
        "inferred": event.inferred,
        "leader": None if state is None else state.leader,
        "leader_epoch": None if state is None else state.leader_epoch,
        "isr": None if state is None else list(state.isr),
        "replicas": None if state is None else list(state.replicas),
    }
