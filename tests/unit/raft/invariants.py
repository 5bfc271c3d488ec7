"""The invariants of a quorum, which must hold after every step.

The checks read the logs and the saved elections, not the beliefs of a core. They also compare with
earlier steps: a committed record never changes, an epoch has one leader, and the epoch and the high
watermark of a running node never decrease.
"""

from __future__ import annotations

from typing import NamedTuple

from quorate.quorum.ids import EpochOffset
from quorate.quorum.raft.effects import Role
from tests.unit.log.memory_log import Batch
from tests.unit.raft.harness import RaftCluster, RaftNode


class Invariants:
    """The invariants of one cluster, with the memory of what was seen before."""

    def __init__(self, cluster: RaftCluster) -> None:
        self.cluster = cluster
        self.leaders: dict[int, int] = {}  # epoch -> node
        self.committed: dict[int, Batch] = {}  # by base offset
        self.committed_end = 0
        self.snapshots: dict[EpochOffset, bytes] = {}
        self.epochs: dict[int, int] = {}
        self.saved_epochs: dict[int, int] = {}
        self.votes: dict[tuple[int, int], object] = {}  # (node, epoch) -> voted, as saved
        self.watermarks: dict[int, tuple[int, int]] = {}
        self.lost: dict[int, Durable] = {}  # what wiped voters had flushed

    def forget(self, node_id: int) -> None:
        """Treat the node of this id as another replica, because its disk was replaced."""
        self.lost[node_id] = self._durable_of(node_id)
        self.saved_epochs.pop(node_id, None)
        self.votes = {place: vote for place, vote in self.votes.items() if place[0] != node_id}

    def forget_votes(self, node_id: int) -> None:
        """Allow the same replica to have lost its log and its vote with its directory."""
        self.votes = {place: vote for place, vote in self.votes.items() if place[0] != node_id}

    def check(self) -> None:
        """Check all invariants now. Raise AssertionError if one is violated."""
        nodes = self.cluster.nodes
        for node_id, node in nodes.items():
            self._durable(node_id, node)
            if node.raft is not None:
                self._memory(node_id, node)
        self._log_matching()
        for node in nodes.values():
            self._commit(node)
        for node in nodes.values():
            self._committed_prefix(node)
            self._same_snapshots(node)

    def _durable(self, node_id: int, node: RaftNode) -> None:
        saved = node.saved
        assert saved.epoch >= self.saved_epochs.get(node_id, 0), "a saved epoch went back"
        self.saved_epochs[node_id] = saved.epoch
        if saved.voted is not None:
            first = self.votes.setdefault((node_id, saved.epoch), saved.voted)
            assert first == saved.voted, f"node {node_id} voted twice in epoch {saved.epoch}"

    def _memory(self, node_id: int, node: RaftNode) -> None:
        raft = node.core
        assert not raft.refused_claims, raft.last_refused_claim  # no node of these lies
        epoch = raft.epoch
        assert epoch >= self.epochs.get(node_id, 0) or node.incarnation > 0, "an epoch went back"
        self.epochs[node_id] = epoch
        if raft.role is Role.LEADER:
            assert node_id in (*self.cluster.voter_ids, *self.cluster.spare_ids)
            leader = self.leaders.setdefault(epoch, node_id)
            assert leader == node_id, f"epoch {epoch} has leaders {leader} and {node_id}"
        incarnation, high_watermark = self.watermarks.get(node_id, (-1, 0))
        if incarnation == node.incarnation:
            assert raft.high_watermark >= high_watermark, "a high watermark went back"
        self.watermarks[node_id] = (node.incarnation, raft.high_watermark)
        assert raft.high_watermark <= node.log.end_offset

    def _log_matching(self) -> None:
        """Check that records with the same offset and epoch are equal, with all records before
        them."""
        seen: dict[tuple[int, int], Batch] = {}
        befores: dict[tuple[int, int], Batch] = {}
        for node in self.cluster.nodes.values():
            before: Batch | None = None
            for batch in node.log.batches:
                place = (batch.base_offset, batch.epoch)
                assert seen.setdefault(place, batch) == batch, f"logs differ at {place}"
                if before is not None:
                    assert befores.setdefault(place, before) == before, f"logs differ below {place}"
                before = batch

    def _commit(self, node: RaftNode) -> None:
        """Check that a record that the leader declares committed is durable on a majority of the
        voters that the leader has at that moment."""
        end = node.high_watermark if node.raft is not None else 0
        if end <= self.committed_end:
            return
        new = [
            batch
            for batch in node.log.batches
            if self.committed_end <= batch.base_offset and batch.next_offset <= end
        ]
        voters = node.core._core.voters.ids
        holders = [voter_id for voter_id in voters if self._durable_of(voter_id).holds(new, end)]
        assert len(holders) > len(voters) // 2, (
            f"offset {end} is called committed but durable only on {holders} of {voters}"
        )
        for batch in new:
            self.committed[batch.base_offset] = batch
        self.committed_end = end

    def _durable_of(self, voter_id: int) -> Durable:
        """Return the durable log of this very replica, not of a later one with the same id."""
        if voter_id in self.lost:
            return self.lost[voter_id]
        log = self.cluster.nodes[voter_id].log
        flushed = max(log.flushed_offset, log.start_offset)
        return Durable(
            log.start_offset,
            flushed,
            {each.base_offset: each for each in log.batches if each.next_offset <= flushed},
        )

    def _committed_prefix(self, node: RaftNode) -> None:
        if node.raft is None:
            return
        for batch in node.log.batches:
            if batch.next_offset <= node.high_watermark:
                assert self.committed[batch.base_offset] == batch, "a committed record changed"

    def _same_snapshots(self, node: RaftNode) -> None:
        for snapshot, content in node.snapshots.files.items():
            known = self.snapshots.setdefault(snapshot, content)
            assert known == content, f"snapshot {snapshot} differs: {known!r}, {content!r}"


class Durable(NamedTuple):
    """The durable log of one replica. A snapshot holds the records below `start_offset`."""

    start_offset: int  # a snapshot stands for what is below
    end_offset: int
    batches: dict[int, Batch]

    def holds(self, wanted: list[Batch], end_offset: int) -> bool:
        """Return True if the log holds the batches of `wanted` and ends at `end_offset` or
        later."""
        return self.end_offset >= end_offset and all(
            self.batches.get(each.base_offset) == each
            for each in wanted
            if each.base_offset >= self.start_offset
        )
