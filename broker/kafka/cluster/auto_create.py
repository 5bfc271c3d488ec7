"""Creates topics that a request names and that do not exist.

A topic of a client gets the numbers of partitions and replicas in this broker's file
(`auto.create.topics.enable`), as in Kafka. An internal topic gets the configs that its coordinator
needs. The topics are created by a CreateTopics request to the active controller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from quorate.broker.kafka.shared.forwarding import Forwarder
from quorate.quorum.controller.state.messages import (
    NODE_PRINCIPAL,
    EnvelopeRequest,
    EnvelopeResponse,
)
from quorate.quorum.metadata.internal_topics import OFFSETS_TOPIC
from quorate.quorum.protocol.apis import APIS, ApiKey
from quorate.quorum.protocol.codec import decode, encode
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from quorate.quorum.rpc.kafka.context import RequestContext

MAX_TOPICS = 1000
"""Maximum number of topics that one Metadata request creates. When the client asks again, the next
ones are created."""
INT16_MAX = 2**15 - 1
"""The largest replication factor that a request can name."""
CLIENT_ERRORS = {
    ErrorCode.NONE: ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.TOPIC_ALREADY_EXISTS: ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.INVALID_REPLICATION_FACTOR: ErrorCode.INVALID_REPLICATION_FACTOR,
    ErrorCode.INVALID_TOPIC_EXCEPTION: ErrorCode.INVALID_TOPIC_EXCEPTION,
}
"""The error that the client receives for the result of a creation, as in Kafka. After
LEADER_NOT_AVAILABLE, the client requests metadata again and then finds the topic. Other results
become UNKNOWN_TOPIC_OR_PARTITION."""
THE_BROKER = "auto.create.topics"
"""The client id of topics that the broker needs for itself, such as `__consumer_offsets`."""
Errors = dict[str, ErrorCode]
"""The error for the client by topic name."""


@dataclass(frozen=True, slots=True)
class AutoCreation:
    """Creates topics through the active controller.

    `topic` has the partitions and replicas of the topics of clients, and no name. `internal` holds
    the internal topics with their partitions, replicas and configs, by name. `timeout_ms` is
    request.timeout.ms, the longest wait for the controller's answer."""

    forwarder: Forwarder
    topic: CreatableTopic
    internal: Mapping[str, CreatableTopic]
    timeout_ms: int

    def create(
        self,
        names: list[str],
        done: Callable[[Errors], None],
        context: RequestContext | None = None,
    ) -> None:
        """Create the first MAX_TOPICS of these topics, and call `done` once with their errors.

        The client of `context` needs the permission to create them, and the partitions count for
        its quota controller_mutation_rate (KIP-599). Without a context, the broker creates internal
        topics for itself.
        The other names are left out of the errors. If the controller does not answer within
        `timeout_ms` or refuses the request, `done` gets no errors at all.
        """
        version = APIS[ApiKey.CREATE_TOPICS].max_version
        request = CreateTopicsRequest(
            topics=tuple(
                self.internal.get(name) or replace(self.topic, name=name)
                for name in islice(dict.fromkeys(names), MAX_TOPICS)
            ),
            timeout_ms=self.timeout_ms,
        )

        def answered(response: EnvelopeResponse) -> None:
            if response.error != ErrorCode.NONE:
                done({})
                return
            created = decode(CreateTopicsResponse, version, response.body)
            errors = {each.name: ErrorCode.of(each.error_code) for each in created.topics}
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            done({name: CLIENT_ERRORS.get(error, unknown) for name, error in errors.items()})

        self.forwarder.forward(
            EnvelopeRequest(
                api_key=ApiKey.CREATE_TOPICS,
                version=version,
                client_id=THE_BROKER if context is None else context.client_id or "",
                body=encode(request, version),
                principal_type=NODE_PRINCIPAL if context is None else context.principal.type,
                principal_name="" if context is None else context.principal.name,
                client_host="" if context is None else context.peer.host,
            ),
            self.timeout_ms,
            answered,
        )


def topic_of_clients(node: Mapping[str, Any]) -> CreatableTopic:
    """Return a topic without a name, with the numbers of partitions and replicas of a broker's
    file. `node` maps config keys to parsed values."""
    return CreatableTopic(
        name="",
        num_partitions=node["num.partitions"],
        replication_factor=max(-INT16_MAX, min(node["default.replication.factor"], INT16_MAX)),
        assignments=(),
        configs=(),
    )


def internal_topics(node: Mapping[str, Any]) -> dict[str, CreatableTopic]:
    """Return the internal topics as Kafka's brokers create them. `node` maps config keys to parsed
    values."""
    configs = {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": str(node["offsets.topic.segment.bytes"]),
    }
    return {
        OFFSETS_TOPIC: CreatableTopic(
            name=OFFSETS_TOPIC,
            num_partitions=node["offsets.topic.num.partitions"],
            replication_factor=node["offsets.topic.replication.factor"],
            assignments=(),
            configs=tuple(
                CreatableTopicConfig(name=name, value=value) for name, value in configs.items()
            ),
        )
    }
