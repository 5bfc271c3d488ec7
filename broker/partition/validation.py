"""The checks of a client's batch before the leader appends it (Kafka's LogValidator).

The size, the CRC-32C, the fields of the header and the payload are checked in this order. A batch
that fails its CRC was damaged in transit, so the producer may retry (CORRUPT_MESSAGE). A wrong
payload with the right CRC was sent like this, so a retry cannot help (INVALID_RECORD).

Kafka decompresses every batch and reads every record. The work here is bounded:

- Uncompressed records are checked by their lengths, for a bounded number of steps
  (`quorum/log/batches/record_framing.py`).
- For compressed records, the frame is checked (`quorum/log/batches/compression_frames.py`), and
  the first CHECKED_BYTES are decompressed and checked like uncompressed ones.
- The record count in the header is compared with the size of the payload, or with the largest size
  that the payload can expand to.
- The maximum timestamp in the header is not recomputed from the records.
- The records of a compacted topic are all read for their keys (`key_check.py`).

Errors that pass are inside of the payload, or a wrong maximum timestamp in the header. The readers
of this project rely on the header alone, and raise CorruptBatch for a payload that they cannot
read.
"""

from __future__ import annotations

import struct

from quorate.broker.partition.key_check import KEYED_BYTES, CheckedKeys, check_keys
from quorate.broker.partition.settings import NO_LIMIT, PartitionSettings
from quorate.quorum.log.batches.batch import (
    CODEC_MASK,
    CONTROL,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    NO_PRODUCER,
    TRANSACTIONAL,
    BatchHeader,
    checksum_is_valid,
    read_header,
)
from quorate.quorum.log.batches.compression import decompress_beginning
from quorate.quorum.log.batches.compression_frames import expansion
from quorate.quorum.log.batches.record import ONE_BYTE_DELTA_MS
from quorate.quorum.log.batches.record_framing import LEAST_RECORD_BYTES, check_framing
from quorate.quorum.log.files.errors import CorruptBatch
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from quorate.quorum.seams import Buffer

NO_TIMESTAMP = -1
LATEST_MS = 2**63 - 1 - ONE_BYTE_DELTA_MS
"""The latest timestamp of a batch. The decoder of records needs room for a delta above it."""
CHECKED_BYTES = 32 * 1024
"""Bytes of a compressed payload that are decompressed and checked, in about 50 us at most."""
LONG_RECORDS = 4096
LONG_BYTES = 1 << 20
"""A batch of a compacted topic is long if it has more than LONG_RECORDS records, or may expand to
more than LONG_BYTES. The check of a shorter one takes some 2 ms at most."""
_ATTRIBUTES_AND_COUNT = struct.Struct(">H34xi")
_ATTRIBUTES_AT = 21
_CODECS = 5  # none gzip snappy lz4 zstd
_KNOWN_ATTRIBUTES = CODEC_MASK | LOG_APPEND_TIME | TRANSACTIONAL | CONTROL


def validate_client_batch(
    data: Buffer,
    settings: PartitionSettings,
    wall_ms: int,
    *,
    internal: bool = False,
    keys: CheckedKeys | None = None,
) -> BatchHeader:
    """Return the header of the one batch in `data`. Raise KafkaError with the error code for the
    producer if the batch is refused. `wall_ms` is the time of day.

    `internal` batches of this broker's coordinators may be control or transactional batches. The
    timestamps are not checked if the topic uses LogAppendTime, because the leader replaces them.
    `keys` is the result of `checked_keys` of this batch, if its keys are checked already."""
    if len(data) == 0:
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            "the records of a partition must be one batch, and there are none",
        )
    try:
        header = read_header(data)
    except CorruptBatch as error:
        raise KafkaError(_code_of_bad_header(data), str(error)) from None
    if header.size_bytes > settings.max_message_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the batch has {header.size_bytes} bytes, max.message.bytes is "
            f"{settings.max_message_bytes}",
        )
    if header.size_bytes != len(data):
        code = (
            ErrorCode.INVALID_RECORD if header.size_bytes < len(data) else ErrorCode.CORRUPT_MESSAGE
        )
        raise KafkaError(
            code, f"the batch has {header.size_bytes} bytes, but {len(data)} bytes were sent"
        )
    if not checksum_is_valid(data, 0, header):
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "the batch fails its CRC-32C")
    _check_fields(header, internal)
    if not settings.log_append_time:
        _check_timestamps(header, settings, wall_ms)
    try:
        _check_payload(memoryview(data)[HEADER_BYTES:], header, settings, keys)
    except CorruptBatch as error:
        raise KafkaError(ErrorCode.INVALID_RECORD, str(error)) from None
    return header


def may_be_long(data: Buffer) -> bool:
    """Return True if the check of this batch takes long in case its topic is compacted: it has more
    than LONG_RECORDS records, or it is compressed. Read two fields of the header only."""
    if len(data) < HEADER_BYTES:
        return False
    attributes, count = _ATTRIBUTES_AND_COUNT.unpack_from(data, _ATTRIBUTES_AT)
    return count > LONG_RECORDS or bool(attributes & CODEC_MASK)


