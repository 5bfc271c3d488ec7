"""A cheap check of the records of a payload: they fill it, and they are as many as the batch
declares.

Kafka reads every record of a batch that it appends. In Python that costs more than the append. The
walk here has a bounded number of steps, in proportion to the payload. Of a run of records of equal
length, RECORDS_PER_STEP records are one step, because slices compare the lengths of the whole run
in C. Records that the walk does not reach stay unchecked. That is safe for two reasons. Offsets
follow from the header alone, and the header's count is compared with the payload's size. Every
reader of records raises CorruptBatch for the rest.
"""

from __future__ import annotations

from quorate.quorum.log.errors import CorruptBatch
from quorate.quorum.log.record import NULL, ZIGZAG, decode_records, read_varint
from quorate.quorum.seams import Buffer

LEAST_RECORD_BYTES = 7
"""Length, attributes, two deltas, key, value and headers take at least one byte each."""
STEPS = 16
"""The number of steps for a small payload."""
BYTES_PER_STEP = 16 * 1024
"""The walk has one more step for each so many bytes of the payload."""
RUN_AT_FIRST = 64
"""The records that are compared first when a run begins."""
COPIED_BYTES = 64 * 1024
"""A payload up to this size is copied first, because slices of a view cost ten times as much."""
RECORDS_PER_STEP = 32
"""Records of a run that count as one step."""


def check_framing(payload: Buffer, count: int, *, whole: bool = True) -> None:
    """Raise CorruptBatch if the walk finds that `payload` does not consist of `count` records.

    `payload` is not compressed. It is the whole payload if `whole`, else its beginning. The walk
    checks that the first record is valid and that each length that it meets fits. Records that it
    does not reach are not checked. The counts are compared with the size only if `whole`."""
    size = len(payload)
    if size <= COPIED_BYTES:
        payload = bytes(payload)
    if whole and count * LEAST_RECORD_BYTES > size:
        raise CorruptBatch(f"{size} bytes cannot hold {count} records")
    position, left = 0, count
    steps = STEPS + size // BYTES_PER_STEP
    while left and steps > 0:
        try:
            if (byte := payload[position]) < 0x80:
                length, start = ZIGZAG[byte], position + 1
            else:
                length, start = read_varint(payload, position)
        except IndexError:
            if whole:
                raise CorruptBatch(f"{left} of {count} records are missing") from None
            return
        end = start + length
        if length < LEAST_RECORD_BYTES - 1 or end > size:
            if end > size and not whole:
                return
            raise CorruptBatch(
                f"record of {length} bytes at byte {start} does not fit a payload of {size} bytes"
            )
        if not position:
            _check_first(payload, start, end)
        left -= 1
        steps -= 1
        stride, head = end - position, start - position
        position = end
        if left > 1 and steps > 0 and end < size and payload[end] == byte:
            run = _run(payload, end, head, stride, min(left, steps * RECORDS_PER_STEP))
            left -= run
            position += run * stride
            steps -= 1 + run // RECORDS_PER_STEP
    if left == 0 and whole and position != size:
        raise CorruptBatch(f"{size - position} bytes follow the last of {count} records")
    if whole and left * LEAST_RECORD_BYTES > size - position:
        raise CorruptBatch(
            f"{size - position} bytes cannot hold the last {left} of {count} records"
        )


def _check_first(payload: Buffer, start: int, end: int) -> None:
    """Raise CorruptBatch unless the first record, after its length, is one with offset delta 0."""
    if payload[start + 1] < 0x80 and not payload[start + 2]:
        # The usual record has a timestamp delta of one byte, no key and no headers.
        place = start + 3
        if payload[place] == NULL:
            length, place = read_varint(payload, place + 1)
            if length >= 0 and place + length == end - 1 and not payload[end - 1]:
                return
    (first,) = decode_records(payload[:end], 1, 0, 0)
    if first.offset:
        raise CorruptBatch(f"the first record has offset delta {first.offset}")


def _run(payload: Buffer, position: int, head: int, stride: int, most: int) -> int:
    """Return the number of records from `position` on that are as long as the record before.

    The length of that record is its first `head` bytes, and each record of the run takes `stride`
    bytes. The run is tried with rising sizes, so that a short run costs little."""
    before = position - stride
    run, tried = 0, RUN_AT_FIRST
    most = min(most, (len(payload) - position) // stride)
    while run < most:
        count = min(tried, most - run)
        stop = position + count * stride
        equal = count
        for index in range(head):
            column = bytes(payload[position + index : stop : stride])
            byte = payload[before + index]
            if column.count(byte) != count:
                equal = min(equal, count - len(column.lstrip(bytes((byte,)))))
        run += equal
        if equal < count:
            break
        position, tried = stop, tried * RUN_AT_FIRST
    return run
