"""The effective settings of a topic on this broker: the topic's configs override the dynamic broker
configs, which override the node's file (Kafka's precedence).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from quorate.broker.replication.settings import ReplicationSettings, TopicSettings
from quorate.config.node_config import NodeConfig
from quorate.config.topic_keys import effective_topic_configs, topic_defaults
from quorate.quorum.metadata.image import TOPIC_RESOURCE, MetadataImage
from quorate.quorum.node.dynamic_settings import DynamicSettings


class EffectiveTopicSettings:
    """Computes the effective settings of topics. It computes the broker's part once, until the
    dynamic broker configs change."""

    def __init__(
        self, config: NodeConfig, replication: ReplicationSettings, dynamic: DynamicSettings
    ) -> None:
        """Compute from a node's configuration, its replication settings and its dynamic ones."""
        self._config = config
        self._dynamic = dynamic
        self._node: Mapping[str, Any] = config
        self._replication = replication
        self._defaults = topic_defaults(config)

    def __call__(self, image: MetadataImage, topic: str) -> TopicSettings:
        """Return the effective settings of `topic` in `image`."""
        self._follow(self._dynamic(image))
        overrides = image.config(TOPIC_RESOURCE, topic)
        configs = effective_topic_configs(overrides, self._defaults)
        return TopicSettings.of(configs, self._replication, self._config.node_id)

    def _follow(self, node: Mapping[str, Any]) -> None:
        if node is not self._node:
            self._node = node
            self._defaults = topic_defaults(node)
            self._replication = replace(
                self._replication, producer_id_expiration_ms=node["producer.id.expiration.ms"]
            )
