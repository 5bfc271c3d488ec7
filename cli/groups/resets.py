"""`consumer-groups --reset-offsets`: new committed offsets for a group without members.

Exactly one scenario option, such as --to-earliest, determines the offsets."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from quorate.cli.client.admin import Admin
from quorate.cli.client.errors import Refused, said_once
from quorate.cli.client.groups import Groups, Place
from quorate.cli.groups.group_view import reset_lines
from quorate.cli.log_ends import LogEnds, places_of
from quorate.cli.terminal.safe_text import echo

DEAD, EMPTY = "Dead", "Empty"
Target = Callable[[Place, int | None, LogEnds], int]
"""A function from a partition and its committed offset (None: none) to the new offset."""
Planned = dict[Place, int]
"""The new offset of each partition."""
DURATION = re.compile(
    r"P(?:(?P<days>\d+)D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)
UNIT_MS = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1_000}


def reset(admin: Admin, groups: Groups, names: Sequence[str], options: dict[str, Any]) -> None:
    """Compute and print the new offsets of each group, and commit them with --execute.

    A group that does not exist is accepted. Raise Refused if a group has members. The offsets of
    the groups before it are then committed."""
    plan = plan_of(options)
    if not (options["execute"] or options["dry_run"]):
        echo("WARN: No action will be performed as the --execute option is missing.", err=True)
    for name in names:
        state = groups.describe(name).group_state
        if state not in (EMPTY, DEAD):
            raise Refused(
                f"Assignments can only be reset if the group '{name}' is inactive, "
                f"but the current state is {state}."
            )
        planned = plan(name, groups.offsets(name), LogEnds(admin))
        if options["execute"] and not options["dry_run"]:
            groups.commit(name, planned)
        lines = exported(name, planned, names) if options["export"] else reset_lines(name, planned)
        for line in lines:
            echo(line)


def exported(group: str, planned: Planned, groups: Sequence[str]) -> list[str]:
    """Return the lines of Kafka's CSV, which name the group if there are several."""
    prefix = f"{group}," if len(groups) > 1 else ""
    return [
        f"{prefix}{topic},{number},{offset}" for (topic, number), offset in sorted(planned.items())
    ]


def plan_of(options: dict[str, Any]) -> Callable[[str, Mapping[Place, int], LogEnds], Planned]:
    """Return the function that computes the new offsets of a group.

    Raise UsageError unless the options give one scenario, and topics for it."""
    wanted = target_of(options)
    if wanted is None:
        given = offsets_in(options["from_file"])

        def from_file(group: str, committed: Mapping[Place, int], ends: LogEnds) -> Planned:
            return {
                place: within(place, offset, ends)
                for name, place, offset in given
                if name in (None, group)
            }

        return from_file
    if not options["topics"] and not options["all_topics"]:
        raise click.UsageError("--reset-offsets requires --topic or --all-topics")
    target = wanted

    def by_scenario(group: str, committed: Mapping[Place, int], ends: LogEnds) -> Planned:
        places = committed if options["all_topics"] else places_of(options["topics"], ends)
        return {each: target(each, committed.get(each), ends) for each in places}

    return by_scenario


