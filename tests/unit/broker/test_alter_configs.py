"""Changes of configs that an AlterConfigs handler forwards without decoding them."""

from __future__ import annotations

from typing import Any, cast

import pytest

from quorate.broker.kafka.admin.alter_configs import AlterConfigsHandler
from quorate.broker.kafka.admin.tls_changes import TryOut
from quorate.broker.kafka.shared.forwarding import Forwarding
from quorate.config.node_config import NodeConfig
from quorate.quorum.incremental_work import finished
from quorate.quorum.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage
from quorate.quorum.protocol.codec import encode
from quorate.quorum.protocol.schemas.configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from quorate.quorum.protocol.varint import DecodeError
from quorate.quorum.rpc.kafka.context import RequestContext


class Forwarded:
    """Stands for the forwarding, and keeps the bodies that it gets."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    def handle(self, context: Any, body: memoryview) -> None:
        self.bodies.append(bytes(body))


class Request:
    """Stands for the context of an IncrementalAlterConfigs request."""

    api_key = IncrementalAlterConfigsRequest.API_KEY
    version = 1


def body_of(resource_type: int, name: str) -> bytes:
    config = IncrementalAlterableConfig(name="retention.ms", config_operation=0, value="1")
    resource = IncrementalAlterConfigsResource(
        resource_type=resource_type, resource_name=name, configs=(config,)
    )
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    return encode(request, Request.version)


def handled(body: bytes) -> list[bytes]:
    forwarded = Forwarded()
    handler = AlterConfigsHandler(
        node=cast(NodeConfig, None),
        image=MetadataImage,
        forwarding=cast(Forwarding, forwarded),
        try_tls=cast(TryOut, None),
    )
    steps = handler.handle(cast(RequestContext, Request()), memoryview(body))
    if steps is not None:
        finished(steps)
    return forwarded.bodies


def test_a_change_of_a_topic_is_not_decoded() -> None:
    """Only a change of a broker concerns this broker. Decoding all others is wasted CPU."""
    body = body_of(TOPIC_RESOURCE, "orders")
    assert handled(body) == [body]
    assert handled(body[:-3]) == [body[:-3]], "the controller answers a malformed request"


def test_a_change_of_a_broker_is_decoded() -> None:
    body = body_of(BROKER_RESOURCE, "orders")
    with pytest.raises(DecodeError):
        handled(body[:-3])
