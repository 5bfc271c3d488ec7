"""DescribeConfigs (API 32): the keys of a topic or a broker, their effective values and sources.

The order of precedence is Kafka's: the topic's own value, the broker's dynamic value, the dynamic
default of the cluster, the node's configuration file, the default of the key. A node describes only
itself, topics, and the dynamic defaults of the cluster (the broker with the empty name).
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile

from quorate.config.dynamic_broker_keys import BROKER_KEYS, DYNAMIC_BROKER_KEYS
from quorate.config.dynamic_keys import DYNAMIC_KEYS, is_in_force
from quorate.config.dynamic_tls_keys import DYNAMIC_TLS_KEYS
from quorate.config.key import Key, Kind
from quorate.config.listener_keys import listener_key, split_prefix
from quorate.config.node_config import NodeConfig
from quorate.config.node_keys import NODE_KEYS
from quorate.config.topic_keys import TOPIC_KEYS, topic_default
from quorate.quorum.clipped import clipped, quoted
from quorate.quorum.controller.configs.config_resources import GROUP_RESOURCE, NO_GROUP_CONFIGS
from quorate.quorum.controller.topics.topic_names import what_is_wrong
from quorate.quorum.incremental_work import IncrementalWork, begun
from quorate.quorum.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage
from quorate.quorum.metadata.pace import Pace
from quorate.quorum.metadata.persistent_map import PersistentMap
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from quorate.quorum.protocol.schemas.configs import (
    DescribeConfigsRequest,
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


NOTHING: PersistentMap[str, str] = PersistentMap()
Value = tuple[str, str | None, Source]
"""The name of the key that gives the value, the value as text, and its source."""
Described = tuple[Value, Sequence[Value]]
"""The effective value, and all values in the order of precedence."""
RESOURCE_ENTRIES, CONFIG_ENTRIES = 10, 5
"""Weights of a resource and of one of its configs in `Pace`."""
CHANGEABLE = DYNAMIC_KEYS.keys() | DYNAMIC_TLS_KEYS
"""The keys of brokers that are described as changeable. Kafka describes a key with the prefix of a
listener as read-only, although its value can change."""
DYNAMIC = (Source.DYNAMIC_BROKER, Source.DYNAMIC_DEFAULT_BROKER)
# The node keys that give one setting in different units, by the key that comes first.
SYNONYMS = {
    key.synonyms[0][0]: tuple(name for name, _ in key.synonyms)
    for key in TOPIC_KEYS.values()
    if key.synonyms
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConfigsHandler:
    """The handler on one node. `image` returns the image with the dynamic configs."""

    node: NodeConfig
    image: Callable[[], MetadataImage]

    def handle(
        self, context: RequestContext, request: DescribeConfigsRequest
    ) -> IncrementalWork[None] | None:
        """Answer the request, or return the rest of the work as steps if it is long.

        Keys that do not exist are left out. So are dynamic keys that are not set, and keys without
        a dynamic default, if the broker name is empty.
        A result has INVALID_TOPIC_EXCEPTION, UNKNOWN_TOPIC_OR_PARTITION or INVALID_REQUEST (another
        broker's id, or an unsupported type) in place of configs."""
        return begun(self._describe(context, request))

    def _describe(
        self, context: RequestContext, request: DescribeConfigsRequest
    ) -> IncrementalWork[None]:
        """A resource that is named twice with the same keys is described once."""
        resources = dict.fromkeys(
            (each.resource_type, each.resource_name, each.configuration_keys or None)
            for each in request.resources
        )
        results, pace = [], Pace()
        for kind, name, wanted in resources:
            if pace.is_time(RESOURCE_ENTRIES):
                yield
            result = self._resource(kind, name, wanted, request)
            results.append(result)
            if pace.is_time(CONFIG_ENTRIES * len(result.configs)):
                yield
        yield from context.respond_steps(DescribeConfigsResponse(results=tuple(results)))

    def _resource(
        self, kind: int, name: str, keys: Sequence[str] | None, request: DescribeConfigsRequest
    ) -> DescribeConfigsResult:
        """Describe all configs of the resource, or those in `keys`."""
        try:
            known, described = self._keys(kind, name)
        except KafkaError as error:
            return DescribeConfigsResult(
                error_code=error.code,
                error_message=error.message,
                resource_type=kind,
                resource_name=name,
                configs=(),
            )
        wanted = None if keys is None else frozenset(keys)
        return DescribeConfigsResult(
            error_code=ErrorCode.NONE,
            error_message=None,
            resource_type=kind,
            resource_name=name,
            configs=(
                *(
                    describe(key, found[0], found[1], request)
                    for key_name, key in known.items()
                    if wanted is None or key_name in wanted
                    if (found := described(key)) is not None
                ),
                *(
                    describe_stored(value, request)
                    for value in self._stored(kind, name)
                    if wanted is None or value[0] in wanted
                ),
            ),
        )

    def _stored(self, kind: int, name: str) -> Iterator[Value]:
        """Yield the stored configs whose keys are not known or cannot be set, so that they can be
        deleted: the node ignores them. An earlier version accepted them. Of the defaults of all
        brokers, those with an invalid value are among them."""
        if kind != BROKER_RESOURCE:
            stored = self.image().configs.get((kind, name), NOTHING)
            yield from ((each, None, Source.TOPIC) for each in stored if each not in TOPIC_KEYS)
            return
        seen: set[str] = set()
        for broker in dict.fromkeys((name, "")):
            stored = self.image().configs.get((BROKER_RESOURCE, broker), NOTHING)
            for each in sorted(stored):
                ignored = not is_in_force(each, stored[each])
                if name:
                    ignored = each not in BROKER_KEYS and listener_key(each) is None
                if ignored and each not in seen:
                    seen.add(each)
                    yield (
                        each,
                        None,
                        Source.DYNAMIC_BROKER if broker else Source.DYNAMIC_DEFAULT_BROKER,
                    )

    def _keys(
        self, kind: int, name: str
    ) -> tuple[Mapping[str, Key], Callable[[Key], Described | None]]:
        image = self.image()
        if kind == TOPIC_RESOURCE:
            problem = what_is_wrong(name)
            if problem is not None:
                raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
            if image.topic(name) is None:
                raise KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {quoted(name)}"
                )
            shown = {each: key for each, key in TOPIC_KEYS.items() if not key.internal}
            return shown, lambda key: self._of_topic(image, name, key)
        if kind == BROKER_RESOURCE:
            if name == "":
                return BROKER_KEYS, lambda key: self._of_all_brokers(image, key)
            if name != str(self.node.node_id):
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST,
                    f"Unexpected broker id, expected {self.node.node_id} or empty string, "
                    f"but received {clipped(name)}",
                )
            known = {**BROKER_KEYS, **self._of_listeners(image)}
            return known, lambda key: self._of_this_broker(image, key)
        if kind == GROUP_RESOURCE:
            raise KafkaError(ErrorCode.INVALID_REQUEST, NO_GROUP_CONFIGS)
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"resource type {kind} has no configs here: name 2 (topic) or 4 (broker)",
        )

    def _of_listeners(self, image: MetadataImage) -> dict[str, Key]:
        """Return the keys with the prefix of a listener that the node's file or its dynamic configs
        set."""
        own = image.configs.get((BROKER_RESOURCE, str(self.node.node_id)), NOTHING)
        keys = ((name, listener_key(name)) for name in (*self.node.settings, *own))
        return {name: key for name, key in keys if key is not None}

    def _of_topic(self, image: MetadataImage, topic: str, key: Key) -> Described:
        own = image.config(TOPIC_RESOURCE, topic).get(key.name)
        synonyms = list(self._values(image, key.synonyms[0][0])) if key.synonyms else []
        if own is not None:
            value = key.name, key.normalized(own), Source.TOPIC
            return value, [value, *synonyms]
        dynamic = [each for each in synonyms if each[2] in DYNAMIC]
        if dynamic:
            return dynamic[0], synonyms
        static = any(not self._is_default(synonym) for synonym, _ in key.synonyms)
        text = key.format(topic_default(key, self.node))
        return (key.name, text, Source.STATIC_BROKER if static else Source.DEFAULT), synonyms

    def _of_all_brokers(self, image: MetadataImage, key: Key) -> Described | None:
        values = list(self._dynamic(image, "", key.name))
        return (values[0], values) if values else None

    def _of_this_broker(self, image: MetadataImage, key: Key) -> Described | None:
        if key.name in DYNAMIC_BROKER_KEYS:  # described while it is set, as in Kafka
            names = (str(self.node.node_id), "")
            values = [each for name in names for each in self._dynamic(image, name, key.name)]
            return (values[0], values) if values else None
        values = list(self._values(image, key.name))
        return (values[0] if values else (key.name, None, Source.DEFAULT)), values

    def _values(self, image: MetadataImage, name: str) -> Iterator[Value]:
        """Return the values of a node key and its synonyms, from the key's own first value on.

        Kafka also leaves out synonyms before that value. A default in hours is therefore named only
        if the key in ms has a value."""
        return dropwhile(lambda each: each[0] != name, self._all_values(image, name))

    def _all_values(self, image: MetadataImage, name: str) -> Iterator[Value]:
        names = SYNONYMS.get(name) or tuple(dict.fromkeys((name, split_prefix(name)[1])))
        for broker in (str(self.node.node_id), ""):
            for each in names:
                yield from self._dynamic(image, broker, each)
        for each in names:
            if not self._is_default(each):
                yield each, self.node.settings[each].text, Source.STATIC_BROKER
        for each in names:
            key = NODE_KEYS.get(each)  # None: a prefix, or a key that must have one
            if key is not None and key.default is not None:
                yield each, key.format(key.default), Source.DEFAULT

    def _dynamic(self, image: MetadataImage, broker: str, name: str) -> Iterator[Value]:
        value = image.configs.get((BROKER_RESOURCE, broker), NOTHING).get(name)
        if value is not None and is_in_force(name, value):
            source = Source.DYNAMIC_BROKER if broker else Source.DYNAMIC_DEFAULT_BROKER
            yield name, value, source

    def _is_default(self, name: str) -> bool:
        setting = self.node.settings.get(name)
        return setting is None or setting.is_default


