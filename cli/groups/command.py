"""`quorate consumer-groups`: list, describe and delete consumer groups.

Resetting offsets is in resets.py, and the output lines are in group_view.py."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import click

from quorate.cli.client.admin import Admin
from quorate.cli.client.errors import Refused
from quorate.cli.client.groups import Groups, Place
from quorate.cli.client.options import cluster_options, connected, format_option
from quorate.cli.groups.group_tables import (
    listing_table,
    member_table,
    offset_table,
    state_table,
)
from quorate.cli.groups.group_view import (
    WHOLE_TOPIC,
    deletion_lines,
    listing_lines,
    member_lines,
    offset_lines,
    offset_rows,
    state_lines,
)
from quorate.cli.groups.resets import reset
from quorate.cli.log_ends import LogEnds, parts_of
from quorate.cli.parsing.option_rules import is_given, not_together
from quorate.cli.parsing.strict_command import StrictCommand
from quorate.cli.terminal.safe_text import echo
from quorate.cli.terminal.tables import show
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.group_admin import DescribedGroup

DEAD, EMPTY, STABLE = "Dead", "Empty", "Stable"
ACTIONS = ("list_", "describe", "delete", "reset_offsets", "delete_offsets")
OF_RESETS = (
    "all_topics",
    "to_earliest",
    "to_latest",
    "to_current",
    "to_offset",
    "shift_by",
    "to_datetime",
    "by_duration",
    "from_file",
    "export",
    "execute",
    "dry_run",
)
ACTIONS_OF = {
    "groups": ACTIONS[1:],
    "all_groups": ACTIONS[1:],
    "topics": ("reset_offsets", "delete_offsets"),
    "members": ("describe",),
    "offsets": ("describe",),
    "state": ("list_", "describe"),
    **dict.fromkeys(OF_RESETS, ("reset_offsets",)),
}
"""The actions that each option may be used with. Another action would ignore it: `--delete --topic`
would delete the group with the offsets of all topics, and `--delete --dry-run` would delete it."""
NOT_TOGETHER = (
    ("groups", "all_groups"),
    ("topics", "all_topics"),
    ("execute", "dry_run"),
    ("members", "offsets"),
    ("members", "state"),
    ("offsets", "state"),
)
"""The pairs of options of which the command would ignore one."""
SPELLINGS = {"groups": "group", "topics": "topic", "list_": "list"}
"""The options whose parameters have other names."""


@click.command("consumer-groups", cls=StrictCommand)
@cluster_options()
@format_option
@click.option("--list", "list_", is_flag=True, help="List all groups.")
@click.option(
    "--describe", is_flag=True, help="Print the offsets, the members or the state of groups."
)
@click.option("--delete", is_flag=True, help="Delete groups that have no members.")
@click.option(
    "--reset-offsets", is_flag=True, help="Set new committed offsets for groups without members."
)
@click.option(
    "--delete-offsets", is_flag=True, help="Delete the committed offsets of groups for --topic."
)
@click.option("--group", "groups", multiple=True, help="A group. May be repeated.")
@click.option("--all-groups", is_flag=True, help="All groups.")
@click.option(
    "--offsets", is_flag=True, help="With --describe: print offsets and lag (the default)."
)
@click.option("--members", is_flag=True, help="With --describe: print the members.")
@click.option("--state", is_flag=True, help="With --describe or --list: print the state.")
@click.option("--verbose", is_flag=True, help="With --members: print the assignments, too.")
@click.option(
    "--topic",
    "topics",
    multiple=True,
    help="A topic, or some of its partitions as TOPIC:0,1. May be repeated.",
)
@click.option(
    "--all-topics", is_flag=True, help="Reset all topics with committed offsets of the group."
)
@click.option("--to-earliest", is_flag=True, help="Reset to the first offset.")
@click.option("--to-latest", is_flag=True, help="Reset to the log end offset.")
@click.option("--to-current", is_flag=True, help="Reset to the committed offset.")
@click.option("--to-offset", type=click.IntRange(min=0), help="Reset to this offset.")
@click.option(
    "--shift-by",
    type=int,
    help="Move the offsets by this number of records, backwards if it is negative.",
)
@click.option(
    "--to-datetime",
    metavar="YYYY-MM-DDTHH:MM:SS.sss",
    help="Reset to the first record at or after this time. UTC unless an offset is given.",
)
@click.option(
    "--by-duration",
    metavar="PnDTnHnMnS",
    help="Reset to the first record at or after the present time minus this duration.",
)
@click.option(
    "--from-file", type=click.Path(), help="Reset to the offsets in a CSV file that --export wrote."
)
@click.option("--export", is_flag=True, help="Print the new offsets as CSV, for --from-file.")
@click.option("--execute", is_flag=True, help="Carry out the reset.")
@click.option(
    "--dry-run", is_flag=True, help="Print the new offsets without a reset (the default)."
)
def consumer_groups(
    bootstrap_server: str | None,
    command_config: str | None,
    timeout_s: float | None,
    **options: Any,
) -> None:
    """List, describe, delete and reset consumer groups.

    \b
    quorate consumer-groups -b HOST:PORT --describe --group audit
    quorate consumer-groups -b HOST:PORT --reset-offsets --group audit --all-topics --to-earliest"""
    chosen = [name for name in ACTIONS if options[name]]
    if len(chosen) != 1:
        raise click.UsageError(
            "Command must include exactly one action: --list, --describe, --delete, "
            "--reset-offsets, --delete-offsets"
        )
    (action,) = chosen
    check_options(action, options)
    if action != "list_" and not options["groups"] and not options["all_groups"]:
        raise click.UsageError(f"--{action.replace('_', '-')} requires --group or --all-groups")
    with connected(
        bootstrap_server=bootstrap_server, command_config=command_config, timeout_s=timeout_s
    ) as admin:
        groups = Groups(admin)
        names = options["groups"]
        if options["all_groups"]:
            names = [each.group_id for each in groups.names()]
        DO[action](admin, groups, names, options)


def check_options(action: str, options: dict[str, Any]) -> None:
    """Raise UsageError if the action would ignore an option, or if two options exclude each
    other."""
    given = {name for name, value in options.items() if is_given(value)}
    for name, actions in ACTIONS_OF.items():
        if name in given and action not in actions:
            raise not_together(spelt(name), spelt(action))
    for one, other in NOT_TOGETHER:
        if {one, other} <= given:
            raise not_together(spelt(one), spelt(other))


def spelt(name: str) -> str:
    """Return the name of a parameter as the user spells its option."""
    return SPELLINGS.get(name, name)


def list_groups(admin: Admin, groups: Groups, names: list[str], options: dict[str, Any]) -> None:
    """Print the groups, with their states if --state is given."""
    found = groups.names()
    if options["output"] == "json":
        shown = [{"group": each.group_id, "state": each.group_state} for each in found]
        echo(json.dumps(shown))
    elif options["state"]:
        show(listing_lines(found), [listing_table(found)])
    else:
        echo_lines(each.group_id for each in found)


def describe(admin: Admin, groups: Groups, names: list[str], options: dict[str, Any]) -> None:
    """Print the offsets, members or state of the groups.

    If some groups do not exist, print the others, then raise Refused."""
    ends = LogEnds(admin)
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
        if options["members"]:
            lines = member_lines(described, verbose=options["verbose"])
            show(lines, [member_table(described)])
        elif options["state"]:
            coordinator = groups.coordinator(name)
            show(state_lines(described, coordinator), [state_table(described, coordinator)])
        elif rows:
            show(offset_lines(rows), [offset_table(rows)])
    if options["output"] == "json":
        echo(json.dumps(as_json))
    if missing:
        raise Refused("\n".join(f"Consumer group '{name}' does not exist." for name in missing))


def warn(described: DescribedGroup) -> None:
    """Print a warning to standard error if the group has no members or is rebalancing."""
    name = described.group_id
    if described.group_state == EMPTY:
        echo(f"\nConsumer group '{name}' has no active members.", err=True)
    elif described.group_state != STABLE:
        echo(f"\nWarning: Consumer group '{name}' is rebalancing.", err=True)


def delete(admin: Admin, groups: Groups, names: list[str], options: dict[str, Any]) -> None:
    """Delete the groups. Raise Refused, with the error of each group, if any deletion fails."""
    results = {name: groups.delete(name) for name in names}
    failed = {name: error for name, error in results.items() if error}
    if not failed:
        done = ", ".join(results)
        echo(f"Deletion of requested consumer groups ('{done}') was successful.")
        return
    lines = [
        f"* Group '{name}' could not be deleted due to: {error.name}: {error.message}"
        for name, error in failed.items()
    ]
    raise Refused("\n".join(["Deletion of some consumer groups failed:", *lines]))


def delete_offsets(admin: Admin, groups: Groups, names: list[str], options: dict[str, Any]) -> None:
    """Delete the committed offsets of topics, and print a line for each partition.

    Raise UsageError unless there are one group and some topics, Refused if any deletion fails."""
    if not options["topics"] or len(names) != 1:
        raise click.UsageError(
            "--delete-offsets requires exactly one --group and at least one --topic"
        )
    (name,) = names
    ends = LogEnds(admin)
    results: dict[Place, ErrorCode] = {}
    for topic, listed in map(parts_of, options["topics"]):
        if topic in ends.topics():
            wanted = ends.partitions(topic) if listed is None else listed
            results.update(groups.delete_offsets(name, topic, wanted))
        else:
            results[topic, WHOLE_TOPIC] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    echo_lines(deletion_lines(name, results))
    if any(results.values()):
        raise Refused("Some offsets were not deleted.")


def echo_lines(lines: Iterable[str]) -> None:
    """Print each line."""
    for line in lines:
        echo(line)


DO: dict[str, Callable[[Admin, Groups, list[str], dict[str, Any]], None]] = {
    "list_": list_groups,
    "describe": describe,
    "delete": delete,
    "reset_offsets": reset,
    "delete_offsets": delete_offsets,
}
