"""Handles ListConfigResources (API key 74): lists the resources that have configs (KIP-1142)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from quorate.quorum.incremental_work import IncrementalWork, begun
from quorate.quorum.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage
from quorate.quorum.metadata.pace import Pace, in_order
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.list_config_resources import (
    CLIENT_METRICS,
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from quorate.quorum.rpc.kafka.server import RequestContext

BROKER_LOGGER, GROUP = 8, 32
"""Resource types of Kafka."""
RESOURCE_TYPES_SINCE = 1
"""The first version that names resource types. Version 0 lists client metrics only (KIP-1000)."""


def topics(image: MetadataImage) -> Iterable[str]:
    """Return the names of all topics."""
    return image.topic_ids


def brokers(image: MetadataImage) -> list[str]:
    """Return the ids of all unfenced brokers, as text."""
    return [str(each) for each in image.broker_ids() if not image.brokers[each].fenced]


def none(image: MetadataImage) -> list[str]:
    """Return no names: Quorate has no such resources."""
    return []


KINDS: dict[int, Callable[[MetadataImage], Iterable[str]]] = {
    TOPIC_RESOURCE: topics,
    BROKER_RESOURCE: brokers,
    BROKER_LOGGER: brokers,
    CLIENT_METRICS: none,
    GROUP: none,
}
"""The function that lists the names of the resources, by resource type."""


@dataclass(frozen=True, slots=True)
class ListConfigResourcesHandler:
    """Handles ListConfigResources on one broker, from the broker's committed image."""

    image: Callable[[], MetadataImage]

    def handle(
        self, context: RequestContext, request: ListConfigResourcesRequest
    ) -> IncrementalWork[None] | None:
        """Respond with the resources of the named types, or of all types if none is named.

        If one type is unknown, the whole request gets UNSUPPORTED_VERSION. Version 0 lists client
        metrics, which Quorate does not have. Return the steps that are left, or None.
        """
        asked = dict.fromkeys(request.resource_types) or dict.fromkeys(KINDS)
        if context.version < RESOURCE_TYPES_SINCE:
            asked = {CLIENT_METRICS: None}
        if any(each not in KINDS for each in asked):
            context.respond(
                ListConfigResourcesResponse(
                    error_code=ErrorCode.UNSUPPORTED_VERSION, config_resources=()
                )
            )
            return None
        return begun(self._answer(context, list(asked)))

    def _answer(self, context: RequestContext, kinds: list[int]) -> IncrementalWork[None]:
        image, pace = self.image(), Pace()
        resources = []
        for kind in kinds:
            for name in (yield from in_order(KINDS[kind](image))):
                resources.append(ConfigResource(resource_name=name, resource_type=kind))
                if pace.is_time():
                    yield
        yield from context.respond_steps(
            ListConfigResourcesResponse(config_resources=tuple(resources))
        )
