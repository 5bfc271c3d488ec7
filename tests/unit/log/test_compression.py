"""Decompression within a bound: no payload expands further than the caller allows."""

from __future__ import annotations

import contextlib
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.quorum.log.batches import compression
from quorate.quorum.log.batches.compression import (
    Codec,
    ExpandsTooFar,
    compress,
    decompress,
    decompress_beginning,
)
from quorate.quorum.log.batches.compression_frames import expansion
from quorate.quorum.log.files.errors import CorruptBatch
from tests.attacks.bombs import bombs

CODECS = [codec for codec in Codec if codec]
contents = st.one_of(
    st.binary(max_size=5_000),
    st.builds(lambda part, times: part * times, st.binary(max_size=300), st.integers(0, 1_000)),
)


@given(codec=st.sampled_from(CODECS), content=contents, data=st.data())
@settings(max_examples=150)
def test_whatever_was_compressed_comes_back_within_its_size_and_not_below(
    codec: Codec, content: bytes, data: st.DataObject
) -> None:
    payload = compress(codec, content)
    assert bytes(decompress(codec, payload, len(content))) == content
    assert bytes(decompress(codec, memoryview(payload))) == content
    least, most = expansion(codec, payload)
    assert least <= len(content) <= most
    if content:
        with pytest.raises(ExpandsTooFar):
            decompress(codec, payload, data.draw(st.integers(0, len(content) - 1)))
    limit = data.draw(st.integers(0, len(content) + 10))
    beginning = decompress_beginning(codec, payload, limit)
    assert beginning.whole == (len(content) <= limit)
    assert content.startswith(bytes(beginning.data)) and len(beginning.data) <= limit
    if not beginning.whole and codec is not Codec.SNAPPY:
        assert len(beginning.data) == limit


@given(codec=st.sampled_from(CODECS), content=contents, data=st.data())
@settings(max_examples=150)
def test_damage_is_a_corrupt_batch_and_nothing_else(
    codec: Codec, content: bytes, data: st.DataObject
) -> None:
    payload = bytearray(compress(codec, content))
    for _ in range(data.draw(st.integers(1, 4))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(payload[: data.draw(st.integers(0, len(payload)))])
    for read in (
        lambda each: decompress(codec, each, 1 << 20),
        lambda each: decompress_beginning(codec, each, 1_000),
        lambda each: expansion(codec, each),
    ):
        with contextlib.suppress(CorruptBatch):
            read(cut)


@pytest.mark.parametrize("name", bombs(quick=True))
def test_a_bomb_is_refused_and_costs_no_memory_beyond_the_bound(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compression, "MAX_DECOMPRESSED_BYTES", 8 << 20)
    codec, payload = bombs(quick=True)[name]
    tracemalloc.start()
    try:
        with pytest.raises(CorruptBatch):
            decompress(codec, payload)
        decompressed_peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert decompressed_peak < 40 << 20, "two buffers at most, of which one is the bound"


@pytest.mark.parametrize("name", ["zstd", "zstd claim", "snappy claim", "zstd that does not end"])
def test_the_frame_of_a_bomb_gives_it_away(name: str) -> None:
    codec, payload = bombs(quick=False)[name]
    with pytest.raises(CorruptBatch):
        expansion(codec, payload)


def test_a_topic_with_great_messages_may_have_them_compressed() -> None:
    payload = bytes(compression.MAX_DECOMPRESSED_BYTES)
    assert compression.largest(payload) == 4 * compression.MAX_DECOMPRESSED_BYTES


def test_many_small_members_blocks_and_frames_cost_little() -> None:
    """A megabyte of such members once took 100 ms of the event loop."""
    snappy = compression.XERIAL_MAGIC + bytes(8) + (b"\x00\x00\x00\x01\x00") * 200_000
    with pytest.raises(CorruptBatch, match="blocks"):
        decompress_beginning(Codec.SNAPPY, snappy, 1_000)
    member = compress(Codec.GZIP, b"")
    found = decompress_beginning(Codec.GZIP, member * 50_000, 1_000)
    assert (bytes(found.data), found.whole) == (b"", False), "the second member is not looked at"
    assert expansion(Codec.ZSTD, compress(Codec.ZSTD, b"x") * 50_000).most == 64 << 20
