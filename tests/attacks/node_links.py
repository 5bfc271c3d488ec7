"""Links of nodes that take the places, the descriptors or the time of a controller (items 4, 7)."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from quorate.quorum.ids import EpochOffset, ReplicaKey
from quorate.quorum.protocol.schemas.topics import CreatableTopic, CreateTopicsRequest
from quorate.quorum.raft.messages import FetchRequest, VoteRequest
from quorate.quorum.rpc.messages import MAX_MESSAGES_PER_FRAME
from quorate.quorum.seams import Address
from tests.attacks.connections import affordable
from tests.attacks.node_frames import (
    ATTACKER_ID,
    DIRECTORY_ID,
    NodeLink,
    node_frame,
    row,
    web_socket,
)
from tests.attacks.registry import attack
from tests.attacks.target import NOT_CONNECTED, NotServed, Succeeded, Target

LINKS, QUICK_LINKS = 4_500, 300
AT_ONCE = 20
PAUSE_S = 0.02
CREATE_VERSION = 5


async def greeted(target: Target, address: Address, count: int) -> list[NodeLink]:
    """Open links with a good Hello, each under the id of another node. The cluster id is public."""
    held: list[NodeLink] = []

    async def one(number: int) -> None:
        with suppress(OSError, TimeoutError):
            link = await NodeLink.open(address)
            held.append(link)
            hello = await link.greet(target.cluster_id, node_id=number % 1000 + 1000)
            target.outcome["refused" if hello is None else "accepted"] += 1

    for start in range(0, count, AT_ONCE):
        await asyncio.gather(*(one(number) for number in range(start, min(start + AT_ONCE, count))))
        await asyncio.sleep(PAUSE_S)
    return held


async def creates(target: Target, name: str) -> None:
    """Create a topic, which makes the active controller write. Raise Succeeded if it cannot."""
    new = CreatableTopic(
        name=name, num_partitions=1, replication_factor=1, assignments=(), configs=()
    )
    message = CreateTopicsRequest(topics=(new,), timeout_ms=10_000)
    try:
        answer = await target.tell(target.brokers[0], message, CREATE_VERSION)
    except (NotServed, OSError) as error:
        raise Succeeded(f"no topic can be created: {error!r}") from error
    if answer.topics[0].error_code not in (0, 36):  # NONE, TOPIC_ALREADY_EXISTS
        raise Succeeded(f"no topic can be created: error {answer.topics[0].error_code}")


@attack(7)
async def links_with_a_good_hello(target: Target) -> None:
    """Open thousands of links with a good Hello to each controller, then create a topic."""
    count = affordable(QUICK_LINKS if target.quick else LINKS)
    for number, address in enumerate(target.controllers):
        held = await greeted(target, address, count)
        try:
            await creates(target, f"beside-links-{number}")
        finally:
            for each in held:
                each.close()


FRAMES, QUICK_FRAMES = 10, 3
BETWEEN_FRAMES_S = 0.5
"""The attack is about long steps, and not about the share of a peer that always sends."""


@attack(4)
async def frames_full_of_messages(target: Target) -> None:
    """Send frames of 4,096 votes and fetches from offset 0 to each controller, and read nothing."""
    me = ReplicaKey(ATTACKER_ID, DIRECTORY_ID)
    for address in target.controllers:
        vote = VoteRequest(
            cluster_id=target.cluster_id,
            voter=me,
            candidate=me,
            epoch=1,
            last=EpochOffset(0, 0),
            pre_vote=True,
        )
        fetch = FetchRequest(
            cluster_id=target.cluster_id,
            replica=me,
            epoch=1,
            offset=0,
            last_fetched_epoch=0,
            max_wait_ms=0,
            max_bytes=1 << 20,
            high_watermark=0,
        )
        for message in (vote, fetch):
            full = [row(message, number) for number in range(MAX_MESSAGES_PER_FRAME)]
            frames = QUICK_FRAMES if target.quick else FRAMES
            await send_frames(target, address, web_socket(node_frame(*full)), frames)


async def send_frames(target: Target, address: Address, frame: bytes, count: int) -> None:
    try:
        link = await NodeLink.open(address)
    except (OSError, TimeoutError):
        target.outcome[NOT_CONNECTED] += 1
        return
    try:
        await link.greet(target.cluster_id)
        for _ in range(count):
            if link.reader.at_eof() or not await link.send(frame, timeout_s=5):
                target.outcome["closed"] += 1
                return
            target.outcome["sent"] += 1
            await asyncio.sleep(BETWEEN_FRAMES_S)
    finally:
        link.close()
