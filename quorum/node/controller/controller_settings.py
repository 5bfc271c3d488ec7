"""The settings of the controller's rules, read from the configuration of the node."""

from __future__ import annotations

from collections.abc import Sequence

from quorate.config.node_config import NodeConfig
from quorate.config.topic_keys import topic_defaults
from quorate.quorum.controller.state.settings import ControllerSettings
from quorate.quorum.metadata.records import MetadataRecord
from quorate.quorum.quotas.sampled_rate import Windows


def controller_settings(
    config: NodeConfig, cluster_id: str, bootstrap: Sequence[MetadataRecord] = ()
) -> ControllerSettings:
    """Return the settings of the rules from the node's configuration."""
    return ControllerSettings(
        cluster_id=cluster_id,
        node_id=config.node_id,
        session_timeout_ms=config["broker.session.timeout.ms"],
        default_replication_factor=config["default.replication.factor"],
        default_partitions=config["num.partitions"],
        topic_deletion=config["delete.topic.enable"],
        auto_leader_rebalance=config["auto.leader.rebalance.enable"],
        imbalance_check_interval_ms=config["leader.imbalance.check.interval.seconds"] * 1000,
        imbalance_percentage=config["leader.imbalance.per.broker.percentage"],
        unclean_election_interval_ms=config["unclean.leader.election.interval.ms"],
        max_idle_interval_ms=config["metadata.max.idle.interval.ms"],
        inter_broker_listener=config.inter_broker_listener,
        hints=config["quorate.hints.enable"],
        mutation_windows=Windows.of(config, "controller."),
        topic_defaults=topic_defaults(config),
        bootstrap_records=bootstrap,
    )
