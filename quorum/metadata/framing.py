"""The bytes of one metadata record, which are the value of one log record.

The format is `uvarint 1 | uvarint api key | uvarint version | body`. The body always has the
flexible encoding. Readers skip tagged fields that they do not know (KIP-482). Kafka therefore skips
our causes, and Quorate skips newer tags. An unknown record type or a newer version raises
`UnknownRecord`. Another first number than 1 (the frame version) raises `MalformedRecord`.
"""

from __future__ import annotations

import re
import struct
from functools import cache
from typing import Any, NamedTuple

from quorate.quorum.metadata.acl_records import ACL_TYPES
from quorate.quorum.metadata.errors import MalformedRecord, UnknownRecord
from quorate.quorum.metadata.records import (
    RECORD_TYPES,
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
)
from quorate.quorum.metadata.scram_records import SCRAM_TYPES
from quorate.quorum.metadata.unsupported_records import FOREIGN_TYPES
from quorate.quorum.protocol.codec import DecodeError, writer
from quorate.quorum.protocol.reader_compiler import Read, compile_reader
from quorate.quorum.protocol.varint import read_uvarint, write_uvarint
from quorate.quorum.protocol.writer_compiler import Write
from quorate.quorum.seams import Buffer

FRAME_VERSION = 1
"""The first number of every metadata record."""
PARTITION_RECORDS = (PartitionRecord, PartitionChangeRecord)
"""The types that may hold eligible leader replicas."""
REPLAYABLE_TYPES = {**RECORD_TYPES, **ACL_TYPES, **SCRAM_TYPES}
"""The record types that a node can read, by api key. The markers of transactions are included."""
READABLE_TYPES = {**REPLAYABLE_TYPES, **FOREIGN_TYPES}
"""All record types of Kafka by api key, including those that only tools read."""
REPLAYABLE_VERSIONS: dict[type[MetadataRecord], int] = {
    **{cls: cls.VERSION for cls in REPLAYABLE_TYPES.values()},
    **dict.fromkeys(PARTITION_RECORDS, 2),  # version 2 adds eligible leader replicas (KIP-966)
}
"""The newest version of each type that a node can replay."""
READABLE_VERSIONS: dict[type[MetadataRecord], int] = {
    **{cls: cls.VERSION for cls in FOREIGN_TYPES.values()},
    **REPLAYABLE_VERSIONS,
    RegisterBrokerRecord: 4,  # Kafka 4.3 adds cordoned log directories as a tag (KIP-1066)
    BrokerRegistrationChangeRecord: 3,
}
"""The newest version of each type that tools can read."""
TYPE_NAMES: dict[type[MetadataRecord], str] = {
    cls: re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__).upper()
    for cls in READABLE_TYPES.values()
}
"""Kafka's name of each type, such as PARTITION_CHANGE_RECORD."""


def encode_record(record: MetadataRecord, version: int | None = None) -> bytes:
    """Return the bytes of the record in `version`, or in the version that Quorate writes
    (`written_version`).

    Fields that the version does not have are left out. Raise EncodeError if a value cannot be
    encoded.
    """
    if version is None:
        version = written_version(record)
    cls: Any = type(record)
    head, write = _writer_for(cls, version)
    out = bytearray(head)
    write(out, record)
    return bytes(out)


def decode_record(buffer: Buffer) -> MetadataRecord:
    """Return the record if a node can replay it. Raise UnknownRecord or MalformedRecord."""
    layout = _LAYOUTS.get(bytes(buffer[:3])) or _layout_of(buffer)
    record = _decoded(buffer, layout)
    if not layout.replayable:
        raise UnknownRecord(record.API_KEY, layout.version, TYPE_NAMES[type(record)])
    return record


def decode_versioned(buffer: Buffer) -> tuple[MetadataRecord, int]:
    """Return the record and the version that it was written in.

    This is for tools: it also reads records that no node replays. Raise UnknownRecord or
    MalformedRecord.
    """
    layout = _LAYOUTS.get(bytes(buffer[:3])) or _layout_of(buffer)
    return _decoded(buffer, layout), layout.version


class _Layout(NamedTuple):
    """The reader of a record's body. `position` is the size of the head in bytes, and `replayable`
    is True if a node can replay this version."""

    read: Read
    version: int
    position: int
    replayable: bool


_LAYOUTS: dict[bytes, _Layout] = {}
"""Layouts by the first three bytes. Today each of the three numbers has one byte, so one lookup
identifies the layout."""


def _decoded(buffer: Buffer, layout: _Layout) -> MetadataRecord:
    record: MetadataRecord
    try:
        record, end = layout.read(buffer, layout.position)
    except (DecodeError, IndexError, struct.error, UnicodeDecodeError) as error:
        raise MalformedRecord(f"{error}: {preview(buffer)}") from error
    if end != len(buffer):
        raise MalformedRecord(f"{len(buffer) - end} bytes follow {record}: {preview(buffer)}")
    return record


def _layout_of(buffer: Buffer) -> _Layout:
    frame, api_key, version, position = read_head(buffer)
    cls: Any = READABLE_TYPES.get(api_key)
    if frame != FRAME_VERSION:
        raise MalformedRecord(f"frame version {frame} is not {FRAME_VERSION}: {preview(buffer)}")
    if cls is None or version > READABLE_VERSIONS[cls]:
        raise UnknownRecord(api_key, version, None if cls is None else TYPE_NAMES[cls])
    replayable = version <= REPLAYABLE_VERSIONS.get(cls, -1)
    layout = _Layout(compile_reader(cls, version, True), version, position, replayable)
    if position == 3:
        _LAYOUTS[bytes(buffer[:3])] = layout
    return layout


def read_head(buffer: Buffer) -> tuple[int, int, int, int]:
    """Return (frame version, api key, version, position of the body). Raise MalformedRecord if the
    bytes end too early."""
    try:
        frame, position = read_uvarint(buffer, 0)
        api_key, position = read_uvarint(buffer, position)
        version, position = read_uvarint(buffer, position)
    except (IndexError, DecodeError):
        raise MalformedRecord(f"a frame is cut off: {preview(buffer)}") from None
    return frame, api_key, version, position


def written_version(record: MetadataRecord) -> int:
    """Return the version to write.

    It is `VERSION`, which older brokers can read, unless a partition record has eligible leader
    replicas.
    """
    if isinstance(record, PARTITION_RECORDS) and (
        record.eligible_leader_replicas is not None or record.last_known_elr is not None
    ):
        return REPLAYABLE_VERSIONS[type(record)]
    return record.VERSION


@cache
def _writer_for(cls: Any, version: int) -> tuple[bytes, Write]:
    """Return the head of a record of this class and version, and the writer of its body."""
    head = bytearray()
    for number in (FRAME_VERSION, cls.API_KEY, version):
        write_uvarint(head, number)
    return bytes(head), writer(cls, version, True)


def preview(buffer: Buffer) -> str:
    """Return the length and the first 32 bytes as text for an error message."""
    shown = bytes(buffer[:32]).hex(" ")
    return f"{len(buffer)} bytes, beginning with {shown}"
