"""Creates the Raft core of a node from its configuration and its opened metadata directory."""

from __future__ import annotations

from quorate.config.node_config import NodeConfig
from quorate.quorum.ids import ReplicaKey
from quorate.quorum.node.opening.metadata_opening import OpenedMetadata
from quorate.quorum.node.peers.node_membership import membership
from quorate.quorum.node.replica.node_settings import raft_settings
from quorate.quorum.raft.log_view import FollowedBatches
from quorate.quorum.raft.raft import Raft
from quorate.quorum.seams import Seams


def create_raft(
    seams: Seams,
    config: NodeConfig,
    cluster_id: str,
    me: ReplicaKey,
    opened: OpenedMetadata,
    followed: FollowedBatches,
) -> Raft:
    """Return the Raft core of the replica `me`, which passes the batches of leaders to
    `followed`."""
    storage = opened.storage
    raft = Raft(
        raft_settings(config),
        cluster_id,
        me,
        membership(config, me, storage.history),
        storage.log,
        storage.snapshots,
        opened.election,
        seams.random,
        seams.clock.now_ms(),
        seams.clock.wall_ms(),
        lost_log=bool(opened.lost),
    )
    raft.follow_batches(followed)
    return raft
