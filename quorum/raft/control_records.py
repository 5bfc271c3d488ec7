"""The control records that Raft itself writes into the log and into snapshots (KIP-595, KIP-630,
KIP-853).

The key of a control record is (int16 version, int16 type). Its value is one of the messages below.
Each begins with its own version. Records of the controller have no key.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from quorate.quorum.ids import ReplicaKey, Uuid
from quorate.quorum.node_message_bounds import Host, Items, Name, NodeId, Port, Version
from quorate.quorum.protocol.codec import DecodeError, decode, encode
from quorate.quorum.protocol.field_bounds import STORED_ELEMENTS, STORED_NAME
from quorate.quorum.protocol.wire import wire
from quorate.quorum.seams import Buffer

_KEY = struct.Struct(">hh")
MAX_ENDPOINTS = 16
"""The maximum number of endpoints of one voter in a node message."""
LEADER_CHANGE_VERSION = 0
"""Kafka up to 4.1 declares version 1 with directory ids, but writes and reads version 0. It ignores
the version in the record."""


class ControlType(enum.IntEnum):
    """The types of control records."""

    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderChangeVoter:
    """A voter in a LeaderChangeMessage."""

    voter_id: int = wire("int32")
    voter_directory_id: Uuid = wire("uuid", versions="1+")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderChangeMessage:
    """The first record of every epoch. The leader commits no record of an older epoch before it
    (Raft 5.4.2)."""

    version: int = wire("int16")
    leader_id: int = wire("int32")
    voters: tuple[LeaderChangeVoter, ...] = wire(count=STORED_ELEMENTS)
    granting_voters: tuple[LeaderChangeVoter, ...] = wire(count=STORED_ELEMENTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class KRaftVersionRecord:
    """The kraft.version that applies from this record on."""

    version: int = wire("int16")
    k_raft_version: int = wire("int16")


@dataclass(frozen=True, slots=True, kw_only=True)
class VoterEndpoint:
    """An address of a voter on one listener."""

    name: Name = wire("string", bound=STORED_NAME)
    host: Host = wire("string", bound=STORED_NAME)
    port: Port = wire("uint16")


@dataclass(frozen=True, slots=True, kw_only=True)
class KRaftVersionFeature:
    """The range of kraft.version that a voter supports."""

    min_supported_version: Version = wire("int16")
    max_supported_version: Version = wire("int16")


SUPPORTED = KRaftVersionFeature(min_supported_version=0, max_supported_version=1)
"""The range that this program supports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Voter:
    """A voter: its id, its directory id, its addresses, and its range of kraft.version."""

    voter_id: NodeId = wire("int32")
    voter_directory_id: Uuid = wire("uuid")
    endpoints: Annotated[tuple[VoterEndpoint, ...], Items(MAX_ENDPOINTS)] = wire(
        count=STORED_ELEMENTS
    )
    k_raft_version_feature: KRaftVersionFeature = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class VotersRecord:
    """The voter set that is in effect from this record on."""

    version: int = wire("int16")
    voters: tuple[Voter, ...] = wire(count=STORED_ELEMENTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotHeaderRecord:
    """The first record of a snapshot, with the timestamp in ms of the last record that the snapshot
    contains."""

    version: int = wire("int16")
    last_contained_log_timestamp: int = wire("int64")


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFooterRecord:
    """The last record of a snapshot."""

    version: int = wire("int16")


ControlRecord = (
    LeaderChangeMessage
    | SnapshotHeaderRecord
    | SnapshotFooterRecord
    | KRaftVersionRecord
    | VotersRecord
)
CONTROL_RECORDS: dict[ControlType, type[ControlRecord]] = {
    ControlType.LEADER_CHANGE: LeaderChangeMessage,
    ControlType.SNAPSHOT_HEADER: SnapshotHeaderRecord,
    ControlType.SNAPSHOT_FOOTER: SnapshotFooterRecord,
    ControlType.KRAFT_VERSION: KRaftVersionRecord,
    ControlType.KRAFT_VOTERS: VotersRecord,
}
_TYPES = {record: kind for kind, record in CONTROL_RECORDS.items()}


def control_key(kind: ControlType) -> bytes:
    """Return the key of a control record of this type."""
    return _KEY.pack(0, kind)


def encode_control(record: ControlRecord) -> tuple[bytes, bytes]:
    """Return the key and the value of the record.

    Raise EncodeError or DecodeError if the value cannot be read back. Such a record must not reach
    the log, because every node would stop at it at each start.
    """
    value = encode(record, 0)
    decode(type(record), 0, value)
    return control_key(_TYPES[type(record)]), value


def decode_control(key: Buffer | None, value: Buffer | None) -> ControlRecord | None:
    """Return the record, or None if this version does not know its type. Raise DecodeError if it is
    malformed."""
    if key is None or value is None or len(key) != _KEY.size:
        raise DecodeError("a control record has a key of four bytes and a value")
    _, kind = _KEY.unpack(key)
    cls = CONTROL_RECORDS.get(kind)
    return None if cls is None else decode(cls, 0, value)


def leader_change(
    leader_id: int, voters: Iterable[ReplicaKey], granting: Iterable[ReplicaKey]
) -> LeaderChangeMessage:
    """Return the first record of an epoch. `granting` holds the voters that elected the leader."""
    return LeaderChangeMessage(
        version=LEADER_CHANGE_VERSION,
        leader_id=leader_id,
        voters=tuple(map(_voter, voters)),
        granting_voters=tuple(map(_voter, granting)),
    )


def _voter(replica: ReplicaKey) -> LeaderChangeVoter:
    return LeaderChangeVoter(voter_id=replica.id, voter_directory_id=replica.directory_id)