def target_of(options: dict[str, Any]) -> Target | None:
    """Return the function of the one scenario that the options choose, or None for --from-file.

    With --to-offset and --shift-by, an offset outside of the log becomes the nearer end of the log.
    Without a committed offset, --to-current gives the log end, and --shift-by raises Refused when
    the function is called. Raise UsageError unless exactly one scenario is given."""

    def current(place: Place, committed: int | None, ends: LogEnds) -> int:
        return ends(place) if committed is None else committed

    def shifted(place: Place, committed: int | None, ends: LogEnds) -> int:
        if committed is None:
            raise Refused(
                f"Cannot shift offset for partition {shown(place)}: no offset is committed"
            )
        return within(place, committed + options["shift_by"], ends)

    def since(time_ms: int) -> Target:
        return lambda place, committed, ends: at_time(place, time_ms, ends)

    scenarios: dict[str, Callable[[], Target | None]] = {
        "to_earliest": lambda: lambda place, committed, ends: ends.earliest(place),
        "to_latest": lambda: lambda place, committed, ends: ends(place),
        "to_current": lambda: current,
        "to_offset": lambda: (
            lambda place, committed, ends: within(place, options["to_offset"], ends)
        ),
        "shift_by": lambda: shifted,
        "to_datetime": lambda: since(time_of(options["to_datetime"])),
        "by_duration": lambda: since(now_ms() - duration_ms(options["by_duration"])),
        "from_file": lambda: None,
    }
    chosen = [name for name in scenarios if options[name] not in (None, False)]
    if len(chosen) != 1:
        listed = ", ".join(f"--{name.replace('_', '-')}" for name in scenarios)
        raise click.UsageError(f"--reset-offsets requires exactly one of {listed}")
    return scenarios[chosen[0]]()


def within(place: Place, offset: int, ends: LogEnds) -> int:
    """Return the offset, limited to the partition's log. A change is reported on standard error."""
    low, high = ends.earliest(place), ends(place)
    allowed = min(max(offset, low), high)
    if allowed != offset:
        side = "lower than earliest" if offset < low else "higher than latest"
        text = f"New offset ({offset}) is {side} offset for topic partition {shown(place)}."
        echo(f"WARN {text} Value will be set to {allowed}", err=True)
    return allowed


def at_time(place: Place, time_ms: int, ends: LogEnds) -> int:
    """Return the first offset at or after a time in ms, or the log end offset with a warning.

    A time before 1970 counts as 0, because negative numbers are no times in ListOffsets."""
    found = ends.at(place, max(0, time_ms))
    if found >= 0:
        return found
    echo(
        f"Warn: Partition {place[1]} from topic {place[0]} has no record of that time or later. "
        "Falling back to latest known offset.",
        err=True,
    )
    return ends(place)


def now_ms() -> int:
    """Return the wall clock in ms since 1970."""
    return int(time.time() * 1000)


def time_of(text: str) -> int:
    """Return a date and time in ms since 1970. Without a zone it is UTC.

    Raise UsageError if it is not ISO 8601 with a time."""
    try:
        if "T" not in text:
            raise ValueError
        given = datetime.fromisoformat(text)
    except ValueError:
        raise click.UsageError(
            f"--to-datetime: value {text!r} must be YYYY-MM-DDTHH:MM:SS.sss, with or without a zone"
        ) from None
    if given.tzinfo is None:
        given = given.replace(tzinfo=UTC)
    return int(given.timestamp() * 1000)


def duration_ms(text: str) -> int:
    """Return an ISO 8601 duration in ms. Raise UsageError if it is malformed."""
    found = DURATION.fullmatch(text)
    if found is None or text == "P":
        raise click.UsageError(
            f"--by-duration: value {text!r} must be PnDTnHnMnS, such as P7D or PT1H30M"
        )
    return sum(int(float(found[unit] or 0) * each_ms) for unit, each_ms in UNIT_MS.items())


def offsets_in(path: str) -> list[tuple[str | None, Place, int]]:
    """Return the (group or None, partition, offset) of each line of [GROUP,]TOPIC,PARTITION,OFFSET.

    Raise Refused, which names the line, if one is invalid."""
    try:
        text = Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(said_once(error, path)) from None
    found: list[tuple[str | None, Place, int]] = []
    for number, line in enumerate(text.splitlines(), 1):
        *names, partition, offset = ["", "", *(each.strip() for each in line.split(","))]
        group, topic = names[-2:]
        if not partition.isdecimal() or not offset.isdecimal() or not topic or len(names) > 4:
            raise Refused(f"{path}:{number}: {line!r} must be [GROUP,]TOPIC,PARTITION,OFFSET")
        found.append((group or None, (topic, int(partition)), int(offset)))
    return found


def shown(place: Place) -> str:
    """Return Kafka's name of a partition."""
    return f"{place[0]}-{place[1]}"
