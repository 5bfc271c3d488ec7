"""Frames of many elements are refused before the elements are built."""

from __future__ import annotations

import gc
import tracemalloc

import msgpack  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.quorum.rpc.hello import Hello
from quorate.quorum.rpc.messages import (
    MAX_FRAME_ELEMENTS,
    SMALL_FRAME_BYTES,
    rows_of,
    sole_message,
)
from quorate.quorum.rpc.msgpack_elements import check_elements
from quorate.quorum.seams import ProtocolError

FRAME_BYTES = 32 << 20
HALF = MAX_FRAME_ELEMENTS // 2 + 1
"""A frame may have one array of so many elements, but not two. The reader counts the first one."""
ARRAY = b"\xdd" + HALF.to_bytes(4, "big")
ARRAYS = FRAME_BYTES // (len(ARRAY) + HALF)
FRAME_OF_EMPTY_ARRAYS = b"\xdc" + ARRAYS.to_bytes(2, "big") + (ARRAY + b"\x90" * HALF) * ARRAYS
TOWER = ARRAY * 1000
SHORT_STRINGS = ARRAY + b"\xa2ab" * HALF
NESTED_STRINGS = (ARRAY + b"\xa2ab" * (HALF - 1)) * 25

elements = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=40),
    max_leaves=100,
)


def counted(value: object) -> int:
    return 1 + (sum(map(counted, value)) if isinstance(value, list) else 0)


@settings(max_examples=200)
@given(elements)
def test_the_count_is_that_of_the_unpacked_value(value: object) -> None:
    frame = msgpack.packb(value)
    most = counted(value)
    check_elements(frame, most)
    with pytest.raises(ProtocolError, match="more than"):
        check_elements(frame, most - 1)


@pytest.mark.parametrize("size", [0, 31, 32, 255, 256, 65_535, 65_536])
def test_long_strings_count_once(size: int) -> None:
    check_elements(msgpack.packb(["x" * size, bytes(size), 1]), 4)
    check_elements(msgpack.packb([[1] * size]), 2 + size)


@pytest.mark.parametrize(
    "element", [{}, {"a": 1}, msgpack.ExtType(5, b"x" * 4), msgpack.ExtType(5, b"x" * 300)]
)
def test_what_no_message_contains_is_refused(element: object) -> None:
    with pytest.raises(ProtocolError, match="node messages contain no msgpack element"):
        check_elements(msgpack.packb([1, element]), 10)


@pytest.mark.parametrize(
    "frame",
    [FRAME_OF_EMPTY_ARRAYS, TOWER * 20, NESTED_STRINGS],
    ids=["empty arrays", "tower", "strings"],
)
def test_a_large_frame_of_elements_takes_no_memory(frame: bytes) -> None:
    assert len(frame) > SMALL_FRAME_BYTES
    gc.collect()
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError, match=f"more than {MAX_FRAME_ELEMENTS} elements") as got:
            rows_of(frame)
        gc.freeze()  # what a cycle held now would stay
        held_bytes, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 1 << 20
    assert held_bytes < 100_000
    assert got.value.__context__ is None


@pytest.mark.parametrize(
    "frame",
    [b"\x90" * SMALL_FRAME_BYTES, TOWER[:SMALL_FRAME_BYTES], SHORT_STRINGS[:SMALL_FRAME_BYTES]],
    ids=["empty arrays", "tower", "strings"],
)
def test_a_small_frame_takes_little_memory(frame: bytes) -> None:
    gc.collect()
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError) as got:
            rows_of(frame)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 40 << 20
    assert got.value.__context__ is None


def test_a_large_frame_before_the_handshake_is_not_parsed() -> None:
    with pytest.raises(ProtocolError, match="before the handshake"):
        sole_message(bytes(SMALL_FRAME_BYTES + 1), Hello)
