"""Lookups by time in a log whose segments the log cleaner replaces meanwhile."""

from __future__ import annotations

import pytest

from quorate.quorum.log.batches.batch import build_batch
from quorate.quorum.log.batches.compression import Codec, decompress
from quorate.quorum.log.batches.record import Record
from quorate.quorum.log.segments.timestamp_lookup import (
    Acquire,
    Decompress,
    TimestampOffset,
    look_up_timestamp,
)
from quorate.quorum.seams import Buffer
from tests.unit.compaction.histories import Replica

COUNT = 300


def appended(replica: Replica) -> None:
    """Append one large batch with COUNT keys, one record per ms."""
    base, random = replica.log.end_offset, replica.random
    records = [
        Record(base + number, base + number, b"key%d" % number, random.randbytes(100))
        for number in range(COUNT)
    ]
    data = build_batch(records, leader_epoch=0, codec=Codec.GZIP)
    replica.log.append(data, wall_ms=replica.wall_ms)
    replica.high_watermark = replica.log.end_offset


@pytest.mark.parametrize("superseded", [0, 1, 100, COUNT])
def test_a_lookup_survives_the_replacement_of_its_batch(superseded: int) -> None:
    """The batch that the lookup is about to read again has other records, or none, or is gone."""
    replica = Replica(1, map_keys=10_000)
    appended(replica)
    end = replica.log.end_offset
    for number in range(superseded):
        record = Record(end + number, 10_000 + number, b"key%d" % number, b"new")
        replica.log.append(build_batch([record], leader_epoch=0), wall_ms=replica.wall_ms)
    for _ in range(6):
        replica.append(10)
    replica.high_watermark = replica.log.end_offset
    replica.flush()
    lookup = look_up_timestamp(replica.log, 0)
    reply: Buffer | None = None
    with pytest.raises(StopIteration) as ended:
        while True:
            asked, reply = lookup.send(reply), None
            if isinstance(asked, Acquire):
                replica.clean()
            elif isinstance(asked, Decompress):
                reply = decompress(asked.codec, asked.payload)
    assert replica.cleanings == 1
    first = superseded if superseded < COUNT else end
    at_ms = superseded if superseded < COUNT else 10_000
    assert ended.value.value == TimestampOffset(at_ms, first, 0)
