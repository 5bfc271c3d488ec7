"""A topic's effective settings on this broker: its own configs over the brokers' dynamic ones over
the node's file (Kafka's precedence)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quorate.broker.replication.settings import ReplicationSettings, TopicSettings
from quorate.config.node_config import NodeConfig
from quorate.config.node_keys import NODE_KEYS
from quorate.config.topic_keys import effective_topic_configs, topic_defaults
from quorate.quorum.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage

CLUSTER_DEFAULT = ""


class EffectiveTopicSettings:
    """The node's own part is parsed once for as long as the brokers' dynamic configs stay."""

    def __init__(self, config: NodeConfig, replication: ReplicationSettings) -> None:
        self._config = config
        self._replication = replication
        self._dynamic: Mapping[str, str] = {}
        self._defaults = topic_defaults(config)

    def __call__(self, image: MetadataImage, topic: str) -> TopicSettings:
        overrides = image.config(TOPIC_RESOURCE, topic)
        configs = effective_topic_configs(overrides, self._node_defaults(image))
        return TopicSettings.of(configs, self._replication)

    def _node_defaults(self, image: MetadataImage) -> Mapping[str, Any]:
        dynamic = {
            **image.config(BROKER_RESOURCE, CLUSTER_DEFAULT),
            **image.config(BROKER_RESOURCE, str(self._config.node_id)),
        }
        if dynamic != self._dynamic:
            parsed = {
                name: NODE_KEYS[name].parse(text)
                for name, text in dynamic.items()
                if name in NODE_KEYS
            }
            self._dynamic = dynamic
            self._defaults = topic_defaults({**self._config, **parsed})
        return self._defaults
