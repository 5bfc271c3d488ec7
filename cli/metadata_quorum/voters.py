"""`quorate metadata-quorum add-controller` and `remove-controller` (KIP-853)."""

from __future__ import annotations

import click

from quorate.cli.client.admin import check
from quorate.cli.client.errors import Refused, said_once
from quorate.cli.client.options import connected
from quorate.cli.nodes.server import load_config
from quorate.cli.parsing.strict_command import StrictCommand
from quorate.cli.terminal.progress import waiting_for
from quorate.cli.terminal.safe_text import echo
from quorate.config.key import MAX_INT
from quorate.quorum.ids import ReplicaKey, Uuid, uuid_from_text, uuid_to_text
from quorate.quorum.log.disks.disk import OsDisk
from quorate.quorum.node.opening.meta_properties import StorageError, read_meta
from quorate.quorum.node.peers.node_membership import own_voter
from quorate.quorum.protocol.schemas.raft_voters import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    RaftVoterListener,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)

TIMEOUT_MS = 30_000
dry_run_option = click.option("--dry-run", is_flag=True, help="Print the change without making it.")


@click.command("add-controller", cls=StrictCommand)
@click.option(
    "--config",
    "-c",
    "config_file",
    type=click.Path(exists=True, dir_okay=False),
    help="The .properties file of the controller. --command-config then is the file of a client.",
)
@dry_run_option
@click.pass_context
def add_controller(context: click.Context, config_file: str | None, dry_run: bool) -> None:
    """Add a controller that runs and has caught up to the voters.

    Its id, directory and address are taken from its own .properties file. That is the file of
    --config, or else, as in Kafka, that of --command-config before the command. A cluster that
    demands TLS or a login needs both."""
    client_file = context.obj["command_config"]
    file = config_file or client_file
    if file is None:
        raise click.UsageError(
            "--config FILE must be given after add-controller, or --command-config FILE before it: "
            "the .properties file of the controller to add"
        )
    # The file of a node says nothing about the connections of clients.
    connection = {**context.obj, "command_config": client_file if config_file else None}
    config = load_config(file)
    if not config.is_controller:
        raise Refused(
            f"{file}: process.roles did not contain 'controller'. Is this a valid controller "
            "configuration file?"
        )
    directory_id = directory_id_in(config.metadata_log_dir)
    voter = own_voter(config, ReplicaKey(config.node_id, directory_id))
    if voter is None:
        raise Refused(f"{file}: listeners must contain the port of the controller's listener")
    listeners = tuple(
        RaftVoterListener(name=each.name, host=each.host, port=each.port)
        for each in voter.endpoints
    )
    if not dry_run:
        request = AddRaftVoterRequest(
            timeout_ms=TIMEOUT_MS,
            voter_id=config.node_id,
            voter_directory_id=directory_id,
            listeners=listeners,
        )
        doing = waiting_for(f"adding controller {config.node_id}")
        with connected(**connection) as admin, doing:
            answer = admin.change(request, AddRaftVoterResponse, lambda each: [each.error_code])
        check(answer.error_code, answer.error_message)
    endpoints = ", ".join(endpoint_text(each) for each in listeners)
    echo(
        f"{'DRY RUN of adding' if dry_run else 'Added'} controller {config.node_id} with directory "
        f"id {uuid_to_text(directory_id)} and endpoints: {endpoints}"
    )


@click.command("remove-controller", cls=StrictCommand)
@click.option(
    "--controller-id",
    "-i",
    type=click.IntRange(max=MAX_INT),
    required=True,
    help="The node id of the voter.",
)
@click.option(
    "--controller-directory-id",
    "-d",
    "directory_text",
    required=True,
    help="The directory id of the voter, as `describe --replication` prints it.",
)
@dry_run_option
@click.pass_context
def remove_controller(
    context: click.Context, controller_id: int, directory_text: str, dry_run: bool
) -> None:
    """Remove a voter from the quorum, even the leader or one that is lost."""
    if controller_id < 0:
        raise Refused(f"Invalid negative --controller-id: {controller_id}")
    try:
        directory_id = uuid_from_text(directory_text)
    except ValueError as error:
        raise Refused(f"Failed to parse --controller-directory-id: {error}") from None
    if not dry_run:
        request = RemoveRaftVoterRequest(voter_id=controller_id, voter_directory_id=directory_id)
        doing = waiting_for(f"removing controller {controller_id}")
        with connected(**context.obj) as admin, doing:
            answer = admin.change(request, RemoveRaftVoterResponse, lambda each: [each.error_code])
        check(answer.error_code, answer.error_message)
    done = "DRY RUN of removing " if dry_run else "Removed "  # Kafka prints two spaces
    echo(f"{done} KRaft controller {controller_id} with directory id {directory_text}")


def directory_id_in(log_dir: str) -> Uuid:
    """Return the directory id in meta.properties. Raise Refused if it cannot be read."""
    disk = OsDisk()
    try:
        meta = read_meta(disk, log_dir)
    except StorageError as error:
        raise Refused(str(error)) from None
    except OSError as error:
        raise Refused(said_once(error, log_dir)) from None
    finally:
        disk.close()
    if meta is None:
        raise Refused(f"Unable to read meta.properties from {log_dir}")
    return meta.directory_id


def endpoint_text(each: RaftVoterListener) -> str:
    """Return a listener as NAME://HOST:PORT."""
    host = f"[{each.host}]" if ":" in each.host else each.host
    return f"{each.name}://{host}:{each.port}"
