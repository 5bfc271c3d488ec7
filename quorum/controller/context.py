"""What a rule sees: the latest image, what is derived from it, the soft state, and the moment.

One per controller; the moment (`now_ms`, `next_offset`) is set at every input. Rules read the
cluster from `image` and never write it: they return records.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from quorate.config.topic_keys import TOPIC_KEYS
from quorate.quorum.controller.hints import Hints
from quorate.quorum.controller.index import PartitionIndex
from quorate.quorum.controller.sessions import Sessions
from quorate.quorum.controller.settings import ControllerSettings
from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.image import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    MetadataImage,
    Partition,
    Topic,
)
from quorate.quorum.metadata.persistent import PersistentMap
from quorate.quorum.seams import Random

UNCLEAN_LEADER_ELECTION = "unclean.leader.election.enable"
CLUSTER_DEFAULT = (BROKER_RESOURCE, "")
NO_CONFIGS: PersistentMap[str, str] = PersistentMap()


@dataclass(slots=True, kw_only=True)
class Context:
    settings: ControllerSettings
    random: Random
    sessions: Sessions
    hints: Hints
    image: MetadataImage = field(default_factory=MetadataImage)
    index: PartitionIndex = field(default_factory=PartitionIndex)
    now_ms: int = 0
    next_offset: int = 0

    def is_active(self, broker_id: int) -> bool:
        """Registered, unfenced and not shutting down: may lead and join an ISR."""
        broker = self.image.brokers.get(broker_id)
        return broker is not None and broker.active

    def has_epoch(self, broker_id: int, broker_epoch: int) -> bool:
        broker = self.image.brokers.get(broker_id)
        return broker is not None and broker.epoch == broker_epoch

    def located(self, topic_id: Uuid, partition_id: int) -> tuple[Topic, Partition]:
        """Of a key from the index: it must be there."""
        topic = self.image.topics[topic_id]
        return topic, topic.partitions[partition_id]

    def topic_config(self, topic_name: str, key: str) -> str | None:
        """Topic override, then this node's, then the cluster-wide default, then the static
        value."""
        configs = self.image.configs
        for resource in (
            (TOPIC_RESOURCE, topic_name),
            (BROKER_RESOURCE, str(self.settings.node_id)),
            CLUSTER_DEFAULT,
        ):
            value = configs.get(resource, NO_CONFIGS).get(key)
            if value is not None:
                return value
        declared = TOPIC_KEYS[key]
        return declared.format(self.settings.topic_defaults.get(key, declared.default))

    def unclean_election_enabled(self, topic_name: str) -> bool:
        value = self.topic_config(topic_name, UNCLEAN_LEADER_ELECTION)
        return value is not None and value.lower() == "true"
