"""Links of nodes that take the places and the file descriptors of a controller (item 7)."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from quorate.quorum.protocol.schemas.topics import CreatableTopic, CreateTopicsRequest
from quorate.quorum.seams import Address
from tests.attacks.connections import affordable
from tests.attacks.node_frames import NodeLink
from tests.attacks.registry import attack
from tests.attacks.target import NotServed, Succeeded, Target

LINKS, QUICK_LINKS = 4_500, 300
AT_ONCE = 50
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
