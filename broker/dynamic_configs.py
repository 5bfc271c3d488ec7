"""Applies the dynamic configs of a broker to its parts while it runs.

The replica manager applies the defaults of topics itself, before and after the roles of the same
delta (`replication/metadata_applier.py`). One of them also concerns the directories of deleted
partitions, which have no topic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from quorate.broker.logs.cleaner_settings import CleanerSettings
from quorate.broker.replication.partitions.replication_throttle import UNLIMITED
from quorate.broker.replication.replica_manager import ReplicaManager
from quorate.config.dynamic_broker_keys import (
    FOLLOWER_THROTTLED_RATE,
    LEADER_THROTTLED_RATE,
    MOVE_THROTTLED_RATE,
    SCRAM_SECRET,
)
from quorate.config.dynamic_keys import AppliedBy
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.node.dynamic_settings import DynamicSettings
from quorate.quorum.rpc.kafka.connection_quotas import ConnectionLimits, ConnectionQuotas
from quorate.quorum.sasl.unknown_users import UnknownUsers

Apply = Callable[[Mapping[str, Any]], None]
"""Applies the settings of the node, by key, to one part of it."""


class DynamicConfigs:
    """The dynamic configs of one broker. The event loop owns it."""

    def __init__(
        self,
        settings: DynamicSettings,
        connections: ConnectionQuotas,
        replicas: ReplicaManager,
        unknown_users: UnknownUsers,
        configure_tls: Apply,
    ) -> None:
        """Apply `settings` to these parts."""
        self._settings = settings
        self._applied: Mapping[str, Any] | None = None

        def limit_connections(node: Mapping[str, Any]) -> None:
            connections.limits = ConnectionLimits.of(node)

        def delay_removals(node: Mapping[str, Any]) -> None:
            for directory in replicas.logs.directories:
                directory.delete_delay_ms = node["log.segment.delete.delay.ms"]

        self._parts: Mapping[AppliedBy, Apply] = {
            AppliedBy.TOPIC_SETTINGS: delay_removals,
            AppliedBy.CONNECTIONS: limit_connections,
            AppliedBy.FETCHERS: lambda node: replicas.fetchers.resize(node["num.replica.fetchers"]),
            AppliedBy.THROTTLES: lambda node: replicas.limit_replication(
                node.get(LEADER_THROTTLED_RATE, UNLIMITED),
                node.get(FOLLOWER_THROTTLED_RATE, UNLIMITED),
                node.get(MOVE_THROTTLED_RATE, UNLIMITED),
            ),
            AppliedBy.SASL: lambda node: unknown_users.configure(node.get(SCRAM_SECRET)),
            AppliedBy.CLEANER: lambda node: replicas.cleaner.configure(CleanerSettings.of(node)),
            AppliedBy.TLS: configure_tls,
        }

    def apply(self, image: MetadataImage) -> None:
        """Apply the dynamic configs of `image` if they have changed."""
        settings = self._settings(image)
        if settings is not self._applied:
            self._applied = settings
            for apply in self._parts.values():
                apply(settings)
