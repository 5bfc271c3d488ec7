"""`quorate metadata-quorum force-voters`: an offline rebuild of a quorum that lost its majority.

`quorum/offline/force_voters.py` has the rules of a rebuild. This module shows the plan, asks for
confirmation and shows the next steps. An earlier rebuild that was interrupted is completed before
the plan is made, and so before the confirmation. A dry run is refused in this case.

With `--format json`, standard output has one JSON value, after the rebuild. The plan that the
confirmation is about goes to standard error then.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from quorate.cli.client.errors import Refused
from quorate.cli.client.options import format_option
from quorate.cli.nodes.server import load_config
from quorate.cli.parsing.strict_command import StrictCommand
from quorate.cli.terminal.safe_text import echo
from quorate.quorum.ids import uuid_to_text
from quorate.quorum.log.disks.disk import OsDisk
from quorate.quorum.log.files.errors import LogError
from quorate.quorum.metadata.errors import MetadataError
from quorate.quorum.node.opening.data_directory import METADATA_DIRECTORY
from quorate.quorum.node.opening.meta_properties import StorageError
from quorate.quorum.offline.force_voters import (
    ForceRefused,
    LogComparison,
    Plan,
    carry_out,
    complete_interrupted,
    locked,
    plan,
)
from quorate.quorum.offline.source_directories import DamagedSource, SourceDirectory
from quorate.quorum.raft.errors import GenerationFileError

SHOWN_NAMES = 10
"""Maximum number of changed topics or other objects that one line of the plan names."""
REFUSALS = (
    ForceRefused,
    DamagedSource,
    StorageError,
    LogError,
    MetadataError,
    GenerationFileError,
    OSError,
)
"""The errors that end the command with their message and exit code 1."""


@click.command("force-voters", cls=StrictCommand)
@click.option(
    "--dir",
    "directories",
    multiple=True,
    required=True,
    type=click.Path(exists=True, file_okay=False),
    help="A data directory (log.dirs) of a controller or broker that still exists. Give "
    "all of them; may be repeated.",
)
@click.option(
    "--controller",
    "files",
    multiple=True,
    required=True,
    type=click.Path(exists=True, dir_okay=False),
    help="The .properties file of a controller of the new quorum. May be repeated.",
)
@click.option("--dry-run", is_flag=True, help="Print the plan and change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@format_option
def force_voters(
    directories: tuple[str, ...], files: tuple[str, ...], dry_run: bool, yes: bool, output: str
) -> None:
    """Rebuild a quorum that has lost its majority for good.

    Works offline: stop every node first. Every broker holds the committed metadata log, so the
    quorum can be rebuilt even if no controller's directory remains. The log with the highest
    generation, epoch and end offset is copied into the directory of each --controller, and these
    controllers become the voters. An unformatted directory is formatted. If a directory holds a
    metadata log already, that log is kept next to the new one. From then on, nodes of the old
    quorum and of the new quorum refuse each other.

    \b
    quorate metadata-quorum force-voters --dir /data/b4 --dir /data/b5 --controller c10.properties
    """
    configs = [load_config(file) for file in files]
    given = [str(Path(each).absolute()) for each in directories]
    backup = f"{METADATA_DIRECTORY}.before-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    disk = OsDisk()
    try:
        with locked(disk, given, configs):
            if not dry_run:
                complete_interrupted(disk, given, configs)
            planned = plan(disk, given, configs, random.SystemRandom())
            if output == "text":
                echo("\n".join(plan_lines(planned, backup)))
            if not dry_run:
                if not yes:
                    if output == "json":  # standard output has only the JSON
                        echo("\n".join(plan_lines(planned, backup)), err=True)
                    click.confirm("Rebuild the quorum from this?", abort=True, err=True)
                carry_out(disk, planned, wall_ms=int(time.time() * 1000), backup=backup)
    except REFUSALS as error:
        raise Refused(str(error)) from None
    finally:
        disk.close()
    if output == "json":
        echo(json.dumps(plan_value(planned, backup, done=not dry_run), indent=2))
    else:
        echo("\n".join(["DRY RUN: nothing was changed"] if dry_run else next_lines(planned)))


def plan_lines(planned: Plan, backup: str) -> list[str]:
    """Return the lines of a plan: the chosen log, its differences from the others, the new voters.

    `backup` is the name that the present metadata directory of a new controller gets."""
    chosen = planned.chosen
    best = f"{chosen.directory} (node {chosen.meta.node_id}) has the most up-to-date log"
    lines = [
        f"Cluster {chosen.meta.cluster_id}: of {1 + len(planned.others)} directories",
        f"  {best}: {end_text(chosen)}",
    ]
    for each in planned.others:
        lines += comparison_lines(each)
    lines += [
        "Changes acknowledged after that record, which only lost controllers had, are lost.",
        f"New quorum: generation {planned.generation}, epoch {planned.quorum.epoch}, voters",
    ]
    for controller in planned.controllers:
        endpoint = controller.voter.endpoints[0]
        directory = controller.config.metadata_log_dir
        kept = f", the present log is kept in {directory}/{backup}" if controller.replaces else ""
        lines.append(
            f"  {controller.voter.voter_id}@{endpoint.host}:{endpoint.port} in {directory}{kept}"
        )
    return lines


def comparison_lines(comparison: LogComparison) -> list[str]:
    """Return the lines that compare another directory's log with the chosen one: the offsets that
    only one of them has, and the objects that changed."""
    source = comparison.source
    lines = [f"  {source.directory} (node {source.meta.node_id}): {end_text(source)}"]
    if comparison.missing:
        lines.append(f"    lacks offsets {range_text(comparison.missing)}")
    if comparison.surplus:
        why = (
            "which were never committed: a later leader was elected without them"
            if comparison.never_committed
            else "which are lost: an earlier rebuild did without them"
        )
        lines.append(f"    has offsets {range_text(comparison.surplus)} of its own, {why}")
    for kind, names in comparison.changes.items():
        more = len(names) - SHOWN_NAMES
        shown = ", ".join(names[:SHOWN_NAMES]) + (f" and {more} more" if more > 0 else "")
        lines.append(f"    {kind} since: {shown}")
    return lines


def end_text(source: SourceDirectory) -> str:
    """Return the end of a directory's log as text: offset, epoch, generation, time."""
    generation = f", generation {len(source.rebuilds)}" if source.rebuilds else ""
    image = source.image
    last = f", last record {time_text(image.last_timestamp_ms)}" if image.last.offset >= 0 else ""
    return f"ends at offset {source.end.offset}, epoch {source.end.epoch}{generation}{last}"


