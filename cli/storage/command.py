"""`quorate storage`, with the commands, options and output of kafka-storage."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from quorate.cli.client.errors import Refused
from quorate.cli.client.options import format_option
from quorate.cli.nodes.server import load_config, override_option
from quorate.cli.parsing.described_argument import DescribedArgument
from quorate.cli.parsing.suggesting_group import SuggestingGroup
from quorate.cli.terminal.safe_text import echo
from quorate.config.node_config import NodeConfig
from quorate.quorum.ids import ReplicaKey, random_uuid, uuid_to_text

if TYPE_CHECKING:
    from quorate.quorum.node.opening.meta_properties import MetaProperties
    from quorate.quorum.seams import Disk

config_option = click.option(
    "-c",
    "--config",
    "file",
    required=True,
    type=click.Path(exists=True, dir_okay=False),
    help="The .properties file of the node.",
)


class ClusterId(click.types.StringParamType):
    """The value of --cluster-id. The error of a command without it names the way to an id."""

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Return the id. Raise UsageError if nodes cannot use it."""
        from quorate.cli.storage.initial_controllers import check_cluster_id

        text = str(value)
        check_cluster_id(text)
        return text

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str:
        """Return the sentence at the end of the error."""
        return (
            "All nodes of a cluster have the same id. "
            "`quorate storage random-uuid` prints the id of a new cluster."
        )


@click.group(cls=SuggestingGroup)
def storage() -> None:
    """Format, describe, check and repair data directories."""


@storage.command("random-uuid")
def print_random_uuid() -> None:
    """Print a random cluster id."""
    echo(uuid_to_text(random_uuid(random.SystemRandom())))


@storage.command()
@config_option
def info(file: str) -> None:
    """Print the identities of the data directories of a node."""
    from quorate.quorum.log.disks.disk import OsDisk
    from quorate.quorum.node.opening.meta_properties import StorageError, read_meta

    config = load_config(file)
    disk = OsDisk()
    found, metas, problems = [], [], []
    for path in config.directories:
        try:
            if not disk.is_dir(path):
                problems.append(f"{path} does not exist")
                continue
            found.append(path)
            meta = read_meta(disk, path)
            if meta is None:
                problems.append(f"{path} is not formatted.")
            else:
                metas.append(meta)
        except (StorageError, OSError) as error:
            problems.append(str(error))
    disk.close()
    listed("Found log director", ("y", "ies"), found)
    for meta in metas:
        echo(
            f"Found metadata: {{cluster.id={meta.cluster_id}, "
            f"directory.id={uuid_to_text(meta.directory_id)}, node.id={meta.node_id}, version=1}}\n"
        )
    listed("Found problem", ("", "s"), problems)
    if problems:
        raise SystemExit(1)


def listed(title: str, endings: tuple[str, str], lines: list[str]) -> None:
    """Print the lines below a title in the singular or the plural. Print nothing without lines."""
    if lines:
        echo(f"{title}{endings[len(lines) > 1]}:")
        for each in lines:
            echo(f"  {each}")
        echo()