def takes_long(data: Buffer, settings: PartitionSettings) -> bool:
    """Return True if `validate_client_batch` may need more than some 2 ms, because it must read the
    key of every record. A malformed batch does not take long."""
    if not settings.compacted or not may_be_long(data):
        return False
    attributes, count = _ATTRIBUTES_AND_COUNT.unpack_from(data, _ATTRIBUTES_AT)
    if count > LONG_RECORDS:
        return True
    codec = attributes & CODEC_MASK
    try:
        return (
            codec < _CODECS and expansion(codec, memoryview(data)[HEADER_BYTES:]).most > LONG_BYTES
        )
    except CorruptBatch:
        return False


def _code_of_bad_header(data: Buffer) -> ErrorCode:
    """Return the error code for bytes without a valid header. Message formats 0 and 1 have their
    magic byte at the same place; they are not supported any more."""
    if len(data) > 16 and data[16] in (0, 1):
        return ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
    return ErrorCode.CORRUPT_MESSAGE


def _check_fields(header: BatchHeader, internal: bool) -> None:
    if header.record_count != header.last_offset_delta + 1 or header.record_count <= 0:
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"the batch has {header.record_count} records, but offsets 0 to "
            f"{header.last_offset_delta}",
        )
    if header.attributes & LOG_APPEND_TIME:
        raise KafkaError(
            ErrorCode.INVALID_TIMESTAMP, "only a broker may mark a batch as LogAppendTime"
        )
    if header.codec >= _CODECS:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"there is no codec {header.codec}"
        )
    if header.attributes & ~_KNOWN_ATTRIBUTES:
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"attributes {header.attributes & 0xFFFF:#06x} have bits that producers do not set",
        )
    if not internal:
        _check_origin(header)
    if header.producer_id < NO_PRODUCER:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"there is no producer id {header.producer_id}")
    if header.producer_id >= 0 and (header.producer_epoch < 0 or header.base_sequence < 0):
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"producer {header.producer_id} sent epoch {header.producer_epoch} and sequence "
            f"{header.base_sequence}: neither may be negative",
        )


def _check_origin(header: BatchHeader) -> None:
    if header.base_offset:
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"a producer's batch has base offset 0, this one has {header.base_offset}",
        )
    if header.is_control:
        raise KafkaError(ErrorCode.INVALID_RECORD, "clients may not write control batches")
    if header.is_transactional:
        raise KafkaError(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            "the batch is part of a transaction, and there are no transactions here",
        )


def _check_timestamps(header: BatchHeader, settings: PartitionSettings, wall_ms: int) -> None:
    """Raise KafkaError if a timestamp is impossible, too early or too late. A timestamp of -1 means
    that the batch, or its first record, has none."""
    first_ms, max_ms = header.base_timestamp_ms, header.max_timestamp_ms
    if not NO_TIMESTAMP <= first_ms <= max_ms <= LATEST_MS:
        raise KafkaError(
            ErrorCode.INVALID_TIMESTAMP,
            f"the first timestamp {first_ms} and the largest {max_ms} must rise, from -1 (none) "
            f"to {LATEST_MS}",
        )
    ahead_ms = header.max_timestamp_ms - wall_ms
    if ahead_ms > settings.timestamp_after_max_ms:
        raise KafkaError(
            ErrorCode.INVALID_TIMESTAMP,
            f"timestamp {header.max_timestamp_ms} is {ahead_ms} ms ahead of the broker, "
            f"message.timestamp.after.max.ms is {settings.timestamp_after_max_ms}",
        )
    if settings.timestamp_before_max_ms == NO_LIMIT or header.base_timestamp_ms == NO_TIMESTAMP:
        return
    behind_ms = wall_ms - header.base_timestamp_ms
    if behind_ms > settings.timestamp_before_max_ms:
        raise KafkaError(
            ErrorCode.INVALID_TIMESTAMP,
            f"timestamp {header.base_timestamp_ms} is {behind_ms} ms behind the broker, "
            f"message.timestamp.before.max.ms is {settings.timestamp_before_max_ms}",
        )


def _check_payload(
    payload: Buffer, header: BatchHeader, settings: PartitionSettings, keys: CheckedKeys | None
) -> None:
    """Raise CorruptBatch if the payload is malformed, or KafkaError for a record without a key in a
    compacted topic."""
    keyed = settings.compacted and not header.is_control
    count, whole = header.record_count, True
    if header.codec:
        most = expansion(header.codec, payload).most
        if count * LEAST_RECORD_BYTES > most:
            raise CorruptBatch(f"{most} bytes at most cannot hold {count} records")
        wanted = KEYED_BYTES if keyed and keys is None else CHECKED_BYTES
        payload, whole = decompress_beginning(header.codec, payload, wanted)
    check_framing(payload, count, whole=whole)
    if not keyed:
        return
    if keys is None:
        check_keys(payload, header, whole=whole)
    elif keys.error is not None:
        raise keys.error
