"""The effective settings of a topic on this broker: the topic's configs override the dynamic broker
configs, which override the node's file (Kafka's precedence).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from quorate.broker.replication.settings import ReplicationSettings, TopicSettings
from quorate.config.dynamic_broker_keys import BROKER_KEYS
from quorate.config.node_config import NodeConfig
from quorate.config.topic_keys import effective_topic_configs, topic_defaults
from quorate.quorum.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage

CLUSTER_DEFAULT = ""
"""The name of the broker resource whose configs count for all brokers."""


def dynamic_texts(config: NodeConfig, image: MetadataImage) -> dict[str, str]:
    """Return the dynamic configs of this broker as texts. Its own configs override the cluster's
    defaults."""
    return {
        **image.config(BROKER_RESOURCE, CLUSTER_DEFAULT),
        **image.config(BROKER_RESOURCE, str(config.node_id)),
    }


def parsed(texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the typed values of the known broker configs in `texts`. Ignore unknown keys."""
    known = (name for name in texts if name in BROKER_KEYS)
    return {name: BROKER_KEYS[name].parse(texts[name]) for name in known}


def dynamic_settings(config: NodeConfig, image: MetadataImage) -> dict[str, Any]:
    """Return the dynamic configs of this broker, typed, without unknown keys."""
    return parsed(dynamic_texts(config, image))


class EffectiveTopicSettings:
    """Computes the effective settings of topics. It parses the broker's part once, until the
    dynamic broker configs change."""

    def __init__(self, config: NodeConfig, replication: ReplicationSettings) -> None:
        """Compute from a node's configuration and its replication settings."""
        self._config = config
        self._replication = replication
        self._dynamic: Mapping[str, str] = {}
        self._defaults = topic_defaults(config)

    def __call__(self, image: MetadataImage, topic: str) -> TopicSettings:
        """Return the effective settings of `topic` in `image`."""
        overrides = image.config(TOPIC_RESOURCE, topic)
        defaults = self._node_defaults(image)
        configs = effective_topic_configs(overrides, defaults)
        return TopicSettings.of(configs, self._replication, self._config.node_id)

    def _node_defaults(self, image: MetadataImage) -> Mapping[str, Any]:
        dynamic = dynamic_texts(self._config, image)
        if dynamic != self._dynamic:
            self._dynamic = dynamic
            node = {**self._config, **parsed(dynamic)}
            self._defaults = topic_defaults(node)
            self._replication = replace(
                self._replication, producer_id_expiration_ms=node["producer.id.expiration.ms"]
            )
        return self._defaults
