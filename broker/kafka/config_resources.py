"""ListConfigResources (74): which resources there are whose configs can be described (KIP-1142)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quorate.quorum.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage
from quorate.quorum.rpc.kafka.errors import ErrorCode
from quorate.quorum.rpc.kafka.schemas.list_config_resources import (
    CLIENT_METRICS,
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from quorate.quorum.rpc.kafka.server import RequestContext

BROKER_LOGGER, GROUP = 8, 32
RESOURCE_TYPES_SINCE = 1


def topics(image: MetadataImage) -> list[str]:
    return image.topic_names()


def brokers(image: MetadataImage) -> list[str]:
    return [str(each) for each in image.broker_ids() if not image.brokers[each].fenced]


def none(image: MetadataImage) -> list[str]:
    """There are no configs of these here."""
    return []


KINDS: dict[int, Callable[[MetadataImage], list[str]]] = {
    TOPIC_RESOURCE: topics,
    BROKER_RESOURCE: brokers,
    BROKER_LOGGER: brokers,
    CLIENT_METRICS: none,
    GROUP: none,
}


@dataclass(frozen=True, slots=True)
class ConfigResourcesHandler:
    image: Callable[[], MetadataImage]

    def handle(self, context: RequestContext, request: ListConfigResourcesRequest) -> None:
        """Before version 1 there were client metrics only."""
        asked = dict.fromkeys(request.resource_types) or dict.fromkeys(KINDS)
        if context.version < RESOURCE_TYPES_SINCE:
            asked = {CLIENT_METRICS: None}
        if any(each not in KINDS for each in asked):
            context.respond(
                ListConfigResourcesResponse(
                    error_code=ErrorCode.UNSUPPORTED_VERSION, config_resources=()
                )
            )
            return
        image = self.image()
        context.respond(
            ListConfigResourcesResponse(
                config_resources=tuple(
                    ConfigResource(resource_name=name, resource_type=kind)
                    for kind in asked
                    for name in KINDS[kind](image)
                )
            )
        )
