"""What a batch that a client sends must satisfy before it is appended (Kafka's LogValidator).

Only the 61-byte header is read. The CRC is checked by the log's append, before anything is written;
here only where the batch is decoded or sealed anew. Records are decoded in one case: a compacted
topic wants a key on every record.
"""

from __future__ import annotations

from quorate.broker.partition.settings import NO_LIMIT, PartitionSettings
from quorate.quorum.log.batch import (
    LOG_APPEND_TIME,
    BatchHeader,
    checksum_is_valid,
    read_header,
    records_of,
)
from quorate.quorum.log.errors import CorruptBatch
from quorate.quorum.rpc.kafka.errors import ErrorCode, KafkaError
from quorate.quorum.seams import Buffer

_CODECS = 5  # none gzip snappy lz4 zstd


def validate_client_batch(
    data: Buffer, settings: PartitionSettings, wall_ms: int, *, internal: bool = False
) -> BatchHeader:
    """The header of the one batch in `data`; KafkaError with the code a producer gets. The broker's
    own coordinators (`internal`) may write control batches."""
    if len(data) == 0:
        raise KafkaError(ErrorCode.INVALID_RECORD, "a partition's records must be one batch")
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
            code, f"one batch of {header.size_bytes} bytes expected, {len(data)} bytes sent"
        )
    opened = settings.compacted or settings.log_append_time
    if opened and not checksum_is_valid(data, 0, header):
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "the batch fails its CRC-32C")
    _check_fields(header, internal)
    if not settings.log_append_time:
        _check_timestamps(header, settings, wall_ms)
    if settings.compacted and not header.is_control:
        _check_keys(data, header)
    return header


def _code_of_bad_header(data: Buffer) -> ErrorCode:
    """Message formats 0 and 1 have their magic at the same place and are no longer taken."""
    if len(data) > 16 and data[16] in (0, 1):
        return ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
    return ErrorCode.CORRUPT_MESSAGE


def _check_fields(header: BatchHeader, internal: bool) -> None:
    if header.record_count != header.last_offset_delta + 1 or header.record_count <= 0:
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"{header.record_count} records do not fill offsets 0..{header.last_offset_delta}",
        )
    if header.attributes & LOG_APPEND_TIME:
        raise KafkaError(
            ErrorCode.INVALID_TIMESTAMP, "only a broker marks a batch as LogAppendTime"
        )
    if header.codec >= _CODECS:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"there is no codec {header.codec}"
        )
    if header.is_control and not internal:
        raise KafkaError(ErrorCode.INVALID_RECORD, "clients may not write control batches")
    if header.producer_id >= 0 and (header.producer_epoch < 0 or header.base_sequence < 0):
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"producer {header.producer_id} sent epoch {header.producer_epoch} and sequence "
            f"{header.base_sequence}: neither may be negative",
        )


def _check_timestamps(header: BatchHeader, settings: PartitionSettings, wall_ms: int) -> None:
    ahead_ms = header.max_timestamp_ms - wall_ms
    if ahead_ms > settings.timestamp_after_max_ms:
        raise KafkaError(
            ErrorCode.INVALID_TIMESTAMP,
            f"timestamp {header.max_timestamp_ms} is {ahead_ms} ms ahead of the broker, "
            f"message.timestamp.after.max.ms is {settings.timestamp_after_max_ms}",
        )
    if settings.timestamp_before_max_ms == NO_LIMIT:
        return
    behind_ms = wall_ms - header.base_timestamp_ms
    if behind_ms > settings.timestamp_before_max_ms:
        raise KafkaError(
            ErrorCode.INVALID_TIMESTAMP,
            f"timestamp {header.base_timestamp_ms} is {behind_ms} ms behind the broker, "
            f"message.timestamp.before.max.ms is {settings.timestamp_before_max_ms}",
        )


def _check_keys(data: Buffer, header: BatchHeader) -> None:
    try:
        keyless = any(record.key is None for record in records_of(data, 0, header))
    except CorruptBatch as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from None
    if keyless:
        raise KafkaError(ErrorCode.INVALID_RECORD, "a compacted topic takes no record without key")
