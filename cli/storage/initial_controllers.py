"""The identities that `quorate storage format` takes from the command line: the cluster id, and the
voters of --initial-controllers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import click

from quorate.cli.client.errors import Refused
from quorate.config.key import is_number
from quorate.config.listeners import MAX_PORT, SERVER
from quorate.config.node_config import NodeConfig
from quorate.quorum.directory_ids import is_reserved
from quorate.quorum.ids import ReplicaKey, Uuid, uuid_from_text
from quorate.quorum.node_message_bounds import Bytes, Name
from quorate.quorum.offline.storage_format import InitialVoter

OPTION = "--initial-controllers"
NAME: Bytes = get_args(Name)[1]
MAX_CLUSTER_ID_BYTES = NAME.most
"""The maximum size of a cluster id, which nodes send to each other."""


def check_cluster_id(text: str) -> None:
    """Raise UsageError for a cluster id that other nodes or clients cannot take.

    An empty one comes from a variable of a shell that is not set. Two clusters would have it."""
    size = len(text.encode(errors="replace"))
    if not text.strip() or not text.isprintable() or size > MAX_CLUSTER_ID_BYTES:
        raise click.UsageError(
            f"--cluster-id: value {text[:100]!r} must have 1 to {MAX_CLUSTER_ID_BYTES} bytes of "
            "printable text. `quorate storage random-uuid` prints the id of a new cluster"
        )


def parse_initial_controllers(text: str | None) -> list[InitialVoter]:
    """Return the voters, or none if `text` is None. Raise UsageError if one is malformed, if there
    are none in `text`, or if two have the same id or directory id."""
    voters: list[InitialVoter] = []
    for item in () if text is None else text.split(","):
        voter = _parsed(item)
        for other in voters:
            if voter.key.id == other.key.id:
                raise click.UsageError(f"{OPTION}: node id {voter.key.id} must occur only once")
            if voter.key.directory_id == other.key.directory_id:
                raise click.UsageError(
                    f"{OPTION}: value {item!r} must have another directory id than node "
                    f"{other.key.id}"
                )
        voters.append(voter)
    return voters


def _parsed(item: str) -> InitialVoter:
    number, _, rest = item.strip().partition("@")
    server, _, directory = rest.rpartition(":")
    match = SERVER.match(server)
    if not is_number(number) or match is None:
        raise click.UsageError(f"{OPTION}: value {item!r} must be id@host:port:directory-id")
    if not is_number(match[2]) or not 0 < int(match[2]) <= MAX_PORT:
        raise click.UsageError(f"{OPTION}: value {item!r} must have a port from 1 to {MAX_PORT}")
    try:
        directory_id = uuid_from_text(directory)
    except ValueError as error:
        raise click.UsageError(f"{OPTION}: {error}") from None
    if is_reserved(directory_id):
        raise click.UsageError(
            f"{OPTION}: directory id {directory} is reserved. `quorate storage random-uuid` "
            "prints another one"
        )
    key = ReplicaKey(int(number), directory_id)
    return InitialVoter(key=key, host=match[1].strip("[]"), port=int(match[2]))


def own_directory_id(config: NodeConfig, voters: Sequence[InitialVoter]) -> Uuid:
    """Return the directory id that the list of voters gives this controller.

    Raise Refused if the list does not contain the controller."""
    for voter in voters:
        if voter.key.id == config.node_id:
            return voter.key.directory_id
    raise Refused(f"{OPTION}: must name this controller, node.id {config.node_id}")
