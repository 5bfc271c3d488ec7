"""Small inputs that one step of the event loop handled as a whole (item 4).

None of them is large, and each took a node between 0.4 s and 30 s of its event loop.
"""

from __future__ import annotations

from contextlib import suppress

from quorate.broker.kafka.shared.forwarding import MAX_ENVELOPE_BYTES
from quorate.broker.partition.key_check import KEYS_CHECKED
from quorate.quorum.controller.state.messages import EnvelopeRequest
from quorate.quorum.log.batches.batch import build_batch
from quorate.quorum.log.batches.compression import Codec
from quorate.quorum.log.batches.record import Record
from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.protocol.schemas.configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from quorate.quorum.protocol.schemas.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from quorate.quorum.protocol.schemas.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from quorate.quorum.rpc.websocket_frames import PING, PONG
from quorate.quorum.seams import Address
from tests.attacks.batches import PRODUCE_TIMEOUT_MS, PRODUCE_VERSION
from tests.attacks.node_frames import ATTACKER_ID, NodeLink, row, web_socket
from tests.attacks.raw import body_of
from tests.attacks.registry import attack
from tests.attacks.target import NOT_CONNECTED, TOPIC, Target

TOPIC_RESOURCE = 2
CONTROL_FRAMES, QUICK_CONTROL_FRAMES = 200_000, 43_000
"""A read of 256 KB holds 43,000 empty pings."""
FLOOD_S = 5.0
ENVELOPES, QUICK_ENVELOPES = 1_000, 100
ENVELOPE_BYTES = 16_384
DELETE_VERSION = 5
CREATE_VERSION = 5
ALTER_VERSION = 2
LONGEST = "x" * 32_767
ROUNDS = 5
COMPACTED = f"{TOPIC}-compacted"
NAMED = 32
"""The number of times that one Produce request names the same batch."""


@attack(4)
async def floods_of_pings(target: Target) -> None:
    """Send thousands of pings and pongs over node links, before and after Hello, read no answer."""
    count = QUICK_CONTROL_FRAMES if target.quick else CONTROL_FRAMES
    for address in target.controllers:
        for first in (PING, PONG):
            for greeted in (False, True):
                await flood(target, address, web_socket(b"", first) * count, greeted=greeted)


async def flood(target: Target, address: Address, data: bytes, *, greeted: bool) -> None:
    try:
        link = await NodeLink.open(address)
    except (OSError, TimeoutError):
        target.outcome[NOT_CONNECTED] += 1
        return
    try:
        if greeted and await link.greet(target.cluster_id) is None:
            target.outcome["no hello"] += 1
            return
        transport = link.reader._transport  # type: ignore[attr-defined]
        transport.pause_reading()
        await link.send(data, timeout_s=FLOOD_S)
        transport.resume_reading()
        ended = await link.ended(FLOOD_S)
        target.outcome["closed" if ended else "open"] += 1
    finally:
        link.close()


@attack(4)
async def many_forwarded_requests(target: Target) -> None:
    """Forward requests of 16 KB to every controller as a broker would, all in one frame."""
    names = tuple(f"no-such-{each}" for each in range(ENVELOPE_BYTES // 16))
    body = body_of(DeleteTopicsRequest(topic_names=names, timeout_ms=1000), DELETE_VERSION)
    envelope = EnvelopeRequest(
        api_key=ApiKey.DELETE_TOPICS, version=DELETE_VERSION, client_id="attacker", body=body
    )
    count = QUICK_ENVELOPES if target.quick else ENVELOPES
    rows = [row(envelope, number) for number in range(1, count + 1)]
    for address in target.controllers:
        with suppress(OSError, TimeoutError):
            link = await NodeLink.open(address)
            try:
                if await link.greet(target.cluster_id, node_id=ATTACKER_ID) is None:
                    target.outcome["no hello"] += 1
                    continue
                answer = await link.call(*rows, timeout_s=10)
                target.outcome["answered" if answer else "closed"] += 1
            finally:
                link.close()


@attack(4)
async def oversized_forwarded_requests(target: Target) -> None:
    """Send every broker admin requests that are too large to be forwarded to a controller."""
    count = MAX_ENVELOPE_BYTES // len(LONGEST) + 2
    whole = AlterConfigsRequest(
        resources=tuple(
            AlterConfigsResource(
                resource_type=TOPIC_RESOURCE,
                resource_name=f"no-such-{number}",
                configs=(AlterableConfig(name="retention.ms", value=LONGEST),),
            )
            for number in range(count)
        ),
        validate_only=False,
    )
    new = CreateTopicsRequest(
        topics=tuple(
            CreatableTopic(
                name=f"no-such-{number}",
                num_partitions=1,
                replication_factor=1,
                assignments=(),
                configs=(CreatableTopicConfig(name="retention.ms", value=LONGEST),),
            )
            for number in range(count)
        ),
        timeout_ms=5000,
    )
    for _ in range(1 if target.quick else ROUNDS):
        for address in target.brokers:
            await target.fire(address, (whole, ALTER_VERSION), (new, CREATE_VERSION))


@attack(4)
async def long_batches_of_a_compacted_topic(target: Target) -> None:
    """Produce one batch of 65,536 keyless records 32 times in one request to a compacted topic."""
    policy = CreatableTopicConfig(name="cleanup.policy", value="compact")
    topic = CreatableTopic(
        name=COMPACTED,
        num_partitions=1,
        replication_factor=1,
        assignments=(),
        configs=(policy,),
    )
    request = CreateTopicsRequest(topics=(topic,), timeout_ms=10_000)
    await target.tell(target.brokers[0], request, CREATE_VERSION)
    leader = await target.leader_of(COMPACTED, 0)
    keyless = [Record(each, 0, None, None) for each in range(KEYS_CHECKED)]
    batch = bytes(build_batch(keyless, leader_epoch=0, codec=Codec.ZSTD))
    data = PartitionProduceData(index=0, records=batch)
    asked = ProduceRequest(
        acks=1,
        timeout_ms=PRODUCE_TIMEOUT_MS,
        topic_data=(TopicProduceData(name=COMPACTED, partition_data=(data,) * NAMED),),
    )
    for _ in range(1 if target.quick else 2 * ROUNDS):
        await target.fire(leader, (asked, PRODUCE_VERSION))
