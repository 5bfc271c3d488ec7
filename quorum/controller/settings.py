"""What an operator can set about the rules. Names and defaults are Kafka's unless said
otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from quorate.config.key import Value
from quorate.quorum.metadata.image import METADATA_VERSION

SUPPORTED_FEATURES = {METADATA_VERSION: (7, 27)}
"""3.3-IV3 to 4.1-IV1; whatever else Kafka has is not finalized before it works here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSettings:
    cluster_id: str
    node_id: int
    session_timeout_ms: int = 9000
    default_replication_factor: int = 1
    default_partitions: int = 1
    topic_deletion: bool = True
    auto_leader_rebalance: bool = True
    imbalance_check_interval_ms: int = 300_000
    unclean_election_interval_ms: int = 300_000
    max_idle_interval_ms: int = 500  # 0: no NoOp records
    max_elections_per_run: int = 1000
    more_elections_delay_ms: int = 10
    inter_broker_listener: str = "REPLICATION"
    hints: bool = True  # design idea 9; ours
    takeover_probe_delay_ms: int = 300  # ours
    topic_defaults: Mapping[str, Value] = field(default_factory=dict)
    """This node's typed default of each topic key (`quorate.config.topic_keys.topic_defaults`)."""
    features: Mapping[str, int] = field(default_factory=lambda: {"metadata.version": 27})
    """What the bootstrap records finalize."""
    supported_features: Mapping[str, tuple[int, int]] = field(
        default_factory=lambda: dict(SUPPORTED_FEATURES)
    )
    """This controller's lowest and highest level of each feature."""
