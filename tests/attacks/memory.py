"""Inputs that make a node keep more than it should (item 6)."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from dataclasses import replace

from quorate.quorum.log.batches.record import Record, encode_records
from quorate.quorum.protocol.field_bounds import PARTITIONS as PARTITIONS_BOUND
from quorate.quorum.protocol.schemas.fetch import FetchPartition, FetchRequest, FetchTopic
from quorate.quorum.protocol.schemas.group_membership import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from quorate.quorum.protocol.schemas.produce import ProduceRequest
from quorate.quorum.rpc.kafka_frames import SIZE_BYTES
from quorate.quorum.seams import Address
from tests.attacks.batches import PRODUCE_VERSION, WHEN_MS, produce, records, sealed
from tests.attacks.node_frames import NodeLink, web_socket
from tests.attacks.raw import Raw, framed, head_of, request
from tests.attacks.registry import attack
from tests.attacks.target import PARTITIONS, TOPIC, Target

FETCH_VERSION = 12
READERS, QUICK_READERS = 40, 10
REQUESTS_EACH, QUICK_REQUESTS_EACH = 64, 16
BATCH_BYTES = 500_000
BATCHES = 20
HALF_FRAMES, QUICK_HALF_FRAMES = 40, 8
HALF_BYTES, QUICK_HALF_BYTES = 45 << 20, 2 << 20
SESSION_PARTITIONS, QUICK_SESSION_PARTITIONS = (500_000, PARTITIONS_BOUND.limit), (50_000,)
"""A request beyond the bound is refused after its head. One at the bound is worked on."""
DEADLINES, QUICK_DEADLINES = 20_000, 1_000
HOLD_S, QUICK_HOLD_S = 8.0, 1.0
MSGPACK_BYTES = 32 << 20
GROUPS, QUICK_GROUPS = 600, 100
"""The members of 600 groups hold 200 MB on each of three brokers, if nothing bounds them."""
JOIN_VERSION = 3
"""The last version in which the first request of a member makes it a member."""
METADATA_BYTES = 1 << 20
BETWEEN_GROUPS_S = 0.015
SESSION_MS, REBALANCE_MS = 60_000, 300_000


def held_s(target: Target) -> float:
    return QUICK_HOLD_S if target.quick else HOLD_S


async def close_later(target: Target, held: list[Raw]) -> None:
    target.outcome["connections"] += len(held)
    await asyncio.sleep(held_s(target))
    target.outcome["closed"] += sum(each.reader.at_eof() for each in held)
    for each in held:
        each.close()


@attack(6)
async def readers_that_do_not_read(target: Target) -> None:
    """Fetch megabytes over many connections and take nothing off the wire."""
    leader = await target.leader_of(TOPIC, 0)
    value = random.Random(3).randbytes(BATCH_BYTES)
    batch = sealed(records_around(value))
    for _ in range(4 if target.quick else BATCHES):
        await target.fire(leader, (produce(batch, 0), PRODUCE_VERSION))
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=50 << 20)
    fetch = FetchRequest(
        max_wait_ms=0, min_bytes=0, topics=(FetchTopic(topic=TOPIC, partitions=(wanted,)),)
    )
    frame = framed(request(fetch, FETCH_VERSION))
    held: list[Raw] = []
    for _ in range(QUICK_READERS if target.quick else READERS):
        connection = await Raw.open(leader)
        held.append(connection)
        connection.reader._transport.pause_reading()  # type: ignore[attr-defined]
        count = QUICK_REQUESTS_EACH if target.quick else REQUESTS_EACH
        await connection.send(frame * count, timeout_s=5)
    await close_later(target, held)


def records_around(value: bytes) -> bytes:
    return bytes(encode_records([Record(at, WHEN_MS + at, None, value[at:]) for at in range(3)]))


@attack(6)
async def unfinished_frames(target: Target) -> None:
    """Send almost all of a large request over many connections, and leave them open."""
    size = QUICK_HALF_BYTES if target.quick else HALF_BYTES
    data = framed(bytes(size))[:-1]
    held: list[Raw] = []
    for at in range(QUICK_HALF_FRAMES if target.quick else HALF_FRAMES):
        with suppress(OSError, TimeoutError):
            connection = await Raw.open(target.brokers[at % len(target.brokers)])
            held.append(connection)
            if not await connection.send(data, timeout_s=3):
                target.outcome["not taken"] += 1
    await close_later(target, held)


@attack(6)
async def invented_sessions(target: Target) -> None:
    """Open fetch sessions of hundreds of thousands of partitions that do not exist."""
    for count in QUICK_SESSION_PARTITIONS if target.quick else SESSION_PARTITIONS:
        partitions = tuple(
            FetchPartition(partition=at, fetch_offset=0, partition_max_bytes=1)
            for at in range(count)
        )
        fetch = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            session_epoch=0,
            topics=(FetchTopic(topic=TOPIC, partitions=partitions),),
        )
        frame = bytearray(framed(request(fetch, FETCH_VERSION)))
        replica_id_at = SIZE_BYTES + len(head_of(fetch.API_KEY, FETCH_VERSION))
        for replica_id in (-1, 4, 5, 6, 77):
            frame[replica_id_at : replica_id_at + 4] = replica_id.to_bytes(4, "big", signed=True)
            for address in target.brokers:
                await target.fire_frames(address, bytes(frame), timeout_s=30)


@attack(6)
async def random_deadlines(target: Target) -> None:
    """Produce with random timeouts over one connection as fast as it takes them."""
    chance = random.Random(5)
    batch = sealed(records())
    for partition in range(PARTITIONS):
        leader = await target.leader_of(TOPIC, partition)
        connection = await Raw.open(leader)
        for _ in range((QUICK_DEADLINES if target.quick else DEADLINES) // 100):
            frames = []
            for _ in range(100):
                asked = produce(batch, partition)
                frames.append(framed(request(with_timeout(asked, chance), PRODUCE_VERSION)))
            await connection.send(b"".join(frames), timeout_s=5)
            for _ in range(100):
                if await connection.frame(timeout_s=5) is None:
                    break
                target.outcome["answered"] += 1
        connection.close()


def with_timeout(asked: ProduceRequest, chance: random.Random) -> ProduceRequest:
    return replace(asked, timeout_ms=chance.randrange(1, 2**31 - 1))


@attack(6)
async def arrays_before_hello(target: Target) -> None:
    """Send a node message of millions of empty arrays in place of the first Hello."""
    size = 1 << 20 if target.quick else MSGPACK_BYTES
    row = b"\xdd" + (size - 16).to_bytes(4, "big") + b"\x90" * (size - 16)
    nested = b"\x91" * 100_000
    for address in target.controllers:
        for frame in (row, nested, b"\x91\xdd\x00\x01\x86\xa0" + b"\x90" * 100_000):
            await first_frame(target, address, frame)


@attack(6)
async def members_that_have_left(target: Target) -> None:
    """Join many groups with a megabyte of metadata each, and close each connection immediately.

    The attack is about memory, so it pauses between two groups. Without pauses it sends 700 MB/s,
    and the processor is the bottleneck of everything."""
    metadata = random.Random(7).randbytes(METADATA_BYTES)
    for number in range(QUICK_GROUPS if target.quick else GROUPS):
        join = JoinGroupRequest(
            group_id=f"left-{number}",
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id="",
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="range", metadata=metadata),),
        )
        frame = framed(request(join, JOIN_VERSION))
        for address in target.brokers:
            with suppress(OSError, TimeoutError):
                connection = await Raw.open(address)
                taken = await connection.send(frame, timeout_s=5)
                target.outcome["taken" if taken else "not taken"] += 1
                connection.hang_up()
        await asyncio.sleep(BETWEEN_GROUPS_S)


async def first_frame(target: Target, address: Address, frame: bytes) -> None:
    with suppress(OSError, TimeoutError):
        link = await NodeLink.open(address)
        await link.send_raw(web_socket(frame))
        ended = await link.frame(timeout_s=5) is None
        target.outcome["closed" if ended else "answered"] += 1
        link.close()
