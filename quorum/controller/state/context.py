"""The input of a rule: the latest image, its indexes, the soft state and the current time.

A controller has one context. It sets `now_ms` and `next_offset` before each input.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from quorate.config.topic_keys import TOPIC_KEYS
from quorate.quorum.authorization.decision import Client
from quorate.quorum.authorization.permits import Permits
from quorate.quorum.controller.state.effective_configs import effective
from quorate.quorum.controller.state.hints import Hints
from quorate.quorum.controller.state.partition_index import PartitionIndex
from quorate.quorum.controller.state.replica_log_queries import ReplicaLogQueries
from quorate.quorum.controller.state.result import RequestRefused
from quorate.quorum.controller.state.sessions import Sessions
from quorate.quorum.controller.state.settings import ControllerSettings
from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.image import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    MetadataImage,
    Partition,
    Topic,
)
from quorate.quorum.metadata.persistent_map import PersistentMap
from quorate.quorum.principal import ANONYMOUS
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.quotas.mutation_quotas import MutationQuota
from quorate.quorum.seams import Random

UNCLEAN_LEADER_ELECTION = "unclean.leader.election.enable"
CLUSTER_DEFAULT = (BROKER_RESOURCE, "")
"""The resource that holds the dynamic defaults of all brokers."""
NO_CONFIGS: PersistentMap[str, str] = PersistentMap()


@dataclass(frozen=True, slots=True)
class Caller:
    """The client that sent a request: its client id, and the version and API of the request.

    `user` is the name of its principal, which quotas count by. `client` is its principal and host
    as ACLs name them. It is None if this controller has no authorizer, and for a request that a
    broker sends for itself."""

    client_id: str
    version: int
    api_key: int = -1
    client: Client | None = None
    user: str = ANONYMOUS.name


PermitsOf = Callable[[Caller, MetadataImage], Permits]
"""Returns the permissions of a caller by an image. The caller must have a client."""


@dataclass(slots=True, kw_only=True)
class Context:
    """Everything that a rule may read. `settings` are this controller's, and `random` is the only
    source of chance.

    Rules read the cluster's state from `image` and return records instead of writing to it. They
    may change only `sessions`, `hints`, `replica_logs`, and `mutation_quota`, which is that of the
    request.

    Invariant: `index` describes `image`.

    `voter_ids` returns the ids of the quorum's voters. `permits` is None without an authorizer.

    `now_ms` is monotonic time, in milliseconds. `next_offset` is the offset that the first record
    of the result will get.
    """

    settings: ControllerSettings
    random: Random
    sessions: Sessions
    hints: Hints
    replica_logs: ReplicaLogQueries = field(default_factory=ReplicaLogQueries)
    image: MetadataImage = field(default_factory=MetadataImage)
    index: PartitionIndex = field(default_factory=PartitionIndex)
    mutation_quota: MutationQuota = field(default_factory=MutationQuota)
    voter_ids: Callable[[], Collection[int]] = tuple
    permits: PermitsOf | None = None
    now_ms: int = 0
    next_offset: int = 0

    def charge(self, partitions: int) -> None:
        """Charge the client of the request for the creation or deletion of `partitions` partitions.
        Raise RequestRefused with THROTTLING_QUOTA_EXCEEDED if its quota is used up (KIP-599)."""
        if not self.mutation_quota.accepts(partitions):
            raise RequestRefused(
                ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The throttling quota has been exceeded."
            )

    def is_active(self, broker_id: int) -> bool:
        """Return True if the broker is registered, unfenced and not in controlled shutdown. Only
        such a broker may lead or join an ISR."""
        broker = self.image.brokers.get(broker_id)
        return broker is not None and broker.active

    def has_epoch(self, broker_id: int, broker_epoch: int) -> bool:
        """Return True if the broker is registered with exactly this epoch."""
        broker = self.image.brokers.get(broker_id)
        return broker is not None and broker.epoch == broker_epoch

    def located(self, topic_id: Uuid, partition_id: int) -> tuple[Topic, Partition]:
        """Return the topic and the partition of a key that comes from the index. Raise KeyError if
        it does not exist."""
        topic = self.image.topics[topic_id]
        return topic, topic.partitions[partition_id]

    @property
    def node_configs(self) -> Mapping[str, str]:
        """The dynamic configs of this controller's node."""
        return self.image.configs.get((BROKER_RESOURCE, str(self.settings.node_id)), NO_CONFIGS)

    def topic_config(self, topic_name: str, key: str) -> str | None:
        """Return the effective value of a topic config as text. Raise KeyError if `key` is not a
        topic config. `effective_configs.py` has the order of precedence."""
        configs = self.image.configs
        value, _ = effective(
            TOPIC_KEYS[key],
            configs.get((TOPIC_RESOURCE, topic_name), NO_CONFIGS),
            self.node_configs,
            configs.get(CLUSTER_DEFAULT, NO_CONFIGS),
            self.settings.topic_defaults,
        )
        return value
