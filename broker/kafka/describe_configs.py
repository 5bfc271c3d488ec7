"""DescribeConfigs (32): every key of a topic or broker, its effective value and where that comes
from.

Precedence is Kafka's: a topic's own value, then for both kinds the broker's dynamic value, the
cluster-wide dynamic default, the node's file, the key's default.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from quorate.config.key import Key, Update
from quorate.config.node_config import NodeConfig
from quorate.config.node_keys import NODE_KEYS
from quorate.config.topic_keys import TOPIC_KEYS, topic_default
from quorate.quorum.controller.topic_names import what_is_wrong
from quorate.quorum.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage
from quorate.quorum.rpc.kafka.errors import ErrorCode, KafkaError
from quorate.quorum.rpc.kafka.schemas.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from quorate.quorum.rpc.kafka.server import RequestContext


class Source(enum.IntEnum):
    """Kafka's ConfigSource codes."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5


Value = tuple[str, str | None, Source]  # name of the key that gave it, text, source


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConfigsHandler:
    node: NodeConfig
    image: Callable[[], MetadataImage]

    def handle(self, context: RequestContext, request: DescribeConfigsRequest) -> None:
        results = tuple(self._resource(resource, request) for resource in request.resources)
        context.respond(DescribeConfigsResponse(results=results))

    def _resource(
        self, resource: DescribeConfigsResource, request: DescribeConfigsRequest
    ) -> DescribeConfigsResult:
        try:
            keys, values = self._keys(resource)
        except KafkaError as error:
            return DescribeConfigsResult(
                error_code=error.code,
                error_message=error.message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                configs=(),
            )
        wanted = resource.configuration_keys or None  # empty asks for all, too, in Kafka
        return DescribeConfigsResult(
            error_code=ErrorCode.NONE,
            error_message=None,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=tuple(
                describe(key, list(found), request)
                for name, key in keys.items()
                if wanted is None or name in wanted
                if (found := values(key))
            ),
        )

    def _keys(
        self, resource: DescribeConfigsResource
    ) -> tuple[dict[str, Key], Callable[[Key], list[Value]]]:
        image, name = self.image(), resource.resource_name
        if resource.resource_type == TOPIC_RESOURCE:
            problem = what_is_wrong(name)
            if problem is not None:
                raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
            if image.topic(name) is None:
                raise KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}"
                )
            shown = {each: key for each, key in TOPIC_KEYS.items() if not key.internal}
            return shown, lambda key: list(self._topic_values(image, name, key))
        if resource.resource_type == BROKER_RESOURCE:
            if name == "":
                return NODE_KEYS, lambda key: list(self._dynamic(image, "", key.name))
            if name != str(self.node.node_id):
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST,
                    f"Unexpected broker id, expected {self.node.node_id} or empty string, "
                    f"but received {name}",
                )
            return NODE_KEYS, lambda key: list(self._broker_values(image, key))
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"resource type {resource.resource_type} has no configs here: 2 (topic) or 4 (broker)",
        )

    def _topic_values(self, image: MetadataImage, topic: str, key: Key) -> Iterator[Value]:
        own = image.config(TOPIC_RESOURCE, topic).get(key.name)
        if own is not None:
            yield key.name, own, Source.TOPIC
        for synonym, _ in key.synonyms:
            yield from self._dynamic(image, str(self.node.node_id), synonym)
            yield from self._dynamic(image, "", synonym)
        static = any(not self._is_default(synonym) for synonym, _ in key.synonyms)
        text = key.format(topic_default(key, self.node))
        first = key.synonyms[0][0] if key.synonyms else key.name
        yield first, text, Source.STATIC_BROKER if static else Source.DEFAULT

    def _broker_values(self, image: MetadataImage, key: Key) -> Iterator[Value]:
        yield from self._dynamic(image, str(self.node.node_id), key.name)
        yield from self._dynamic(image, "", key.name)
        if not self._is_default(key.name):
            yield key.name, self.node.settings[key.name].text, Source.STATIC_BROKER
        yield key.name, key.format(key.default), Source.DEFAULT

    def _dynamic(self, image: MetadataImage, broker: str, name: str) -> Iterator[Value]:
        value = image.config(BROKER_RESOURCE, broker).get(name)
        if value is not None:
            source = Source.DYNAMIC_BROKER if broker else Source.DYNAMIC_DEFAULT_BROKER
            yield name, value, source

    def _is_default(self, name: str) -> bool:
        setting = self.node.settings.get(name)
        return setting is None or setting.is_default


def describe(
    key: Key, values: list[Value], request: DescribeConfigsRequest
) -> DescribeConfigsResourceResult:
    """`values` in order of precedence; the first is in force, all of them are the synonyms."""
    _, text, source = values[0]
    return DescribeConfigsResourceResult(
        name=key.name,
        value=text,
        read_only=key.update is Update.READ_ONLY and key.name not in TOPIC_KEYS,
        config_source=source,
        is_sensitive=False,
        synonyms=tuple(
            DescribeConfigsSynonym(name=name, value=value, source=origin)
            for name, value, origin in values
        )
        if request.include_synonyms
        else (),
        config_type=key.kind,
        documentation=key.doc if request.include_documentation else None,
    )
