"""Batches that are rewritten with another codec."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.quorum.incremental_work import finished
from quorate.quorum.log.batches.batch import (
    CONTROL,
    TRANSACTIONAL,
    assemble,
    build_batch,
    checksum_is_valid,
    payload_of,
    read_header,
    records_of,
)
from quorate.quorum.log.batches.compression import Codec, decompress
from quorate.quorum.log.batches.compression_frames import expansion
from quorate.quorum.log.batches.recompression import (
    STEP_BYTES,
    Compression,
    must_recompress,
    recompress,
)
from quorate.quorum.log.batches.record import Record
from quorate.quorum.log.files.errors import CorruptBatch
from tests.attacks.bombs import bombs

LEVELS = {"gzip": [-1, 1, 9], "lz4": [1, 9, 17], "zstd": [-131072, -5, 3], "snappy": [0]}
HIGHEST = Compression(Codec.ZSTD, 22)
"""It takes memory for its largest window, and 0.4 s, for each batch."""
TARGETS = [
    compression
    for name, levels in LEVELS.items()
    for level in levels
    if (compression := Compression.of(name, {name: level})) is not None
] + [Compression(Codec.NONE)]
records = st.lists(
    st.builds(
        lambda at, key, value: Record(0, at, key, value),
        st.integers(0, 2**40),
        st.none() | st.binary(max_size=20),
        st.none() | st.binary(max_size=300),
    ),
    min_size=1,
    max_size=20,
)


@given(records=records, codec=st.sampled_from(Codec), target=st.sampled_from(TARGETS))
@settings(max_examples=200)
def test_the_records_and_the_header_stay(
    records: list[Record], codec: Codec, target: Compression
) -> None:
    they_stay(records, codec, target)


@given(records=records, codec=st.sampled_from(Codec))
@settings(max_examples=5)
def test_they_stay_at_the_highest_level(records: list[Record], codec: Codec) -> None:
    assert Compression.of("zstd", {"zstd": 22}) == HIGHEST
    they_stay(records, codec, HIGHEST)


def they_stay(records: list[Record], codec: Codec, target: Compression) -> None:
    numbered = [each._replace(offset=offset) for offset, each in enumerate(records)]
    data = build_batch(
        numbered,
        leader_epoch=7,
        codec=codec,
        flags=TRANSACTIONAL,
        producer_id=11,
        producer_epoch=2,
        base_sequence=5,
    )
    before = read_header(data)
    found = finished(recompress(bytes(data), target))
    after = read_header(found)
    assert checksum_is_valid(found, 0, after)
    assert after.codec == target.codec
    assert after.size_bytes == len(found)
    same = {"length": 0, "crc": 0, "attributes": 0}
    assert after._replace(**same) == before._replace(**same)
    assert after.attributes & ~7 == before.attributes & ~7
    assert list(records_of(found, 0, after)) == list(records_of(data, 0, before))
    if target.codec:
        payload = payload_of(found, 0, after)
        least, most = expansion(target.codec, payload)
        assert least <= len(decompress(target.codec, payload)) <= most


def text(size: int) -> bytes:
    rng = random.Random(1)
    words = [rng.randbytes(6).hex().encode() for _ in range(2000)]
    out = bytearray()
    while len(out) < size:
        out += rng.choice(words)
    return bytes(out[:size])


@pytest.mark.parametrize(
    ("name", "low", "high"), [("gzip", 1, 9), ("zstd", -5, 19), ("lz4", 9, 17)]
)
def test_a_higher_level_compresses_better(name: str, low: int, high: int) -> None:
    data = build_batch([Record(0, 0, None, text(60_000))], leader_epoch=0)
    sizes = []
    for level in (low, high):
        compression = Compression.of(name, {name: level})
        assert compression is not None
        sizes.append(len(finished(recompress(data, compression))))
    assert sizes[0] > sizes[1]


def test_the_default_levels_are_kafkas() -> None:
    """The level 9 of lz4 is Kafka's name for the fast compressor, -1 that of gzip's default."""
    assert Compression.of("gzip", {"gzip": -1}) == Compression(Codec.GZIP, None)
    assert Compression.of("lz4", {"lz4": 9}) == Compression(Codec.LZ4, None)
    assert Compression.of("zstd", {"zstd": 3}) == Compression(Codec.ZSTD, 3)
    assert Compression.of("snappy", {}) == Compression(Codec.SNAPPY)
    assert Compression.of("uncompressed", {}) == Compression(Codec.NONE)
    assert Compression.of("producer", {}) is None


def test_another_codec_is_recompressed_and_another_level_is_not() -> None:
    data = build_batch([Record(0, 0, None, b"x")], leader_epoch=0, codec=Codec.GZIP)
    assert must_recompress(data, Compression(Codec.ZSTD, 3))
    assert must_recompress(data, Compression(Codec.NONE))
    assert not must_recompress(data, Compression(Codec.GZIP, 9))
    control = build_batch([Record(0, 0, b"", b"x")], leader_epoch=0, flags=CONTROL)
    assert not must_recompress(control, Compression(Codec.ZSTD, 3))
    assert not must_recompress(b"short", Compression(Codec.ZSTD, 3))


def test_a_step_compresses_a_bounded_part() -> None:
    data = build_batch([Record(0, 0, None, text(5 * STEP_BYTES))], leader_epoch=0)
    steps = recompress(data, Compression(Codec.ZSTD, 3))
    assert sum(1 for _ in steps) >= 5
    small = build_batch([Record(0, 0, None, b"x")], leader_epoch=0)
    assert sum(1 for _ in recompress(small, Compression(Codec.ZSTD, 3))) == 0


@pytest.mark.parametrize("name", bombs(quick=True))
def test_a_bomb_is_refused(name: str) -> None:
    codec, payload = bombs(quick=True)[name]
    header = read_header(build_batch([Record(0, 0, None, b"x")], leader_epoch=0))
    data = assemble(payload, header._replace(attributes=codec))
    with pytest.raises(CorruptBatch):
        finished(recompress(data, Compression(Codec.NONE)))


def test_records_that_do_not_fill_the_payload_are_refused() -> None:
    data = build_batch([Record(0, 0, None, b"x")], leader_epoch=0, codec=Codec.GZIP)
    wrong = read_header(data)._replace(record_count=2, last_offset_delta=1)
    with pytest.raises(CorruptBatch):
        finished(recompress(assemble(data[61:], wrong), Compression(Codec.ZSTD, 3)))