@storage.command("format")
@config_option
@override_option
@click.option(
    "-t",
    "--cluster-id",
    required=True,
    type=ClusterId(),
    help="The cluster id. `random-uuid` prints a new one.",
)
@click.option(
    "-g",
    "--ignore-formatted",
    is_flag=True,
    help="Skip the directories that are formatted already.",
)
@click.option(
    "-s",
    "--standalone",
    is_flag=True,
    help="Start a quorum with this controller as the only voter.",
)
@click.option("-N", "--no-initial-controllers", is_flag=True, help="Join an existing quorum.")
@click.option(
    "-I",
    "--initial-controllers",
    metavar="ID@HOST:PORT:DIRECTORY_ID,...",
    help="The voters of a new dynamic quorum.",
)
@click.option(
    "-S",
    "--add-scram",
    multiple=True,
    metavar="MECHANISM=[name=NAME,password-file=FILE]",
    help="Create a user in the new cluster. password=, iterations=, salt= and saltedpassword= are "
    "possible, too. May be repeated.",
)
@click.option("-r", "--release-version", help="The metadata version. Only 4.1-IV1 is supported.")
def format_storage(
    file: str,
    overrides: tuple[str, ...],
    cluster_id: str,
    ignore_formatted: bool,
    standalone: bool,
    no_initial_controllers: bool,
    initial_controllers: str | None,
    add_scram: tuple[str, ...],
    release_version: str | None,
) -> None:
    """Format the data directories of a node for a cluster."""
    from quorate.cli.storage.initial_controllers import own_directory_id, parse_initial_controllers
    from quorate.cli.storage.scram_users import scram_records
    from quorate.quorum.log.disks.disk import OsDisk
    from quorate.quorum.node.opening.data_directory import LOCK_FILE
    from quorate.quorum.node.opening.meta_properties import StorageError
    from quorate.quorum.offline.storage_format import (
        METADATA_LEVEL_NAME,
        InitialVoter,
        format_directory,
        format_others,
    )

    config = load_config(file, overrides)
    check_ways(config, standalone, no_initial_controllers, initial_controllers)
    if release_version not in (None, "4.1", METADATA_LEVEL_NAME):
        raise Refused(f"--release-version: value {release_version!r} must be {METADATA_LEVEL_NAME}")
    directory_id = random_uuid(random.SystemRandom())
    voters = parse_initial_controllers(initial_controllers)
    if voters:
        directory_id = own_directory_id(config, voters)
    elif standalone:
        advertised = config.listeners.advertisement(config.listeners.controller[0].name)
        assert advertised is not None
        key = ReplicaKey(config.node_id, directory_id)
        voters = [InitialVoter(key=key, host=advertised.host, port=advertised.port)]
    credentials = scram_records(add_scram)
    disk = OsDisk()
    locks = []
    in_use = config.log_dir
    try:
        empty = unformatted(disk, config, cluster_id, ignore_formatted=ignore_formatted)
        if not empty:
            echo("All of the log directories are already formatted.")
            return
        for in_use in config.log_dirs:
            disk.make_dirs(in_use)
            locks.append(disk.lock(f"{in_use}/{LOCK_FILE}"))
        announce(config, empty, METADATA_LEVEL_NAME, dynamic=bool(voters))
        if config.metadata_log_dir in empty:
            format_directory(
                disk,
                config,
                cluster_id=cluster_id,
                directory_id=directory_id,
                wall_ms=int(time.time() * 1000),
                voters=voters,
                credentials=credentials,
            )
        else:
            format_others(disk, config, cluster_id=cluster_id)
    except BlockingIOError:
        raise Refused(f"{in_use} is in use by a running node: stop the node first") from None
    except (StorageError, OSError) as error:
        raise Refused(str(error)) from None
    finally:
        for lock in locks:
            lock.release()
        disk.close()


def announce(config: NodeConfig, empty: Sequence[str], version: str, *, dynamic: bool) -> None:
    """Print the directories that will be formatted. With `dynamic`, the metadata directory is that
    of a voter of a new dynamic quorum."""
    for path in empty:
        what = "data directory"
        if path == config.metadata_log_dir:
            what = "dynamic metadata voter directory" if dynamic else "metadata directory"
        echo(f"Formatting {what} {path} with metadata.version {version}.")


@storage.command("verify")
@click.argument(
    "directory",
    type=click.Path(exists=True, file_okay=False),
    cls=DescribedArgument,
    description="The data directory of a stopped node, or the directory of one log in it.",
)
@click.option(
    "--repair",
    "repairing",
    is_flag=True,
    help="Truncate torn tails that were never acknowledged, and rebuild wrong indexes.",
)
@click.option(
    "-c",
    "--config",
    "file",
    type=click.Path(exists=True, dir_okay=False),
    help="The .properties file of the node. If it is a broker only, --repair also renames "
    "a damaged metadata log, which the broker then fetches again.",
)
@format_option
def verify_storage(directory: str, repairing: bool, file: str | None, output: str) -> None:
    """Check the data directory of a stopped node, or one log in it. Apache Kafka's are read, too.

    The exit code is 1 if a file is torn or damaged, or if the next start has to rebuild it. Each
    line names the file, the byte and the offset, and says what to do."""
    from quorate.cli.storage.verify import run

    run(directory, repairing=repairing, file=file, output=output)


