"""What must hold after every step, whatever was lost, delayed, repeated or crashed.

The checks look at the logs and elections themselves, not at what a core believes. They remember: a
committed record stays what it was, an epoch has one leader, epochs and high watermarks of one life
of a node never go back.
"""

from __future__ import annotations

from quorate.quorum.raft.effects import Role
from tests.unit.raft.harness import Cluster, Node
from tests.unit.raft.memory_log import Batch


class Invariants:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.leaders: dict[int, int] = {}  # epoch -> node
        self.committed: list[Batch] = []
        self.epochs: dict[int, int] = {}
        self.saved_epochs: dict[int, int] = {}
        self.votes: dict[tuple[int, int], object] = {}  # (node, epoch) -> voted, as saved
        self.watermarks: dict[int, tuple[int, int]] = {}
        self.lost: dict[int, list[Batch]] = {}  # what wiped voters had flushed

    @property
    def committed_end(self) -> int:
        return self.committed[-1].next_offset if self.committed else 0

    def forget(self, node_id: int) -> None:
        """Its disk was replaced: what comes back under that id is another replica."""
        self.lost[node_id] = self._flushed_by(node_id)
        self.saved_epochs.pop(node_id, None)
        self.votes = {place: vote for place, vote in self.votes.items() if place[0] != node_id}

    def check(self) -> None:
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

    def _durable(self, node_id: int, node: Node) -> None:
        saved = node.saved
        assert saved.epoch >= self.saved_epochs.get(node_id, 0), "a saved epoch went back"
        self.saved_epochs[node_id] = saved.epoch
        if saved.voted is not None:
            first = self.votes.setdefault((node_id, saved.epoch), saved.voted)
            assert first == saved.voted, f"node {node_id} voted twice in epoch {saved.epoch}"

    def _memory(self, node_id: int, node: Node) -> None:
        raft = node.core
        epoch = raft.epoch
        assert epoch >= self.epochs.get(node_id, 0) or node.incarnation > 0, "an epoch went back"
        self.epochs[node_id] = epoch
        if raft.role is Role.LEADER:
            assert node_id in self.cluster.voter_ids
            leader = self.leaders.setdefault(epoch, node_id)
            assert leader == node_id, f"epoch {epoch} has leaders {leader} and {node_id}"
        incarnation, high_watermark = self.watermarks.get(node_id, (-1, 0))
        if incarnation == node.incarnation:
            assert raft.high_watermark >= high_watermark, "a high watermark went back"
        self.watermarks[node_id] = (node.incarnation, raft.high_watermark)
        assert raft.high_watermark <= node.log.end_offset

    def _log_matching(self) -> None:
        """The same offset and epoch: the same record, and the same before it."""
        seen: dict[tuple[int, int], tuple[Batch | None, Batch]] = {}
        for node in self.cluster.nodes.values():
            before: Batch | None = None
            for batch in node.log.batches:
                place = (batch.base_offset, batch.epoch)
                known = seen.setdefault(place, (before, batch))
                assert known == (before, batch), f"logs differ at (offset, epoch) {place}"
                before = batch

    def _commit(self, node: Node) -> None:
        """What is said to be committed is durable on a majority at that moment."""
        end = node.high_watermark if node.raft is not None else 0
        if end <= self.committed_end:
            return
        wanted = [batch for batch in node.log.batches if batch.next_offset <= end]
        holders = [
            voter_id
            for voter_id in self.cluster.voter_ids
            if self._flushed_by(voter_id)[: len(wanted)] == wanted
        ]
        assert len(holders) > len(self.cluster.voter_ids) // 2, (
            f"offset {end} is called committed but durable only on {holders}"
        )
        assert wanted[: len(self.committed)] == self.committed, "a committed record changed"
        self.committed = wanted

    def _flushed_by(self, voter_id: int) -> list[Batch]:
        """By that very replica, not by one that came after it under its id."""
        if voter_id in self.lost:
            return self.lost[voter_id]
        log = self.cluster.nodes[voter_id].log
        return [batch for batch in log.batches if batch.next_offset <= log.flushed_offset]

    def _committed_prefix(self, node: Node) -> None:
        if node.raft is None:
            return
        known = [batch for batch in node.log.batches if batch.next_offset <= node.high_watermark]
        assert known == self.committed[: len(known)], "a node's committed prefix differs"
