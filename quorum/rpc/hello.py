"""The messages of the handshake between two nodes, and the rules by which nodes refuse each other.

Every future version must be able to read Hello and HelloReply: they only grow at the end. A node
refuses another one in these cases:

- They belong to different clusters.
- The connecting node expects another node id at this address.
- Both have the same node id, but different data directories.
- They have no common version of the protocol, or of an RPC that both list. A request that only one
  of them knows is answered with Unsupported instead.
- They belong to different generations of the quorum, or to different rebuilds with the same number.

A server that refuses gives the reason to the client. `handshake.py` exchanges these messages over a
new link.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from quorate.quorum.ids import NO_NODE, Uuid, uuid_to_text
from quorate.quorum.node_message_bounds import (
    EpochOrNone,
    Items,
    Message,
    Name,
    NodeId,
    Number,
    Version,
)
from quorate.quorum.raft.generation import Rebuild
from quorate.quorum.seams import Address

PROTOCOL_MIN, PROTOCOL_MAX = 1, 1  # the versions of the protocol of node links as a whole
UNKNOWN_GENERATION = -1
"""The generation of a Hello without this field. It matches every generation."""
MAX_RPCS = 1000
MAX_ROLES = 8
MAX_REBUILDS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRange:
    """The versions of one RPC (its number in `messages.py`) that a node reads and writes."""

    rpc: Number
    minimum: Version
    maximum: Version


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """The identity of a node, and the versions that it supports."""

    protocol_min: Number = PROTOCOL_MIN
    protocol_max: Number = PROTOCOL_MAX
    versions: Annotated[tuple[VersionRange, ...], Items(MAX_RPCS)]
    cluster_id: Name
    node_id: NodeId
    directory_id: Uuid
    roles: Annotated[tuple[Name, ...], Items(MAX_ROLES)]
    incarnation_id: Uuid  # drawn anew at each start of the process
    generation: EpochOrNone = UNKNOWN_GENERATION
    """The number of rebuilds of the quorum by `force-voters`. It keeps the members of a lost quorum
    out."""
    rebuilds: Annotated[tuple[Rebuild, ...], Items(MAX_REBUILDS)] = ()
    """One for each generation after the first, which is 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HelloReply:
    """The server's Hello, or the reason for its refusal. `refusal` is empty if the server accepts.

    A refusal of a client of an older generation of the quorum also has the Hello, because the
    client may then adopt the later generation."""

    hello: Hello | None
    refusal: Message = ""


@dataclass(frozen=True, slots=True)
class Peer:
    """The other end of a channel, as its Hello describes it.

    `address` is the remote address of the link. On an accepted link this is not the node's port."""

    hello: Hello
    address: Address

    @property
    def node_id(self) -> int:
        """Return the node id that the peer stated."""
        return self.hello.node_id

    def __str__(self) -> str:
        """Return the node id and the address, for log lines."""
        return f"node {self.hello.node_id} ({self.address})"


def refusal_of(mine: Hello, other: Hello, *, expected_id: int = NO_NODE) -> str:
    """Return the reason why these two nodes must not exchange messages, or an empty string.

    `expected_id` is the node id that the caller wants to reach, or NO_NODE."""
    if other.cluster_id != mine.cluster_id:
        return (
            f"node {other.node_id} belongs to cluster {other.cluster_id}, node {mine.node_id} to "
            f"cluster {mine.cluster_id}: check the addresses, or format one of them anew"
        )
    if expected_id not in (NO_NODE, other.node_id):
        return f"node {other.node_id} is at the address of node {expected_id}: check the addresses"
    if other.node_id == mine.node_id and other.directory_id != mine.directory_id:
        return (
            f"two nodes have the id {mine.node_id}: directories {uuid_to_text(mine.directory_id)} "
            f"and {uuid_to_text(other.directory_id)}"
        )
    if not _overlap(mine.protocol_min, mine.protocol_max, other.protocol_min, other.protocol_max):
        return (
            f"protocol versions {mine.protocol_min}-{mine.protocol_max} of node {mine.node_id} and "
            f"{other.protocol_min}-{other.protocol_max} of node {other.node_id} have none in common"
        )
    return _generation_refusal(mine, other) or _version_refusal(mine, other)


def is_newer(mine: Hello, other: Hello) -> bool:
    """Return True if `other` belongs to the same cluster and to a later generation of its quorum.
    Return False if the generation of `mine` is unknown."""
    return other.cluster_id == mine.cluster_id and 0 <= mine.generation < other.generation


def _generation_refusal(mine: Hello, other: Hello) -> str:
    if UNKNOWN_GENERATION in (mine.generation, other.generation):
        return ""
    if mine.generation != other.generation:
        older = min(mine, other, key=lambda each: each.generation)
        way_out = (
            f"the older node {older.node_id} must be formatted anew"
            if "controller" in older.roles
            else f"broker {older.node_id} is accepted when it has adopted the new generation"
        )
        return (
            f"node {other.node_id} is of quorum generation {other.generation}, node {mine.node_id} "
            f"of {mine.generation}: the quorum was rebuilt, {way_out}"
        )
    if mine.rebuilds != other.rebuilds:
        return (
            f"node {other.node_id} and node {mine.node_id} are both of quorum generation "
            f"{mine.generation}, but of two rebuilds: format the nodes of one of them anew"
        )
    return ""


def _version_refusal(mine: Hello, other: Hello) -> str:
    others = {entry.rpc: entry for entry in other.versions}
    for own in mine.versions:
        entry = others.get(own.rpc)  # absent: a newer RPC, refused when it is asked for
        if entry and not _overlap(own.minimum, own.maximum, entry.minimum, entry.maximum):
            return (
                f"versions {own.minimum}-{own.maximum} of RPC {own.rpc} of node {mine.node_id} and "
                f"{entry.minimum}-{entry.maximum} of node {other.node_id} have none in common: "
                "upgrade through a release that supports both"
            )
    return ""


def _overlap(min_a: int, max_a: int, min_b: int, max_b: int) -> bool:
    return max(min_a, min_b) <= min(max_a, max_b)
