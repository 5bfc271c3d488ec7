"""The settings of this broker's replicas: the configs of topics, and those that the node gives.

A change of a topic's configs takes effect immediately. A change of the node's settings concerns all
replicas, which follow in slices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from quorate.broker.replication.partitions.hosted_partition import HostedPartition, Key
from quorate.broker.replication.partitions.partition_registry import PartitionRegistry
from quorate.broker.replication.partitions.settings import TopicSettings
from quorate.quorum.metadata.delta import ImageDelta
from quorate.quorum.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage
from quorate.quorum.seams import Clock

CONFIGURED_PER_SLICE = 200
"""Maximum number of partitions that get new settings of the node in one loop iteration."""
NO_TOPIC = ""
"""A name that no topic has."""

TopicSettingsOf = Callable[[MetadataImage, str], TopicSettings]
"""A function from an image and a topic name to the topic's effective settings on this broker."""


SettingsOf = Callable[[str], TopicSettings]
"""The same function for one image."""


class ReplicaConfiguration:
    """The settings of one broker's replicas. The event loop owns it."""

    def __init__(
        self, clock: Clock, registry: PartitionRegistry, topic_settings: TopicSettingsOf
    ) -> None:
        """`topic_settings` returns a topic's effective settings in an image."""
        self._clock = clock
        self._registry = registry
        self._topic_settings = topic_settings
        self._node_settings: TopicSettings | None = None
        """The settings of topics without configs, which the node gives."""
        self.left: dict[Key, None] = {}
        """The partitions that were open when these settings changed, and still have the old
        ones."""

    def raise_min_isrs(
        self, image: MetadataImage, delta: ImageDelta, settings_of: SettingsOf
    ) -> None:
        """Apply higher values of min.insync.replicas before the roles of the same delta. Lower
        values follow after the roles.

        Otherwise a leader could commit records with a new, smaller ISR and the old value, or with
        the new value in a leadership that has ended. The ELR (KIP-966) relies on neither."""
        if not delta.configs:
            return
        old, rises = self._node_settings, False
        if old is not None and concerns_brokers(delta):
            new = settings_of(NO_TOPIC)
            rises = new.partition.min_insync_replicas > old.partition.min_insync_replicas
        for hosted in self._registry if rises else self._of_changed_topics(image, delta):
            wanted = settings_of(hosted.topic).partition.min_insync_replicas
            hosted.partition.raise_min_isr(wanted)

    def configure(self, image: MetadataImage, delta: ImageDelta, settings_of: SettingsOf) -> bool:
        """Configure the partitions of topics whose configs have changed. If the settings have
        changed that the node gives, return True: all partitions must follow in slices."""
        if not delta.configs and self._node_settings is not None:
            return False
        for hosted in self._of_changed_topics(image, delta):
            if self.configure_one(hosted, settings_of(hosted.topic)):
                hosted.settle()
        if self._node_settings is None or concerns_brokers(delta):
            settings = settings_of(NO_TOPIC)
            if settings is not self._node_settings:
                self._node_settings = settings
                self.left = dict.fromkeys(each.key for each in self._registry)
                return True
        return False

    def configure_some(self) -> None:
        """Apply the settings that the node gives to the next partitions in `left`."""
        settings_of = self.settings_of(self._registry.image)
        for key in list(islice(self.left, CONFIGURED_PER_SLICE)):
            del self.left[key]
            hosted = self._registry.get(key)
            if hosted is not None and self.configure_one(hosted, settings_of(hosted.topic)):
                hosted.settle()

    def configure_one(self, hosted: HostedPartition, settings: TopicSettings) -> bool:
        """Apply the settings. Return True if those of the partition or its log have changed."""
        hosted.throttle_by(settings)
        if hosted.log.settings == settings.log and hosted.partition.settings == settings.partition:
            return False
        hosted.log.settings = settings.log
        hosted.partition.configure(settings.partition, self._clock.now_ms())
        return True

    def _of_changed_topics(
        self, image: MetadataImage, delta: ImageDelta
    ) -> Iterator[HostedPartition]:
        for kind, name in delta.configs:
            topic = image.topic(name) if kind == TOPIC_RESOURCE else None
            if topic is not None:
                hosted = (self._registry.get((topic.id, i)) for i in topic.partition_ids())
                yield from (each for each in hosted if each is not None)

    def settings_of(self, image: MetadataImage) -> SettingsOf:
        """Return a function from a topic to its settings, which computes them once for each
        topic."""
        known: dict[str, TopicSettings] = {}

        def settings_of(topic: str) -> TopicSettings:
            found = known.get(topic)
            if found is None:
                found = known[topic] = self._topic_settings(image, topic)
            return found

        return settings_of


def concerns_brokers(delta: ImageDelta) -> bool:
    """Return True if a config of a broker, or of all brokers, has changed."""
    return any(kind == BROKER_RESOURCE for kind, _ in delta.configs)
