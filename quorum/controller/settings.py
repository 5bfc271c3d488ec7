"""The configuration of the controller's rules.

Names and defaults are Kafka's unless a comment says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from quorate.config.key import Value
from quorate.quorum.metadata.image import METADATA_VERSION

SUPPORTED_FEATURES = {METADATA_VERSION: (7, 27)}
"""The levels of each feature that this version supports: metadata.version from 3.3-IV3 to 4.1-IV1.
Other features of Kafka are absent because Quorate does not implement them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSettings:
    """The settings of one controller. Fields that end in `_ms` are milliseconds.

    `node_id` is this controller's. `inter_broker_listener` is the name of the endpoint at which
    nodes reach a broker (inter.broker.listener.name). `session_timeout_ms` is Kafka's
    broker.session.timeout.ms. An interval of 0 disables its periodic task. `max_elections_per_run`
    bounds the records of one run. If a run reaches the bound, the next one starts
    `more_elections_delay_ms` later. `hints` is quorate.hints.enable. `takeover_probe_delay_ms` is
    the time that a broker has to connect to a new active controller before that controller probes
    it.
    """

    cluster_id: str
    node_id: int
    session_timeout_ms: int = 9000
    default_replication_factor: int = 1
    default_partitions: int = 1
    topic_deletion: bool = True
    auto_leader_rebalance: bool = True
    imbalance_check_interval_ms: int = 300_000
    unclean_election_interval_ms: int = 300_000
    max_idle_interval_ms: int = 500  # 0 disables NoOp records
    max_elections_per_run: int = 1000
    more_elections_delay_ms: int = 10
    inter_broker_listener: str = "REPLICATION"
    hints: bool = True  # not in Kafka: quorate.hints.enable, see docs/differences.md
    takeover_probe_delay_ms: int = 300  # not in Kafka
    topic_defaults: Mapping[str, Value] = field(default_factory=dict)
    """The static, typed default of each topic key on this node
    (`quorate.config.topic_keys.topic_defaults`)."""
    features: Mapping[str, int] = field(default_factory=lambda: {"metadata.version": 27})
    """The feature levels that the bootstrap records finalize."""
    supported_features: Mapping[str, tuple[int, int]] = field(
        default_factory=lambda: dict(SUPPORTED_FEATURES)
    )
    """The lowest and the highest level of each feature that this controller supports."""
