"""The check that every record of a batch for a compacted topic has a key (Kafka's validateKey).

The log cleaner removes records without a key, so such a record must not be acknowledged. Kafka
reads every record of every batch. Here only a compacted topic's batches are read, up to
KEYS_CHECKED records and KEYED_BYTES decompressed bytes. A larger batch is refused, because its keys
are unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from quorate.quorum.incremental_work import IncrementalWork, finished
from quorate.quorum.log.batches.batch import HEADER_BYTES, BatchHeader, read_header
from quorate.quorum.log.batches.compression import decompress_beginning
from quorate.quorum.log.batches.record import ZIGZAG, read_varint
from quorate.quorum.log.files.errors import CorruptBatch
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from quorate.quorum.seams import Buffer

KEYS_CHECKED = 65_536
"""The most records of one batch for a compacted topic. Their check takes some 25 ms."""
KEYED_BYTES = 8 << 20
"""The most decompressed bytes of one batch for a compacted topic."""
RECORDS_PER_STEP = 4096
"""Records whose keys are read in one step, in some 1 ms."""
SHOWN_IN_TEXT = 3
"""Records that the error text names, as in Kafka."""
MAX_RECORD_ERRORS = 1_000
"""Records that the response names. Kafka names all."""


class KeylessRecords(KafkaError):
    """A batch for a compacted topic has records without a key.

    `indexes` are the positions of such records in the batch, at most MAX_RECORD_ERRORS, and `count`
    is the number of all of them."""

    def __init__(self, indexes: Sequence[int], count: int) -> None:
        super().__init__(
            ErrorCode.INVALID_RECORD, "a compacted topic accepts no record without a key"
        )
        self.indexes = indexes
        self.count = count

    def texts(self, partition: str) -> tuple[str, str]:
        """Return the error text of the partition, named `<topic>-<number>`, and that of each
        record. Both are Kafka's."""
        each = f"Compacted topic cannot accept message without key in topic partition {partition}"
        shown = ", ".join(
            f"RecordError(batchIndex={index}, message='{each}')"
            for index in self.indexes[:SHOWN_IN_TEXT]
        )
        text = (
            f"One or more records have been rejected due to {self.count} record errors in total, "
            f"and only showing the first three errors at most: [{shown}]"
        )
        return text, each


class CheckedKeys(NamedTuple):
    """The result of a check of keys that was made before the append: its error, or None."""

    error: CorruptBatch | KafkaError | None


def checked_keys(data: Buffer) -> IncrementalWork[CheckedKeys]:
    """Check the keys of a long batch in steps, before its append. Raise nothing.

    The append checks everything else, and first, so that a malformed batch gets its own error."""
    try:
        header = read_header(data)
        payload: Buffer = memoryview(data)[HEADER_BYTES:]
        whole = True
        if header.codec:
            payload, whole = decompress_beginning(header.codec, payload, KEYED_BYTES)
        yield
        yield from _check_steps(payload, header, whole=whole)
    except (CorruptBatch, KafkaError) as error:
        return CheckedKeys(error.with_traceback(None))
    return CheckedKeys(None)


def check_keys(payload: Buffer, header: BatchHeader, *, whole: bool) -> None:
    """Raise KeylessRecords if a record has no key.

    `payload` is decompressed, and `whole` is False if it was too large for that. Raise KafkaError
    (INVALID_RECORD) if the batch has too many records or bytes for the check, and CorruptBatch if
    the payload does not consist of the records that the header declares."""
    finished(_check_steps(payload, header, whole=whole))


def _check_steps(payload: Buffer, header: BatchHeader, *, whole: bool) -> IncrementalWork[None]:
    count = header.record_count
    if count > KEYS_CHECKED or not whole:
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"a batch for a compacted topic has at most {KEYS_CHECKED} records and "
            f"{KEYED_BYTES} bytes when it is not compressed",
        )
    found = yield from _without_key(bytes(payload), count)
    if found:
        raise KeylessRecords(found[:MAX_RECORD_ERRORS], len(found))


def _without_key(payload: bytes, count: int) -> IncrementalWork[list[int]]:
    found: list[int] = []
    position = index = 0
    try:
        for begin in range(0, count, RECORDS_PER_STEP):
            if begin:
                yield
            for index in range(begin, min(begin + RECORDS_PER_STEP, count)):
                if (byte := payload[position]) < 0x80:
                    length, position = ZIGZAG[byte], position + 1
                else:
                    length, position = read_varint(payload, position)
                place = position + 1  # behind the attributes
                while payload[place] >= 0x80:  # the timestamp delta
                    place += 1
                place += 1
                while payload[place] >= 0x80:  # the offset delta
                    place += 1
                if payload[place + 1] & 1:  # a negative length
                    found.append(index)
                if length < 0:
                    raise CorruptBatch(f"record {index} has {length} bytes")
                position += length
    except IndexError:
        raise CorruptBatch(f"record {index} of {count} exceeds the payload") from None
    if position != len(payload):
        raise CorruptBatch(f"the {count} records do not fill a payload of {len(payload)} bytes")
    return found