def range_text(offsets: range) -> str:
    """Return the first and the last offset of a range that is not empty."""
    return f"{offsets[0]} to {offsets[-1]}"


def time_text(timestamp_ms: int) -> str:
    """Return a time in ms as ISO 8601 in UTC."""
    return f"{datetime.fromtimestamp(timestamp_ms / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"


def next_lines(planned: Plan) -> list[str]:
    """Return the instructions that follow a rebuild."""
    servers = servers_text(planned)
    return [
        "Rebuilt. Now",
        "  start the controllers above: quorate server FILE",
        f"  set controller.quorum.bootstrap.servers={servers} in the file of every broker,",
        "  remove controller.quorum.voters from it, and start the broker",
        "  add more controllers with `quorate metadata-quorum add-controller`",
    ]


def servers_text(planned: Plan) -> str:
    """Return the addresses of the new controllers as `host:port`, separated by commas."""
    endpoints: Sequence[Any] = [each.voter.endpoints[0] for each in planned.controllers]
    return ",".join(f"{each.host}:{each.port}" for each in endpoints)


def plan_value(planned: Plan, backup: str, *, done: bool) -> dict[str, Any]:
    """Return a plan as JSON values. `backup` is that of `plan_lines`. `done` is True if the plan
    was carried out, False after a dry run."""
    return {
        "clusterId": planned.chosen.meta.cluster_id,
        "done": done,
        "chosen": source_value(planned.chosen),
        "others": [
            {
                **source_value(each.source),
                "lacks": offsets_value(each.missing),
                "surplus": offsets_value(each.surplus),
                "surplusNeverCommitted": each.never_committed,
                "changes": dict(each.changes),
            }
            for each in planned.others
        ],
        "generation": planned.generation,
        "epoch": planned.quorum.epoch,
        "voters": [
            {
                "id": each.voter.voter_id,
                "directoryId": uuid_to_text(each.voter.voter_directory_id),
                "directory": each.config.metadata_log_dir,
                "backup": f"{each.config.metadata_log_dir}/{backup}" if each.replaces else None,
            }
            for each in planned.controllers
        ],
        "bootstrapServers": servers_text(planned),
    }


def source_value(source: SourceDirectory) -> dict[str, Any]:
    """Return a source directory, with the end of its log, as JSON values."""
    return {
        "directory": source.directory,
        "nodeId": source.meta.node_id,
        "generation": len(source.rebuilds),
        "epoch": source.end.epoch,
        "endOffset": source.end.offset,
    }


def offsets_value(offsets: range) -> dict[str, int] | None:
    """Return a range of offsets as JSON values, or None if it is empty."""
    return {"from": offsets[0], "to": offsets[-1]} if offsets else None
