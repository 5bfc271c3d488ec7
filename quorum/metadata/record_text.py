"""The text form of metadata and control records for tools: type, version and message.

A record that this version does not know is shown with its type and its bytes. It is no error,
because the rest of a newer Kafka's log is still readable. The bytes are hidden if the type may hold
secrets.
"""

from __future__ import annotations

import json
import struct
from typing import Any, NamedTuple

from quorate.config.sensitive import HIDDEN
from quorate.quorum.log.batches.record import Record
from quorate.quorum.metadata.errors import MalformedRecord, UnknownRecord
from quorate.quorum.metadata.framing import TYPE_NAMES, decode_versioned
from quorate.quorum.metadata.json_text import json_text
from quorate.quorum.metadata.redaction import RULES, redacted
from quorate.quorum.protocol.codec import decode
from quorate.quorum.raft.control_records import (
    ControlType,
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)

CONTROL_MESSAGES: dict[int, type] = {
    ControlType.LEADER_CHANGE: LeaderChangeMessage,
    ControlType.SNAPSHOT_HEADER: SnapshotHeaderRecord,
    ControlType.SNAPSHOT_FOOTER: SnapshotFooterRecord,
    ControlType.KRAFT_VERSION: KRaftVersionRecord,
    ControlType.KRAFT_VOTERS: VotersRecord,
}
"""The message class of each type of control record."""
NAMES: dict[type, str] = {
    **TYPE_NAMES,
    **{message: ControlType(kind).name for kind, message in CONTROL_MESSAGES.items()},
}
"""Kafka's name of each message class."""
WITH_SECRETS = frozenset(NAMES[cls] for cls in RULES)
"""The types of metadata records that may hold secrets."""
_INT16 = struct.Struct(">h")


class Unknown(NamedTuple):
    """A record that this version cannot decode: its type, and the fields to show, such as its
    bytes."""

    type: str
    shown: dict[str, Any]

    def text(self) -> str:
        """Return the fields as JSON."""
        return json.dumps(self.shown, separators=(",", ":"))


def metadata_message(record: Record) -> tuple[object, int]:
    """Return the decoded record of a data batch, and its version.

    A record of an unknown type or a newer version is returned as an `Unknown`. Raise
    MalformedRecord if the value is missing or is not a metadata record."""
    if record.value is None:
        raise MalformedRecord(f"the record at offset {record.offset} has no value")
    try:
        return decode_versioned(record.value)
    except UnknownRecord as error:
        kind = error.name or f"UNKNOWN_RECORD_{error.api_key}"
        frame = HIDDEN if kind in WITH_SECRETS else bytes(record.value).hex()
        shown = {"apiKey": error.api_key, "frame": frame}
        return Unknown(kind, shown), error.version


def control_message(record: Record) -> tuple[object, int]:
    """Return the decoded record of a control batch, and its version.

    A record of an unknown type or a newer version is returned as an `Unknown`. Raise
    MalformedRecord or DecodeError if it is damaged.
    """
    if record.key is None or len(record.key) < 4 or record.value is None or len(record.value) < 2:
        raise MalformedRecord(f"the control record at offset {record.offset} is too short")
    (kind,) = _INT16.unpack_from(record.key, 2)
    (version,) = _INT16.unpack_from(record.value, 0)
    cls = CONTROL_MESSAGES.get(kind)
    if cls is None or version > _newest(cls):
        name = f"UNKNOWN_CONTROL_{kind}" if cls is None else NAMES[cls]
        return Unknown(name, {"type": kind, "value": bytes(record.value).hex()}), version
    return decode(cls, version, record.value), version


def type_name(message: object) -> str:
    """Return Kafka's name of the message's type, such as TOPIC_RECORD, or UNKNOWN_RECORD_99 for a
    type that this version does not know."""
    return message.type if isinstance(message, Unknown) else NAMES[type(message)]


def text_of(message: object, version: int) -> str:
    """Return the message as JSON in Kafka's form, without its secrets (`redaction.py`)."""
    if isinstance(message, Unknown):
        return message.text()
    return json_text(redacted(message), version)


def _newest(cls: type) -> int:
    return 1 if cls is LeaderChangeMessage else 0
