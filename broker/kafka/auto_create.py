"""Creates the topics that Metadata requests ask for in vain, with the broker's defaults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quorate.broker.kafka.forwarding import FORWARD_TIMEOUT_MS, Forwarder
from quorate.quorum.controller.messages import EnvelopeRequest, EnvelopeResponse
from quorate.quorum.rpc.kafka.apis import APIS, ApiKey
from quorate.quorum.rpc.kafka.codec import decode, encode
from quorate.quorum.rpc.kafka.errors import ErrorCode
from quorate.quorum.rpc.kafka.schemas.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

DEFAULTS = -1  # partitions and replicas as the controller is configured
# What the client hears instead: it asks for metadata again, and then finds the topic.
TOLD = {
    ErrorCode.NONE: ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.TOPIC_ALREADY_EXISTS: ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.INVALID_REPLICATION_FACTOR: ErrorCode.INVALID_REPLICATION_FACTOR,
    ErrorCode.INVALID_TOPIC_EXCEPTION: ErrorCode.INVALID_TOPIC_EXCEPTION,
}
Errors = dict[str, ErrorCode]


@dataclass(frozen=True, slots=True)
class AutoCreation:
    forwarder: Forwarder

    def create(self, names: list[str], done: Callable[[Errors], None]) -> None:
        version = APIS[ApiKey.CREATE_TOPICS].max_version
        request = CreateTopicsRequest(
            topics=tuple(
                CreatableTopic(
                    name=name,
                    num_partitions=DEFAULTS,
                    replication_factor=DEFAULTS,
                    assignments=(),
                    configs=(),
                )
                for name in dict.fromkeys(names)
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
            done({name: TOLD.get(error, unknown) for name, error in errors.items()})

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
