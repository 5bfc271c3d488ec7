"""The settings of a node's metadata log, snapshots and Raft core, from its configuration.

`quorate.config` holds the keys and their defaults. The settings never change while the node runs.
"""

from __future__ import annotations

from quorate.config.node_config import NodeConfig
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.node.replica.snapshot_generator import SnapshotSettings
from quorate.quorum.raft.settings import RaftSettings


def metadata_log_settings(config: NodeConfig) -> LogSettings:
    """Return the settings of the metadata log. An archive directory of "" means no archive."""
    return LogSettings(
        segment_bytes=config["internal.metadata.log.segment.bytes"]
        or config["metadata.log.segment.bytes"],
        segment_ms=config["metadata.log.segment.ms"],
        flushed_is_acknowledged=True,
        archive_directory=config["quorate.metadata.archive.dir"] or "",
    )


def snapshot_settings(config: NodeConfig) -> SnapshotSettings:
    """Return the settings of the metadata log's snapshots."""
    return SnapshotSettings(
        bytes_between=config["metadata.log.max.record.bytes.between.snapshots"],
        interval_ms=config["metadata.log.max.snapshot.interval.ms"],
        retention_bytes=config["metadata.max.retention.bytes"],
        retention_ms=config["metadata.max.retention.ms"],
    )


def raft_settings(config: NodeConfig) -> RaftSettings:
    """Return the settings of the Raft core. Only a controller may become a voter."""
    return RaftSettings(
        election_timeout_ms=config["controller.quorum.election.timeout.ms"],
        fetch_timeout_ms=config["controller.quorum.fetch.timeout.ms"],
        election_backoff_max_ms=config["controller.quorum.election.backoff.max.ms"],
        request_timeout_ms=config["controller.quorum.request.timeout.ms"],
        retry_backoff_ms=config["controller.quorum.retry.backoff.ms"],
        hints=config["quorate.hints.enable"],
        await_commit=config.is_broker,
        may_become_voter=config.is_controller,
        auto_join=config.is_controller and config["controller.quorum.auto.join.enable"],
    )
