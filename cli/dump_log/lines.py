"""The content of a segment, snapshot or index, as values and as kafka-dump-log's lines."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from quorate.cli.client.batches import whole_batches
from quorate.quorum.log.batches.batch import (
    BatchHeader,
    checksum_is_valid,
    records_of,
)
from quorate.quorum.log.batches.compression import Codec
from quorate.quorum.log.batches.record import Record
from quorate.quorum.metadata.errors import MetadataError
from quorate.quorum.metadata.framing import TYPE_NAMES, decode_versioned
from quorate.quorum.metadata.json_form import json_form
from quorate.quorum.metadata.redaction import redacted
from quorate.quorum.protocol.codec import decode
from quorate.quorum.protocol.varint import DecodeError
from quorate.quorum.raft import control_records

DELETE_HORIZON = 0x40
"""The attribute bit of a batch whose base timestamp is a delete horizon (KAFKA-8522)."""
MAX_INT = 2**31
CONTROL_KEY = struct.Struct(">hh")
SNAPSHOT_NAME = re.compile(r"^(\d{20})-(\d{10})\.checkpoint")
MARKERS = {0: "ABORT", 1: "COMMIT"}

# The name of each control record in the output of Kafka's tool, and its message type.
CONTROL_MESSAGES: dict[int, tuple[str, type]] = {
    control_records.ControlType.LEADER_CHANGE: (
        "LeaderChange:",
        control_records.LeaderChangeMessage,
    ),
    control_records.ControlType.SNAPSHOT_HEADER: (
        "SnapshotHeader",
        control_records.SnapshotHeaderRecord,
    ),
    control_records.ControlType.SNAPSHOT_FOOTER: (
        "SnapshotFooter",
        control_records.SnapshotFooterRecord,
    ),
    control_records.ControlType.KRAFT_VERSION: ("KRaftVersion", control_records.KRaftVersionRecord),
    control_records.ControlType.KRAFT_VOTERS: ("KRaftVoters", control_records.VotersRecord),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpOptions:
    """The options of one dump.

    `deep` and `data` print a line per record; with `data` it has the key and the payload. With
    `metadata` payloads are decoded as metadata records. `skip_record_metadata` leaves out offsets,
    timestamps and sizes, and the content of control records. At most `max_bytes` of each log are
    shown. Secrets of metadata records are removed unless `show_secrets`."""

    data: bool = False
    deep: bool = False
    metadata: bool = False
    skip_record_metadata: bool = False
    max_bytes: int = MAX_INT - 1
    show_secrets: bool = False


class NoOffset(ValueError):
    """The name of a file of a segment does not begin with the segment's base offset."""


def base_offset_of(name: str) -> int:
    """Return the base offset in the name of a segment's file. Raise NoOffset if it has none."""
    offset = name.split(".")[0]
    if not offset.isdecimal():
        raise NoOffset(name)
    return int(offset)


def head_line(name: str) -> str:
    """Return the first line of a dump, which Kafka's tool derives from the name of the file.

    Raise NoOffset if a name with .log does not begin with an offset."""
    if name.endswith(".log"):
        return f"Log starting offset: {base_offset_of(name)}"
    match = SNAPSHOT_NAME.match(name)
    if match is None:
        return "KRaft bootstrap snapshot"
    return f"Snapshot end offset: {int(match[1])}, epoch: {int(match[2])}"


def log_lines(name: str, content: memoryview, options: DumpOptions) -> Iterator[str]:
    """Yield the lines of a segment or snapshot.

    If bytes follow the last complete batch, the last line counts them, unless `max_bytes` is set.
    Raise CorruptBatch if records are shown and cannot be decoded."""
    yield head_line(name)
    content = content[: options.max_bytes]
    end = 0
    for position, header in whole_batches(content):
        yield batch_line(position, header, checksum_is_valid(content, position, header))
        end = position + header.size_bytes
        if options.deep or options.data:
            for record in records_of(content, position, header):
                yield record_line(header, record, options)
    if end < len(content) and options.max_bytes == MAX_INT - 1:
        yield f"Found {len(content) - end} invalid bytes at the end of {name}"


def batch_line(position: int, header: BatchHeader, valid: bool) -> str:
    """Return the line of a batch. `valid` is True if its checksum is right."""
    last_sequence = sequence(header, header.last_offset_delta)
    horizon = (
        f"OptionalLong[{header.base_timestamp_ms}]"
        if header.attributes & DELETE_HORIZON
        else "OptionalLong.empty"
    )
    fields = {
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset,
        "count": header.record_count,
        "baseSequence": header.base_sequence,
        "lastSequence": last_sequence,
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "partitionLeaderEpoch": header.leader_epoch,
        "isTransactional": flag(header.is_transactional),
        "isControl": flag(header.is_control),
        "deleteHorizonMs": horizon,
        "position": position,
        time_type(header): header.max_timestamp_ms,
        "size": header.size_bytes,
        "magic": header.magic,
        "compresscodec": codec_name(header.codec),
        "crc": header.crc,
        "isvalid": flag(valid),
    }
    return " ".join(f"{name}: {value}" for name, value in fields.items())