def describe_stored(value: Value, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    """Return the description of a config that the node ignores. As Kafka does for an unknown key,
    it names the key, so that tools can delete it, and hides the value."""
    name, text, source = value
    synonym = DescribeConfigsSynonym(name=name, value=text, source=source)
    return DescribeConfigsResourceResult(
        name=name,
        value=text,
        read_only=True,
        config_source=source,
        is_sensitive=True,
        synonyms=(synonym,) if request.include_synonyms else (),
    )


def describe(
    key: Key, in_force: Value, synonyms: Sequence[Value], request: DescribeConfigsRequest
) -> DescribeConfigsResourceResult:
    """Return the description of one key, with the parts that the request wants. The value of a
    PASSWORD is null.

    As in Kafka, the value is the text of the typed value, and a synonym of a node key repeats the
    text that the operator has set."""
    _, text, source = in_force
    secret = key.kind is Kind.PASSWORD
    return DescribeConfigsResourceResult(
        name=key.name,
        value=None if secret else key.normalized(text),
        read_only=key.name not in TOPIC_KEYS
        and (key.name not in CHANGEABLE or key.name in DYNAMIC_BROKER_KEYS),
        config_source=source,
        is_sensitive=secret,
        synonyms=tuple(
            DescribeConfigsSynonym(name=name, value=None if secret else value, source=origin)
            for name, value, origin in synonyms
        )
        if request.include_synonyms
        else (),
        config_type=key.kind,
        documentation=key.doc if request.include_documentation else None,
    )
