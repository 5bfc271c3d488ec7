"""A topic's effective settings on this broker: its own configs over the brokers' dynamic ones over
the node's file (Kafka's precedence)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from quorate.broker.replication.settings import ReplicationSettings, TopicSettings
from quorate.config.node_config import NodeConfig
from quorate.config.node_keys import NODE_KEYS
from quorate.config.topic_keys import effective_topic_configs, topic_defaults
from quorate.quorum.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage

CLUSTER_DEFAULT = ""


@dataclass(frozen=True, slots=True)
class EffectiveTopicSettings:
    config: NodeConfig
    replication: ReplicationSettings

    def __call__(self, image: MetadataImage, topic: str) -> TopicSettings:
        overrides = image.config(TOPIC_RESOURCE, topic)
        defaults = topic_defaults(self._node_values(image))
        return TopicSettings.of(effective_topic_configs(overrides, defaults), self.replication)

    def _node_values(self, image: MetadataImage) -> Mapping[str, Any]:
        dynamic = {
            **image.config(BROKER_RESOURCE, CLUSTER_DEFAULT),
            **image.config(BROKER_RESOURCE, str(self.config.node_id)),
        }
        if not dynamic:
            return self.config
        parsed = {
            name: NODE_KEYS[name].parse(text) for name, text in dynamic.items() if name in NODE_KEYS
        }
        return {**self.config, **parsed}
