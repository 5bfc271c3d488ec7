"""Batches with a good checksum around content that nobody can read (items 2 and 9)."""

from __future__ import annotations

import random

from quorate.quorum.protocol.schemas.fetch import FetchPartition, FetchRequest, FetchTopic
from quorate.quorum.protocol.schemas.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tests.attacks.batches import (
    INT32_MAX,
    INT64_MAX,
    LIST_OFFSETS_VERSION,
    PRODUCE_VERSION,
    WHEN_MS,
    list_offsets,
    produce,
    records,
    sealed,
)
from tests.attacks.registry import attack
from tests.attacks.target import PARTITIONS, TOPIC, Target

TIMES = (0, WHEN_MS, WHEN_MS + 1, WHEN_MS + 2, INT64_MAX, INT64_MAX - 1, -1, -2, -3, -(2**63))
FETCH_VERSION = 12
INDEX_ROUNDS, QUICK_INDEX_ROUNDS = 200, 20
NOISE = random.Random(7).randbytes(200)
GOOD = records()

POISON: dict[str, bytes] = {
    "garbage": sealed(NOISE),
    "nothing": sealed(b""),
    "zeros": sealed(bytes(100)),
    "cut": sealed(GOOD[:-3]),
    "more behind": sealed(GOOD + b"\x00\x01\x02"),
    **{f"codec {codec}": sealed(NOISE, attributes=codec) for codec in range(1, 8)},
    **{f"plain as codec {codec}": sealed(GOOD, attributes=codec) for codec in range(1, 5)},
    "empty that claims 2^31-1": sealed(
        b"", record_count=INT32_MAX, last_offset_delta=INT32_MAX - 1
    ),
    "claims no records": sealed(GOOD, record_count=0, last_offset_delta=0),
    "negative count": sealed(GOOD, record_count=-1),
    "negative count without a record": sealed(b"", record_count=-2, last_offset_delta=0),
    "great delta": sealed(GOOD, last_offset_delta=INT32_MAX),
    "count and delta differ": sealed(GOOD, last_offset_delta=1),
    "first timestamp at the end": sealed(GOOD, base_timestamp_ms=INT64_MAX),
    "timestamps at the end": sealed(
        records(3, INT64_MAX - 10), base_timestamp_ms=INT64_MAX, max_timestamp_ms=INT64_MAX
    ),
    "timestamps of -1": sealed(records(3, -1), base_timestamp_ms=-1, max_timestamp_ms=-1),
    "timestamps below zero": sealed(GOOD, base_timestamp_ms=-(2**63), max_timestamp_ms=-(2**63)),
    "control batch": sealed(GOOD, attributes=0x20),
    "transactional": sealed(GOOD, attributes=0x10, producer_id=5, producer_epoch=0),
    "great producer": sealed(
        GOOD, producer_id=INT64_MAX, producer_epoch=32767, base_sequence=INT32_MAX
    ),
    "magic 1": sealed(GOOD, magic=1),
    "length beyond": sealed(GOOD, length=INT32_MAX),
    "length below": sealed(GOOD, length=-5),
    "wrong checksum": sealed(GOOD, crc=1),
    "base offset": sealed(GOOD, base_offset=INT64_MAX - 1),
    "two batches": sealed(GOOD) + sealed(NOISE),
}


@attack(2)
async def poison_batches(target: Target) -> None:
    """Produce unreadable batches with good checksums, then have the leader read them back."""
    for index, batch in enumerate(POISON.values()):
        partition = index % PARTITIONS
        leader = await target.leader_of(TOPIC, partition)
        await target.fire(leader, (produce(batch, partition), PRODUCE_VERSION))
        lists = [(list_offsets(partition, each), LIST_OFFSETS_VERSION) for each in TIMES]
        await target.fire(leader, *lists)
    await read_back(target)


async def read_back(target: Target) -> None:
    for partition in range(PARTITIONS):
        leader = await target.leader_of(TOPIC, partition)
        wanted = FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1 << 20)
        fetch = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            topics=(FetchTopic(topic=TOPIC, partitions=(wanted,)),),
        )
        cut = DeleteRecordsRequest(
            topics=(
                DeleteRecordsTopic(
                    name=TOPIC,
                    partitions=(DeleteRecordsPartition(partition_index=partition, offset=1),),
                ),
            ),
            timeout_ms=5000,
        )
        await target.fire(leader, (fetch, FETCH_VERSION), (cut, 1))


@attack(9)
async def timestamps_of_minus_one(target: Target) -> None:
    """Ask for offsets by time again and again where all records have the timestamp -1."""
    leader = await target.leader_of(TOPIC, 0)
    await target.fire(leader, (produce(POISON["timestamps of -1"], 0), PRODUCE_VERSION))
    rounds = QUICK_INDEX_ROUNDS if target.quick else INDEX_ROUNDS
    asked = [(list_offsets(0, each), LIST_OFFSETS_VERSION) for each in (0, WHEN_MS, INT64_MAX)]
    await target.fire(leader, *asked * rounds)