@storage.command()
@config_option
@click.option(
    "--new/--lost",
    "new",
    default=None,
    help="--new: it never held the cluster's metadata, or all that it held may be given up; the "
    "controller votes. --lost: it lost records; the controller catches up before it votes.",
)
def declare(file: str, new: bool | None) -> None:
    """Declare whether the disk of a stopped controller lost part of the metadata.

    A controller detects most losses itself. With --new it votes with the records that it has. If
    other voters are stale, committed changes are then lost for good."""
    from quorate.cli.storage.declare import run

    if new is None:
        raise click.UsageError("one of --new and --lost must be given")
    run(file, new=new)


@storage.command("repair-epoch")
@config_option
@click.option(
    "--epoch",
    type=int,
    help="The new epoch. [default: the last epoch in the log plus 1000]",
)
def repair_epoch(file: str, epoch: int | None) -> None:
    """Give a stopped controller an epoch from which elections can continue.

    Use it if a false message has raised the epoch of a controller far beyond its log. Stop all
    controllers, run this command on each of them, then start them. A plausible epoch is kept."""
    from quorate.cli.storage.epoch import run

    run(file, epoch)


def check_ways(config: NodeConfig, standalone: bool, no_initial: bool, initial: str | None) -> None:
    """Check the options that choose the voters of a new quorum.

    Raise UsageError if more than one is given. Raise Refused if one contradicts the config, or if a
    controller of a dynamic quorum has none."""
    ways = [
        name
        for name, given in (
            ("--standalone", standalone),
            ("--initial-controllers", initial is not None),
            ("--no-initial-controllers", no_initial),
        )
        if given
    ]
    if len(ways) > 1:
        raise click.UsageError(f"only one of {', '.join(ways)} can be given")
    if config.voters and ways:
        raise Refused(
            f"You cannot specify {ways[0]} and also set controller.quorum.voters on the node: a "
            "quorum is static or dynamic"
        )
    if config.is_controller and not config.voters and not ways:
        raise Refused(
            "Because controller.quorum.voters is not set on this controller, you must specify one "
            "of the following: --standalone, --initial-controllers, or --no-initial-controllers."
        )
    if standalone and not config.is_controller:
        raise Refused("You can only use --standalone on a controller.")


def unformatted(
    disk: Disk, config: NodeConfig, cluster_id: str, *, ignore_formatted: bool
) -> list[str]:
    """Return the directories of a node that are not formatted. Block.

    Raise Refused if a directory belongs to another cluster or node, or is formatted already without
    `ignore_formatted`. Raise StorageError if the format of a directory is damaged."""
    from quorate.quorum.node.opening.meta_properties import read_meta

    metas = {path: read_meta(disk, path) for path in config.directories}
    for path, meta in metas.items():
        refuse_other_cluster(meta, config, cluster_id, path)
    for path, meta in metas.items():
        if meta is not None and not ignore_formatted:
            raise Refused(
                f"Log directory {path} is already formatted. Use --ignore-formatted "
                "to ignore this directory and format the others."
            )
    return [path for path, meta in metas.items() if meta is None]


def refuse_other_cluster(
    meta: MetaProperties | None, config: NodeConfig, cluster_id: str, path: str
) -> None:
    """Raise Refused if the directory `path` belongs to another cluster or node."""
    if meta is None:
        return
    where = f"{path}/meta.properties"
    if meta.cluster_id != cluster_id:
        raise Refused(
            f"Invalid cluster.id in: {where}. Expected {cluster_id}, but read {meta.cluster_id}"
        )
    if meta.node_id != config.node_id:
        raise Refused(
            f"Invalid node.id in: {where}. Expected {config.node_id}, but read {meta.node_id}"
        )
