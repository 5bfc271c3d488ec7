"""A cheap, bounded check that the records of a batch fill its payload.

Kafka reads every record of a batch that it appends. In Python that costs more than the append. The
check here walks from the length of one record to that of the next, and reads only the first record.
The walk ends after a number of steps that grows with the size of the payload. One step is one
record, or RECORDS_PER_STEP records of equal length in a row. Such a run costs little. The lengths
lie at equal distances, so one slice with a step collects them, and C code compares them.

Records that the walk does not reach stay unchecked. That is safe for three reasons:

- The offsets of records follow from the header of the batch alone.
- The payload has room for as many of the smallest records as the header declares. For a compressed
  payload, the caller makes this comparison.
- Every reader of records raises CorruptBatch for a record that it cannot read.
"""

from __future__ import annotations

from quorate.quorum.log.batches.record import NULL, ZIGZAG, decode_records, read_varint
from quorate.quorum.log.files.errors import CorruptBatch
from quorate.quorum.seams import Buffer

LEAST_RECORD_BYTES = 7
"""The size of the smallest record. Its seven fields take one byte each: length, attributes, two
deltas, the lengths of key and value, and the number of headers."""
STEPS = 16
"""The number of steps for a payload smaller than BYTES_PER_STEP."""
BYTES_PER_STEP = 16 * 1024
"""The walk gets one more step for each BYTES_PER_STEP bytes of the payload."""
RUN_AT_FIRST = 64
"""The number of records in the first comparison of a run. Each later comparison takes up to
RUN_AT_FIRST times as many as the one before."""
COPIED_BYTES = 64 * 1024
"""The largest payload that is copied first, because slices of a view cost ten times as much."""
RECORDS_PER_STEP = 32
"""The number of records of a run that count as one step."""


def check_framing(payload: Buffer, count: int, *, whole: bool = True) -> None:
    """Raise CorruptBatch if the walk finds that `payload` does not consist of `count` records.

    `payload` is not compressed, or is decompressed already. `count` is that of the batch header.
    The walk checks that the first record can be decoded and has offset delta 0. It also checks that
    each length that it meets fits into the payload.

    If `whole` is True, the payload must have room for `count` records. If the walk reaches the last
    record, no bytes may follow it. Otherwise the bytes that are left must have room for the records
    that are left.

    If `whole` is False, `payload` is only the beginning of the records. The walk then ends without
    an error at a record that `payload` cuts off, even at the first one."""
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
            try:
                length, place = read_varint(payload, place + 1)
                if length >= 0 and place + length == end - 1 and not payload[end - 1]:
                    return
            except IndexError:
                pass  # the payload ends within the length, which the decoding below reports
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
