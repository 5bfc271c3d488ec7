"""The walk over a payload's records, compared with reading all of them."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.quorum.log.batches import record_framing
from quorate.quorum.log.batches.record import Record, decode_records, encode_records, read_varint
from quorate.quorum.log.batches.record_framing import check_framing
from quorate.quorum.log.files.errors import CorruptBatch

sizes = st.lists(st.sampled_from([0, 1, 2, 50, 55, 56, 57, 58, 63, 64, 200, 9_000]), max_size=40)
runs = st.builds(
    lambda pairs: [size for size, times in pairs for _ in range(times)],
    st.lists(st.tuples(st.sampled_from([0, 10, 100, 5_000]), st.integers(1, 150)), max_size=5),
)


def payload_of(values: list[int]) -> bytes:
    records = [Record(at, at, None, b"v" * size) for at, size in enumerate(values)]
    return bytes(encode_records(records)) if records else b""


def readable(payload: bytes, count: int) -> bool:
    try:
        records = list(decode_records(payload, count, 0, 0))
        return len(records) == count and records[0].offset == 0
    except CorruptBatch:
        return False


def accepted(payload: bytes, count: int, *, whole: bool = True) -> bool:
    try:
        check_framing(payload, count, whole=whole)
    except CorruptBatch:
        return False
    return True


@given(values=st.one_of(sizes, runs), cut=st.integers(0, 10_000))
@settings(max_examples=200)
def test_good_records_pass_and_so_does_their_beginning(values: list[int], cut: int) -> None:
    payload = payload_of(values)
    assert accepted(payload, len(values))
    if values:
        assert accepted(payload[:cut], len(values), whole=cut >= len(payload))


@given(values=st.one_of(sizes, runs), data=st.data())
@settings(max_examples=300)
def test_without_a_limit_of_steps_the_lengths_fill_the_payload(
    values: list[int], data: st.DataObject
) -> None:
    """With enough steps, a payload passes only if its lengths lead from its first byte to its last
    one in `count` records."""
    payload = bytearray(payload_of(values))
    count = len(values) + data.draw(st.sampled_from([0, 0, 1, -1]))
    if payload:
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_framing, "STEPS", 1_000_000)
        passed = accepted(bytes(payload), count)
    if count > 0 and readable(bytes(payload), count):
        assert passed
    if passed:
        assert chained(bytes(payload), count)


def chained(payload: bytes, count: int) -> bool:
    """The oracle: go from length to length."""
    position = 0
    for _ in range(count):
        value = shift = 0
        while True:
            byte = payload[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        position += (value >> 1) ^ -(value & 1)
    return position == len(payload)


@pytest.mark.parametrize(
    ("payload", "count"),
    [
        pytest.param(b"", 1, id="nothing"),
        pytest.param(b"", 2**31 - 1, id="nothing that claims everything"),
        pytest.param(payload_of([3, 3]), 3, id="one is missing"),
        pytest.param(payload_of([3, 3]), 1, id="one too many"),
        pytest.param(payload_of([3, 3])[:-1], 2, id="cut"),
        pytest.param(payload_of([3, 3]) + b"\0", 2, id="a byte behind"),
        pytest.param(payload_of([3] * 300) + b"\0", 300, id="a byte behind a run"),
        pytest.param(payload_of([3] * 100 + [5] + [3] * 100)[:-3], 201, id="cut behind a run"),
        pytest.param(b"\x01" + bytes(20), 2, id="a negative length"),
        pytest.param(b"\xff" * 30, 2, id="a length without end"),
        pytest.param(bytes(20), 2, id="lengths of zero"),
        pytest.param(bytes.fromhex("0c000000018080"), 1, id="a value length that is cut off"),
    ],
)
def test_refused(payload: bytes, count: int) -> None:
    assert not accepted(payload, count)


@given(
    st.lists(st.sampled_from([0, 1, 2, 12, 14, 0x7F, 0x80, 0xFF]), max_size=30).map(bytes),
    st.integers(0, 4),
    st.booleans(),
)
def test_no_payload_raises_anything_else(payload: bytes, count: int, whole: bool) -> None:
    """Another exception would answer UNKNOWN_SERVER_ERROR, where Kafka answers INVALID_RECORD."""
    sized = bytes([2 * len(payload) % 0x80]) + payload
    for each in (payload, sized):
        with suppress(CorruptBatch):
            check_framing(each, count, whole=whole)


def test_the_first_record_is_read() -> None:
    payload = bytearray(payload_of([3, 3]))
    payload[3] = 2  # its offset delta
    assert not accepted(bytes(payload), 2)
    payload[3], payload[4] = 0, 40  # its key leaves it
    assert not accepted(bytes(payload), 2)


def test_the_walk_ends_after_a_bounded_number_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their number grows with the payload's bytes, not with its records."""
    steps = 0

    def counted(payload: bytes, position: int) -> tuple[int, int]:
        nonlocal steps
        steps += 1
        return read_varint(payload, position)

    monkeypatch.setattr(record_framing, "read_varint", counted)
    payload = payload_of([100 + at % 50 for at in range(8_000)])
    check_framing(payload, 8_000)
    in_first_record = 1
    assert (
        steps
        <= record_framing.STEPS + len(payload) // record_framing.BYTES_PER_STEP + in_first_record
    )
