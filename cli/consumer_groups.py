"""`quorate consumer-groups`: list, describe and delete consumer groups, and reset their offsets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import click

from quorate.cli.client.admin import Admin
from quorate.cli.client.consumer import EARLIEST, LATEST, Consumer
from quorate.cli.client.groups import Groups, Place
from quorate.cli.client.options import cluster_options, connected, format_option
from quorate.cli.errors import Refused
from quorate.cli.group_view import (
    listing_lines,
    member_lines,
    offset_lines,
    offset_rows,
    reset_lines,
    state_lines,
)
from quorate.quorum.rpc.kafka.errors import ErrorCode
from quorate.quorum.rpc.kafka.schemas.group_admin import DescribedGroup

DEAD, EMPTY, STABLE = "Dead", "Empty", "Stable"
ACTIONS = ("list_", "describe", "delete", "reset_offsets")


@click.command("consumer-groups")
@cluster_options()
@format_option
@click.option("--list", "list_", is_flag=True, help="All groups.")
@click.option("--describe", is_flag=True, help="Offsets, members or state of groups.")
@click.option("--delete", is_flag=True, help="Delete groups that have no members.")
@click.option("--reset-offsets", is_flag=True, help="Move a group without members elsewhere.")
@click.option("--group", "groups", multiple=True, help="A group; may be given several times.")
@click.option("--all-groups", is_flag=True, help="All of them.")
@click.option("--offsets", is_flag=True, help="With --describe (the default).")
@click.option("--members", is_flag=True, help="With --describe.")
@click.option("--state", is_flag=True, help="With --describe or --list.")
@click.option("--verbose", is_flag=True, help="With --members: what they are assigned.")
@click.option("--topic", "topics", multiple=True, help="TOPIC or TOPIC:0,1 to reset.")
@click.option("--all-topics", is_flag=True, help="Reset all that the group committed.")
@click.option("--to-earliest", is_flag=True)
@click.option("--to-latest", is_flag=True)
@click.option("--to-current", is_flag=True)
@click.option("--to-offset", type=click.IntRange(min=0))
@click.option("--shift-by", type=int, help="Forward, or back if negative.")
@click.option("--execute", is_flag=True, help="Do it.")
@click.option("--dry-run", is_flag=True, help="Only show it (the default).")
def consumer_groups(
    bootstrap_server: str | None,
    command_config: str | None,
    timeout_s: float | None,
    **options: Any,
) -> None:
    """List, describe, delete and reset consumer groups."""
    chosen = [name for name in ACTIONS if options[name]]
    if len(chosen) != 1:
        raise click.UsageError(
            "Command must include exactly one action: --list, --describe, --delete, --reset-offsets"
        )
    (action,) = chosen
    if action != "list_" and not options["groups"] and not options["all_groups"]:
        raise click.UsageError(f"--{action.replace('_', '-')} takes --group or --all-groups")
    with connected(
        bootstrap_server=bootstrap_server, command_config=command_config, timeout_s=timeout_s
    ) as admin:
        groups = Groups(admin)
        names = options["groups"]
        if options["all_groups"]:
            names = [each.group_id for each in groups.names()]
        DO[action](admin, groups, names, options)


def list_groups(admin: Admin, groups: Groups, names: list[str], options: dict[str, Any]) -> None:
    found = groups.names()
    if options["output"] == "json":
        shown = [{"group": each.group_id, "state": each.group_state} for each in found]
        click.echo(json.dumps(shown))
    elif options["state"]:
        echo(listing_lines(found))
    else:
        for each in found:
            click.echo(each.group_id)


def describe(admin: Admin, groups: Groups, names: list[str], options: dict[str, Any]) -> None:
    ends = Ends(admin)
    as_json = []
    missing = []
    for name in sorted(names):
        described = groups.describe(name)
        if described.group_state == DEAD:
            missing.append(name)
            continue
        rows = []
        if not (options["members"] or options["state"]):
            rows = offset_rows(described, groups.offsets(name), ends)
        if options["output"] == "json":
            state = {"group": name, "state": described.group_state}
            as_json.append({**state, "offsets": [each.as_json() for each in rows]})
            continue
        warn(described)
        if options["members"] and described.members:
            echo(member_lines(described, verbose=options["verbose"]))
        elif options["state"]:
            echo(state_lines(described, groups.coordinator(name)))
        elif rows:
            echo(offset_lines(rows))
    if options["output"] == "json":
        click.echo(json.dumps(as_json))
    if missing:
        raise Refused("\n".join(f"Consumer group '{name}' does not exist." for name in missing))


def warn(described: DescribedGroup) -> None:
    name = described.group_id
    if described.group_state == EMPTY:
        click.echo(f"\nConsumer group '{name}' has no active members.", err=True)
    elif described.group_state != STABLE:
        click.echo(f"\nWarning: Consumer group '{name}' is rebalancing.", err=True)


def delete(admin: Admin, groups: Groups, names: list[str], options: dict[str, Any]) -> None:
    results = {name: groups.delete(name) for name in names}
    failed = {name: error for name, error in results.items() if error}
    if not failed:
        done = ", ".join(results)
        click.echo(f"Deletion of requested consumer groups ('{done}') was successful.")
        return
    lines = [
        f"* Group '{name}' could not be deleted due to: {error.name}: {error.message}"
        for name, error in failed.items()
    ]
    raise Refused("\n".join(["Deletion of some consumer groups failed:", *lines]))


def reset(admin: Admin, groups: Groups, names: list[str], options: dict[str, Any]) -> None:
    wanted = target_of(options)
    if not options["topics"] and not options["all_topics"]:
        raise click.UsageError("--reset-offsets takes --topic or --all-topics")
    if not (options["execute"] or options["dry_run"]):
        click.echo(
            "WARN: No action will be performed as the --execute option is missing.", err=True
        )
    for name in names:
        state = groups.describe(name).group_state
        if state not in (EMPTY, DEAD):
            raise Refused(
                f"Assignments can only be reset if the group '{name}' is inactive, "
                f"but the current state is {state}."
            )
        committed = groups.offsets(name)
        ends = Ends(admin)
        places = committed if options["all_topics"] else places_of(options["topics"], ends)
        planned = {each: wanted(each, committed.get(each), ends) for each in places}
        if options["execute"] and not options["dry_run"]:
            groups.commit(name, planned)
        echo(reset_lines(name, planned))


Target = Callable[[Place, int | None, "Ends"], int]


def target_of(options: dict[str, Any]) -> Target:
    """The one scenario that was chosen; what lies beyond an end of the log becomes that end."""

    def current(place: Place, committed: int | None, ends: Ends) -> int:
        return ends(place) if committed is None else committed

    def shifted(place: Place, committed: int | None, ends: Ends) -> int:
        if committed is None:
            raise Refused(f"Cannot shift offset for partition {shown(place)}: none is committed")
        return within(place, committed + options["shift_by"], ends)

    scenarios: dict[str, Target] = {
        "to_earliest": lambda place, committed, ends: ends.earliest(place),
        "to_latest": lambda place, committed, ends: ends(place),
        "to_current": current,
        "to_offset": lambda place, committed, ends: within(place, options["to_offset"], ends),
        "shift_by": shifted,
    }
    chosen = [name for name in scenarios if options[name] not in (None, False)]
    if len(chosen) != 1:
        listed = ", ".join(f"--{name.replace('_', '-')}" for name in scenarios)
        raise click.UsageError(f"--reset-offsets takes exactly one of {listed}")
    return scenarios[chosen[0]]


def within(place: Place, offset: int, ends: Ends) -> int:
    low, high = ends.earliest(place), ends(place)
    allowed = min(max(offset, low), high)
    if allowed != offset:
        side = "lower than earliest" if offset < low else "higher than latest"
        text = f"New offset ({offset}) is {side} offset for topic partition {shown(place)}."
        click.echo(f"WARN {text} Value will be set to {allowed}", err=True)
    return allowed


class Ends:
    """Where partitions start and end; topics are looked up once."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._topics: dict[str, Consumer] = {}

    def __call__(self, place: Place) -> int:
        return self._topic(place[0]).offset_of(place[1], LATEST)

    def earliest(self, place: Place) -> int:
        return self._topic(place[0]).offset_of(place[1], EARLIEST)

    def partitions(self, topic: str) -> list[int]:
        return self._topic(topic).numbers

    def _topic(self, name: str) -> Consumer:
        if name not in self._topics:
            self._topics[name] = Consumer(self._admin, name)
        return self._topics[name]


def places_of(topics: Iterable[str], ends: Ends) -> list[Place]:
    places = []
    for text in topics:
        name, colon, listed = text.partition(":")
        known = ends.partitions(name)
        try:
            wanted = [int(each) for each in listed.split(",")] if colon else known
        except ValueError:
            raise click.UsageError(f"--topic: value {text!r} must be TOPIC or TOPIC:0,1") from None
        for each in wanted:
            if each not in known:
                raise Refused(f"{ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.name}: {name}-{each}")
            places.append((name, each))
    return places


def shown(place: Place) -> str:
    return f"{place[0]}-{place[1]}"


def echo(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)


DO: dict[str, Callable[[Admin, Groups, list[str], dict[str, Any]], None]] = {
    "list_": list_groups,
    "describe": describe,
    "delete": delete,
    "reset_offsets": reset,
}