def codec_name(codec: int) -> str:
    """Return the name of a compression codec, also for a code that is not defined."""
    return Codec(codec).name.lower() if codec in set(Codec) else f"unknown({codec})"


def flag(value: bool) -> str:
    """Return Java's text of a boolean."""
    return "true" if value else "false"


def time_type(header: BatchHeader) -> str:
    """Return the type of the batch's timestamps: LogAppendTime or CreateTime."""
    return "LogAppendTime" if header.is_log_append_time else "CreateTime"


def sequence(header: BatchHeader, delta: int) -> int:
    """Return the sequence number of the record at `delta` in the batch.

    Sequence numbers wrap from 2^31 - 1 to 0. The result is -1 for a batch without sequence
    numbers."""
    return -1 if header.base_sequence < 0 else (header.base_sequence + delta) % MAX_INT


def record_line(header: BatchHeader, record: Record, options: DumpOptions) -> str:
    """Return the line of a record with the parts that the options select."""
    parts = ["|"]
    if not options.skip_record_metadata:
        names = ",".join(name for name, _ in record.headers)
        parts.append(
            f"offset: {record.offset} {time_type(header)}: {record.timestamp_ms} "
            f"keySize: {size(record.key)} valueSize: {size(record.value)} "
            f"sequence: {sequence(header, record.offset - header.base_offset)} "
            f"headerKeys: [{names}]"
        )
        if header.is_control:
            parts.append(control_text(record))
    if options.data and not header.is_control:
        if record.key is not None:
            parts.append(f"key: {text(record.key)}")
        if record.value is not None:
            payload = (
                metadata_json(record, show_secrets=options.show_secrets)
                if options.metadata
                else text(record.value)
            )
            parts.append(f"payload: {payload}")
    return " ".join(parts)


def size(value: object) -> int:
    """Return the length in bytes, or -1 for None."""
    return -1 if value is None else len(value)  # type: ignore[arg-type]


def text(value: object) -> str:
    """Return bytes as text. Invalid UTF-8 is replaced."""
    return bytes(value).decode("utf-8", "replace")  # type: ignore[call-overload, no-any-return]


def control_text(record: Record) -> str:
    """Return the text of a control record, or the error if it is not in Kafka's format."""
    try:
        return control_content(record)
    except (struct.error, DecodeError) as error:
        return f"controlType: UNREADABLE({error})"


def control_content(record: Record) -> str:
    """Return the text of a control record. Raise struct.error or DecodeError if it is malformed."""
    _, kind = CONTROL_KEY.unpack_from(record.key or b"")
    if kind in MARKERS and record.value is not None:
        (coordinator_epoch,) = struct.unpack_from(">xxi", record.value)
        return f"endTxnMarker: {MARKERS[kind]} coordinatorEpoch: {coordinator_epoch}"
    known = CONTROL_MESSAGES.get(kind)
    if known is None or record.value is None:
        return f"controlType: UNKNOWN({kind})"
    label, message = known
    (version,) = struct.unpack_from(">h", record.value)
    return f"{label} {compact(json_form(decode(message, version, record.value), version))}"


def metadata_json(record: Record, *, show_secrets: bool) -> str:
    """Return a metadata record as one line of JSON, or the text of its error."""
    return compact(metadata_value(record, show_secrets=show_secrets))


def metadata_value(record: Record, *, show_secrets: bool) -> object:
    """Return a metadata record as JSON values, or the error if it cannot be decoded."""
    if record.value is None:
        return None
    try:
        message, version = decode_versioned(record.value)
    except MetadataError as error:
        return f"Error at {record.offset}, skipping. {error}"
    return {
        "type": TYPE_NAMES[type(message)],
        "version": version,
        "data": json_form(message if show_secrets else redacted(message), version),
    }


def compact(value: object) -> str:
    """Return a value as JSON without spaces; a string is returned as it is."""
    if isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def log_rows(content: memoryview, options: DumpOptions) -> Iterator[dict[str, object]]:
    """Yield one JSON object per record, with the leader epoch of its batch.

    Only `metadata`, `max_bytes` and `show_secrets` of the options count. Raise CorruptBatch if a
    batch cannot be decoded."""
    for position, header in whole_batches(content[: options.max_bytes]):
        for record in records_of(content, position, header):
            row: dict[str, object] = {
                "offset": record.offset,
                "epoch": header.leader_epoch,
                "timestamp": record.timestamp_ms,
                "producer_id": header.producer_id,
                "sequence": sequence(header, record.offset - header.base_offset),
                "control": header.is_control,
            }
            if header.is_control:
                row["value"] = control_text(record)
            elif options.metadata:
                row["value"] = metadata_value(record, show_secrets=options.show_secrets)
            else:
                row["key"] = None if record.key is None else text(record.key)
                row["value"] = None if record.value is None else text(record.value)
            yield row
