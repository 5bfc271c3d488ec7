"""The effective settings of a topic on this broker: the topic's configs override the dynamic broker
configs, which override the node's file (Kafka's precedence).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from quorate.broker.replication.partitions.settings import ReplicationSettings, TopicSettings
from quorate.config.node_config import NodeConfig
from quorate.config.topic_keys import effective_topic_configs, topic_defaults
from quorate.quorum.metadata.image import TOPIC_RESOURCE, MetadataImage
from quorate.quorum.node.dynamic_settings import NOTHING, DynamicSettings

MAX_KEPT = 1000
"""The maximum number of different sets of topic configs whose settings are kept."""


class EffectiveTopicSettings:
    """Computes the effective settings of topics. The event loop owns it.

    It keeps the settings until a dynamic broker config changes them. Topics with the same configs
    share one object, because most topics of a large cluster have the same configs or none."""

    def __init__(
        self, config: NodeConfig, replication: ReplicationSettings, dynamic: DynamicSettings
    ) -> None:
        """Compute from a node's configuration, its replication settings and its dynamic ones."""
        self._config = config
        self._dynamic = dynamic
        self._node: Mapping[str, Any] = config
        self._replication = replication
        self._defaults = topic_defaults(config)
        self._kept: dict[tuple[tuple[str, str], ...], TopicSettings] = {}

    def __call__(self, image: MetadataImage, topic: str) -> TopicSettings:
        """Return the effective settings of `topic` in `image`.

        A topic without configs has the settings that the node gives. They are the same object as
        before if the node gives the same."""
        self._follow(self._dynamic(image))
        overrides = image.configs.get((TOPIC_RESOURCE, topic), NOTHING)
        key = tuple(sorted(overrides.items())) if overrides else ()
        found = self._kept.get(key)
        if found is None:
            configs = effective_topic_configs(dict(overrides), self._defaults)
            found = TopicSettings.of(configs, self._replication, self._config.node_id)
            if len(self._kept) >= MAX_KEPT:
                self._kept.clear()
            self._kept[key] = found
        return found

    def _follow(self, node: Mapping[str, Any]) -> None:
        if node is self._node:
            return
        self._node = node
        defaults = topic_defaults(node)
        replication = replace(
            self._replication, producer_id_expiration_ms=node["producer.id.expiration.ms"]
        )
        if (defaults, replication) != (self._defaults, self._replication):
            self._defaults, self._replication = defaults, replication
            self._kept.clear()
