"""The configuration of the controller's rules.

`controller_settings` (`quorum/node/controller/controller_settings.py`) reads the values from the
node's configuration. The text below a field names its key. Defaults are Kafka's unless that text
says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from quorate.config.key import Value
from quorate.quorum.metadata.image import ELIGIBLE_LEADER_REPLICAS, METADATA_VERSION
from quorate.quorum.metadata.records import MetadataRecord
from quorate.quorum.quotas.sampled_rate import Windows

SUPPORTED_FEATURES = {METADATA_VERSION: (23, 27), ELIGIBLE_LEADER_REPLICAS: (0, 1)}
"""The lowest and the highest supported level of each feature. metadata.version is supported from
4.0-IV1 to 4.1-IV1, because all these levels have the record versions that a node writes. Other
features of Kafka are absent because Quorate does not implement them."""
NEW_CLUSTER_FEATURES = {METADATA_VERSION: 27, ELIGIBLE_LEADER_REPLICAS: 1}
"""The level of each feature in a new cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSettings:
    """The settings of one controller. They never change while the node runs. Fields that end in
    `_ms` are in milliseconds."""

    cluster_id: str
    node_id: int
    """The node id of this controller."""
    session_timeout_ms: int = 9000
    """broker.session.timeout.ms."""
    default_replication_factor: int = 1
    """default.replication.factor, for a new topic that names none."""
    default_partitions: int = 1
    """num.partitions, for a new topic that names none."""
    topic_deletion: bool = True
    """delete.topic.enable."""
    auto_leader_rebalance: bool = True
    """auto.leader.rebalance.enable. If it is False, no periodic task balances leaders."""
    imbalance_check_interval_ms: int = 300_000
    """leader.imbalance.check.interval.seconds, in ms here; 0 disables the periodic task."""
    imbalance_percentage: int = 0
    """leader.imbalance.per.broker.percentage: the share of a broker's preferred partitions that may
    have another leader before the periodic task moves them back."""
    unclean_election_interval_ms: int = 300_000
    """unclean.leader.election.interval.ms; 0 disables the periodic task."""
    max_idle_interval_ms: int = 500
    """metadata.max.idle.interval.ms, the interval of NoOp records; 0 disables them."""
    max_elections_per_run: int = 1000
    """The largest number of elections in one run of a periodic task. No key sets it."""
    more_elections_delay_ms: int = 10
    """The time to the next run of a task that reached `max_elections_per_run`. No key sets it."""
    inter_broker_listener: str = "REPLICATION"
    """inter.broker.listener.name: the name of the endpoint at which nodes reach a broker. The
    default is not Kafka's."""
    hints: bool = True
    """quorate.hints.enable, which Kafka does not have. If it is True, a broker whose process is
    proved dead is fenced before its session expires (`hints.py`)."""
    mutation_windows: Windows = Windows()
    """controller.quota.window.num and controller.quota.window.size.seconds: the sample windows of
    the quota controller_mutation_rate."""
    takeover_probe_delay_ms: int = 300
    """The time that a broker has to connect to a new active controller, before that controller
    probes it. Kafka has no such probes. No key sets it."""
    topic_defaults: Mapping[str, Value] = field(default_factory=dict)
    """The static, typed default of each topic key on this node
    (`quorate.config.topic_keys.topic_defaults`)."""
    features: Mapping[str, int] = field(default_factory=lambda: dict(NEW_CLUSTER_FEATURES))
    """The feature levels that the first active controller of a new cluster writes in the bootstrap
    records. No key sets them."""
    bootstrap_records: Sequence[MetadataRecord] = ()
    """Further bootstrap records of a new cluster, from `bootstrap.checkpoint`. No key sets them."""
    supported_features: Mapping[str, tuple[int, int]] = field(
        default_factory=lambda: dict(SUPPORTED_FEATURES)
    )
    """The lowest and the highest level of each feature that this controller supports. No key sets
    it."""
