"""The creation of a topic through Kafka's protocol."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING

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
from quorate.quorum.rpc.tls.dialing_transport import ClientTls
from quorate.quorum.seams import Address, Transport

if TYPE_CHECKING:
    from quorate.quorum.secured.secured_dir import SecuredDir

BROKERS_DEFAULT = -1
"""The replication factor that asks for `default.replication.factor`."""


def admin_tls(secured: SecuredDir) -> ClientTls:
    """Return TLS with the certificate of the admin of a secure cluster. Blocks to read it."""
    context = ssl.create_default_context(cafile=str(secured.authority.certificate))
    context.load_cert_chain(secured.admin_keystore)
    return ClientTls(context)


def topic_request(
    name: str, partitions: int, replication_factor: int | None, config: Mapping[str, Value]
) -> CreateTopicsRequest:
    """Return the request that creates a topic.

    If `replication_factor` is None, `default.replication.factor` of the cluster applies."""
    factor = BROKERS_DEFAULT if replication_factor is None else replication_factor
    configs = tuple(CreatableTopicConfig(name=key, value=as_text(config[key])) for key in config)
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=(),
        configs=configs,
    )
    return CreateTopicsRequest(topics=(topic,))


async def create_topic(
    transport: Transport, address: Address, request: CreateTopicsRequest
) -> None:
    """Send a request for one topic to the broker, or to the active controller, at `address`, once.

    On return the topic is committed, but brokers may not have replayed it yet. Raise TopicRefused
    if the cluster refuses the topic, and the errors of `KafkaClient` if the node does not
    answer. `Cluster.create_topic` repeats the request."""
    client = await KafkaClient.connect(transport, AsyncioClock(), address)
    try:
        answer = await client.call(request)
    finally:
        client.close()
    (result,) = answer.topics
    if result.error_code != ErrorCode.NONE:
        raise TopicRefused(result.name, ErrorCode.of(result.error_code), result.error_message)
