"""Creates the topics that requests ask for in vain: with the broker's defaults, or as the broker
needs its own (__consumer_offsets)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from quorate.broker.kafka.forwarding import FORWARD_TIMEOUT_MS, Forwarder
from quorate.quorum.controller.messages import EnvelopeRequest, EnvelopeResponse
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

MAX_TOPICS = 1000
"""Topics that one Metadata request creates. When the client asks again, the next are created."""
DEFAULTS = -1  # partitions and replicas as the controller is configured
# What the client hears instead: it asks for metadata again, and then finds the topic.
CLIENT_ERRORS = {
    ErrorCode.NONE: ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.TOPIC_ALREADY_EXISTS: ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.INVALID_REPLICATION_FACTOR: ErrorCode.INVALID_REPLICATION_FACTOR,
    ErrorCode.INVALID_TOPIC_EXCEPTION: ErrorCode.INVALID_TOPIC_EXCEPTION,
}
Errors = dict[str, ErrorCode]


@dataclass(frozen=True, slots=True)
class AutoCreation:
    """`internal`: the broker's own topics, as they are created."""

    forwarder: Forwarder
    internal: Mapping[str, CreatableTopic] = field(default_factory=dict)

    def create(self, names: list[str], done: Callable[[Errors], None]) -> None:
        version = APIS[ApiKey.CREATE_TOPICS].max_version
        request = CreateTopicsRequest(
            topics=tuple(
                self.internal.get(name) or with_defaults(name)
                for name in islice(dict.fromkeys(names), MAX_TOPICS)
            ),
            timeout_ms=FORWARD_TIMEOUT_MS,
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
                client_id="auto.create.topics",
                body=encode(request, version),
            ),
            FORWARD_TIMEOUT_MS,
            answered,
        )


def with_defaults(name: str) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=DEFAULTS,
        replication_factor=DEFAULTS,
        assignments=(),
        configs=(),
    )


def internal_topics(node: Mapping[str, Any]) -> dict[str, CreatableTopic]:
    """As Kafka's brokers create theirs, by the node's settings."""
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
