"""Keys and values of the records in __consumer_offsets, in Kafka's formats.

A key starts with its type, and a value with its version (int16 each). A record without a value is a
tombstone. Quorate writes the versions that Kafka 4.1 writes, which have no tagged fields. It reads
the versions 0 to LATEST_VALUE_VERSION. It skips records whose type is not in KEY_TYPES. They belong
to the consumer, share and streams protocols.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from quorate.quorum.ids import ZERO_UUID, Uuid
from quorate.quorum.metadata.internal_topics import OFFSETS_TOPIC
from quorate.quorum.protocol.codec import reader, writer
from quorate.quorum.protocol.field_bounds import STORED_BYTES, STORED_ELEMENTS, STORED_NAME
from quorate.quorum.protocol.varint import DecodeError
from quorate.quorum.protocol.wire import wire
from quorate.quorum.seams import Buffer

NO_TIMESTAMP = -1
"""The value of a timestamp that is not set."""
FLEXIBLE_SINCE = 4
"""The first value version with tagged fields (KIP-482)."""
GROUP_VALUE_VERSION = 3
"""The version in which the value of a group is written."""
OFFSET_VALUE_VERSION = 3
"""The version in which the value of an offset without an expiry time is written."""
EXPIRING_OFFSET_VALUE_VERSION = 1
"""The version in which the value of an offset with an expiry time is written. No other version has
the field. An OffsetCommit before v5 may name a retention time, which gives the offset its expiry
time. This version has no leader epoch, so `leader_epoch` must be -1 in such a value."""
_INT16 = struct.Struct(">h")


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetKey:
    """The key of a committed offset."""

    group: str = wire("string", bound=STORED_NAME)
    topic: str = wire("string", bound=STORED_NAME)
    partition: int = wire("int32")


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetValue:
    """The value of a committed offset. Timestamps are wall-clock ms since 1970.

    Quorate only reads `topic_id`: the versions that it writes do not have this field."""

    offset: int = wire("int64")
    leader_epoch: int = wire("int32", versions="3+", default=-1)
    metadata: str = wire("string", bound=STORED_NAME)
    commit_timestamp: int = wire("int64")
    expire_timestamp: int = wire("int64", versions="1", default=NO_TIMESTAMP)
    topic_id: Uuid = wire("uuid", versions="4+", tag=0, default=ZERO_UUID)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupKey:
    """The key of a group."""

    group: str = wire("string", bound=STORED_NAME)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberValue:
    """One member in the record of a group. Timeouts are in ms."""

    member_id: str = wire("string", bound=STORED_NAME)
    group_instance_id: str | None = wire(
        "string", versions="3+", nullable="3+", bound=STORED_NAME, default=None
    )
    client_id: str = wire("string", bound=STORED_NAME)
    client_host: str = wire("string", bound=STORED_NAME)
    rebalance_timeout: int = wire("int32", versions="1+", default=-1)
    session_timeout: int = wire("int32")
    subscription: Buffer = wire("bytes", bound=STORED_BYTES)
    assignment: Buffer = wire("bytes", bound=STORED_BYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupValue:
    """The value of a group: its last generation. `leader` is a member id. The timestamp is
    wall-clock ms since 1970."""

    protocol_type: str = wire("string", bound=STORED_NAME)
    generation: int = wire("int32")
    protocol: str | None = wire("string", nullable="0+", bound=STORED_NAME)
    leader: str | None = wire("string", nullable="0+", bound=STORED_NAME)
    current_state_timestamp: int = wire("int64", versions="2+", default=NO_TIMESTAMP)
    members: tuple[MemberValue, ...] = wire(count=STORED_ELEMENTS)


Key = OffsetKey | GroupKey
Value = OffsetValue | GroupValue
KEY_TYPES: dict[int, tuple[type[OffsetKey | GroupKey], type[OffsetValue | GroupValue]]] = {
    0: (OffsetKey, OffsetValue),
    1: (OffsetKey, OffsetValue),
    2: (GroupKey, GroupValue),
}
"""The key and value classes, by the type at the start of a key."""
WRITTEN_TYPES = {OffsetKey: 1, GroupKey: 2}
"""The type that is written for each key class. Type 0 is an old type of offsets."""
LATEST_VALUE_VERSION = 4
"""The latest value version that can be read."""


class GroupRecord(NamedTuple):
    """One change of the state of a shard, the coordinator of the groups in one partition.

    A record without a value deletes the key."""

    key: Key
    value: Value | None


def encode_record(record: GroupRecord) -> tuple[bytes, bytes | None]:
    """Return the key and value bytes of a record. Raise EncodeError if a field does not fit."""
    key = bytearray(_INT16.pack(WRITTEN_TYPES[type(record.key)]))
    writer(type(record.key), 0, False)(key, record.key)
    if record.value is None:
        return bytes(key), None
    version = version_of(record.value)
    value = bytearray(_INT16.pack(version))
    writer(type(record.value), version, False)(value, record.value)
    return bytes(key), bytes(value)


class UnreadableRecord(Exception):
    """An encoded record does not decode to an equal record, so the next coordinator could not load
    it."""


def read_back(records: Sequence[GroupRecord]) -> list[tuple[bytes, bytes | None]]:
    """Encode the records, check that each decodes to an equal record, and return their keys and
    values.

    Call this before an append. Raise EncodeError if a field does not fit. Raise DecodeError if the
    bytes cannot be decoded, or UnreadableRecord if they decode to another record."""
    encoded = [encode_record(each) for each in records]
    for record, (key, value) in zip(records, encoded, strict=True):
        if decode_record(key, value) != record:
            raise UnreadableRecord(
                f"a record with the key {type(record.key).__name__} does not decode to itself"
            )
    return encoded


def version_of(value: Value) -> int:
    """Return the version in which `encode_record` writes the value."""
    if isinstance(value, GroupValue):
        return GROUP_VALUE_VERSION
    if value.expire_timestamp != NO_TIMESTAMP:
        return EXPIRING_OFFSET_VALUE_VERSION
    return OFFSET_VALUE_VERSION


def decode_record(key: Buffer, value: Buffer | None) -> GroupRecord | None:
    """Return the record, or None if its type is not in KEY_TYPES.

    `subscription` and `assignment` of a member are views of `value`, which keep it in memory. Raise
    DecodeError if the bytes are damaged or have an unknown version."""
    types = KEY_TYPES.get(_leading(key))
    if types is None:
        return None
    key_type, value_type = types
    read_key, _ = reader(key_type, 0, False)(key, _INT16.size)
    if value is None:
        return GroupRecord(read_key, None)
    version = _leading(value)
    if not 0 <= version <= LATEST_VALUE_VERSION:
        raise DecodeError(f"{value_type.__name__} v{version} of {read_key} has an unknown version")
    read = reader(value_type, version, version >= FLEXIBLE_SINCE)
    read_value, _ = read(value, _INT16.size)
    return GroupRecord(read_key, read_value)


def _leading(data: Buffer) -> int:
    if len(data) < _INT16.size:
        raise DecodeError(
            f"a record of {OFFSETS_TOPIC} has {len(data)} bytes, too few for a version"
        )
    return int(_INT16.unpack_from(data)[0])
