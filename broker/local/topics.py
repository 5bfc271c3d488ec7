"""The creation of a topic through Kafka's protocol."""

from __future__ import annotations

from collections.abc import Mapping

from quorate.broker.local.errors import TopicRefused
from quorate.broker.local.layout import Value, as_text
from quorate.quorum.clock import AsyncioClock
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from quorate.quorum.rpc.kafka.client import KafkaClient
from quorate.quorum.rpc.transport import AioTransport
from quorate.quorum.seams import Address

BROKERS_DEFAULT = -1
"""The replication factor that asks for `default.replication.factor`."""


async def create_topic(
    address: Address,
    name: str,
    partitions: int,
    replication_factor: int | None,
    config: Mapping[str, Value],
) -> None:
    """Create a topic through the broker at `address`.

    If `replication_factor` is None, `default.replication.factor` of the cluster applies. On return
    the topic is committed, but brokers may not have replayed it yet. Raise TopicRefused if the
    cluster refuses the topic, and the errors of `KafkaClient` if the broker does not answer."""
    factor = BROKERS_DEFAULT if replication_factor is None else replication_factor
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=(),
        configs=tuple(
            CreatableTopicConfig(name=key, value=as_text(value)) for key, value in config.items()
        ),
    )
    client = await KafkaClient.connect(AioTransport(), AsyncioClock(), address)
    try:
        answer = await client.call(CreateTopicsRequest(topics=(topic,)))
    finally:
        client.close()
    (result,) = answer.topics
    if result.error_code != ErrorCode.NONE:
        error = ErrorCode.of(result.error_code).name
        raise TopicRefused(f"topic {name!r} is refused: {error}: {result.error_message}")
