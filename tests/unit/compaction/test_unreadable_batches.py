"""A batch that cannot be decoded has a valid CRC, because a producer sent it like this.

Its keys must not remove earlier records: no reader gets the record that would replace them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quorate.broker.compaction.offset_map import ENTRY_BYTES, OffsetMap
from quorate.broker.compaction.record_spans import RECORDS_PER_STEP
from quorate.quorum.log.batches.batch import (
    assemble,
    batches,
    build_batch,
    payload_of,
    read_header,
    records_of,
)
from quorate.quorum.log.batches.compression import Codec, compress
from quorate.quorum.log.batches.record import Record
from quorate.quorum.log.files.errors import CorruptBatch
from tests.unit.compaction.histories import Replica, value_of

POISONED = RECORDS_PER_STEP + 4


def poison(base: int, codec: Codec) -> bytearray:
    """Return a batch whose first records are valid, and whose last one is cut. The first step of a
    pass over it sees only valid ones."""
    records = [Record(base + each, 1_000, b"k%d" % (each % 4), b"lost") for each in range(POISONED)]
    plain = build_batch(records, leader_epoch=0)
    header = read_header(plain)
    payload = bytes(payload_of(plain, 0, header))[:-3]
    if codec:
        payload = compress(codec, payload)
    return assemble(payload, header._replace(attributes=codec))


def readable(replica: Replica) -> dict[bytes, bytes | None]:
    """Return the latest value of each key, without the batches that cannot be decoded."""
    found: dict[bytes, bytes | None] = {}
    at = replica.log.start_offset
    while data := replica.log.read(at, 300):
        for position, header in batches(data):
            try:
                for record in list(records_of(data, position, header)):
                    found[bytes(record.key or b"")] = value_of(record)
            except CorruptBatch:
                pass
            at = header.next_offset
    return found


def negative(base: int) -> bytearray:
    """Return a batch without a record that states a negative number of them."""
    header = read_header(build_batch([Record(base, 1_000, b"k", b"lost")], leader_epoch=0))
    return assemble(b"", header._replace(record_count=-2))


def history(bad_at: Callable[[int], bytearray], map_keys: int) -> tuple[Replica, bytearray, int]:
    """Return a log whose only readable records of four keys lie before an unreadable batch."""
    replica = Replica(1, map_keys=map_keys)
    for number in range(4):
        data = build_batch([Record(number, 1_000, b"k%d" % number, b"kept")], leader_epoch=0)
        replica.log.append(data, wall_ms=replica.wall_ms)
    base = replica.log.end_offset
    bad = bad_at(base)
    replica.log.append(bad, wall_ms=replica.wall_ms)
    for offset in range(replica.log.end_offset, replica.log.end_offset + 20):
        data = build_batch([Record(offset, 1_000, b"other", b"v" * 90)], leader_epoch=0)
        replica.log.append(data, wall_ms=replica.wall_ms)
    replica.high_watermark = replica.log.end_offset
    replica.flush()
    return replica, bad, base


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.ZSTD])
@pytest.mark.parametrize("map_keys", [1, 3, 5, 6, 50])
def test_the_keys_before_the_fault_of_a_batch_remove_nothing(map_keys: int, codec: Codec) -> None:
    replica, bad, base = history(lambda base: poison(base, codec), map_keys)
    before = readable(replica)
    assert before[b"k0"] == before[b"k3"] == b"kept"
    for _ in range(30):
        if replica.clean() is None:
            break
    assert replica.checkpoint is not None and replica.checkpoint > base
    assert readable(replica) == before
    assert replica.log.read(base, 1)[: len(bad)] == bad
    others = sum(
        header.record_count for _, header in batches(replica.log.read(base + POISONED, 10_000))
    )
    assert others < 20, "the rest of the log is compacted"


def test_a_batch_that_states_a_negative_number_of_records_stays() -> None:
    replica, bad, base = history(negative, map_keys=50)
    before = readable(replica)
    while replica.clean() is not None:
        pass
    assert replica.log.read(base, 1)[: len(bad)] == bad
    assert readable(replica) == before


def test_a_discarded_batch_leaves_its_room_to_the_next_one() -> None:
    offsets = OffsetMap(ENTRY_BYTES * 2, 1.0)
    assert offsets.put(b"a", 1)
    offsets.commit(1)
    assert offsets.put(b"a", 2) and offsets.put(b"b", 3) and not offsets.put(b"c", 4)
    assert offsets.offset_of(b"b") == -1, "not before the commit"
    offsets.discard()
    assert offsets.put(b"c", 5)
    offsets.commit(5)
    assert [offsets.offset_of(each) for each in (b"a", b"b", b"c")] == [1, -1, 5]
    assert offsets.latest_offset == 5
