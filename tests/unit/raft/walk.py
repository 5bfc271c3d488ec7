"""A random walk through the events of a quorum of pure cores. One seed gives one history.

Messages are delayed, reordered, repeated and lost. Nodes crash, lose everything that was not
flushed or saved, and restart. Links are cut in one direction or both. Flushes and saves take long.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from quorate.quorum.raft.effects import Role
from quorate.quorum.raft.errors import NotLeader
from quorate.quorum.raft.settings import RaftSettings
from tests.unit.raft.harness import RaftCluster
from tests.unit.raft.invariants import Invariants
from tests.unit.raft.memory_log import MemoryMetadataLog

SETTINGS = RaftSettings(
    election_timeout_ms=100,
    fetch_timeout_ms=200,
    election_backoff_max_ms=100,
    request_timeout_ms=200,
    retry_backoff_ms=10,
    fetch_max_wait_ms=50,
    fetch_max_bytes=300,
)


class Walk:
    """One random history, determined by its seed."""

    def __init__(
        self,
        seed: int,
        *,
        steps: int,
        log: Callable[[int], MemoryMetadataLog] | None = None,
    ) -> None:
        self.random = random.Random(seed)
        voters = self.random.choice((1, 3, 3, 3, 4, 5))
        observers = self.random.choice((0, 0, 1, 2))
        dynamic = self.random.random() < 0.4
        self.cluster = RaftCluster(
            voters,
            observers,
            settings=replace(SETTINGS, may_become_voter=dynamic),
            seed=seed,
            start=False,
            log=log or (lambda node_id: MemoryMetadataLog()),
            spares=2 if dynamic else 0,
            dynamic=dynamic,
        )
        self.invariants = Invariants(self.cluster)
        self.steps = steps
        self.appended = 0
        self.loss = self.random.choice((0.0, 0.02, 0.2))
        self.repeats = self.random.choice((0.0, 0.05))
        self.crashes = self.random.choice((0.0, 0.005, 0.03))
        self.cuts = self.random.choice((0.0, 0.02))
        self.wipes = 0 if dynamic else self.random.choice((0, 0, (voters - 1) // 2))
        self.changes = self.random.choice((0.0, 0.02, 0.1)) if dynamic else 0.0
        # What becomes of a cut log on a real disk is the business of MetadataStorage.
        self.snapshots = self.random.choice((0.0, 0.01, 0.05)) if log is None else 0.0
        self.damage = self.random.choice((0.0, 0.3))
        for node_id in self.cluster.nodes:
            self.cluster.start(node_id)
        if self.wipes:  # every voter has met every other, so each notices a disk that was replaced
            self.cluster.connect_all()
            for node_id in self.cluster.nodes:
                self.cluster.save_all(node_id)

    def run(self) -> None:
        """Take all steps, check the invariants after each, and heal the cluster at the end."""
        for _ in range(self.steps):
            self._faults()
            self._step()
            self.invariants.check()
        self._heal()

    def _faults(self) -> None:
        cluster, chance = self.cluster, self.random
        ids = list(cluster.nodes)
        if chance.random() < self.crashes:
            node_id = chance.choice(ids)
            if cluster.nodes[node_id].raft is None:
                cluster.start(node_id)
                self._connect(node_id)
            elif chance.random() < 0.5:
                cluster.crash(node_id)
                if self.wipes and node_id in cluster.voter_ids and chance.random() < 0.3:
                    self.wipes -= 1
                    self.invariants.forget(node_id)
                    cluster.wipe(node_id, 2 + self.wipes)
            else:
                cluster.kill(node_id)
        if chance.random() < self.cuts:
            if cluster.cut and chance.random() < 0.5:
                cluster.heal()
            elif chance.random() < 0.5:
                leaders = [i for i in cluster.up() if cluster.role(i) is Role.LEADER]
                cluster.isolate(chance.choice(leaders or ids))
            else:
                cluster.cut.add((chance.choice(ids), chance.choice(ids)))
        if chance.random() < 0.005:  # a false hint
            node_id = chance.choice(ids)
            if cluster.nodes[node_id].raft is not None:
                other = chance.choice(cluster.voter_ids)
                cluster.core(node_id).link_lost(cluster.now_ms, other)
                cluster.core(node_id).link_refused(cluster.now_ms, other)
                cluster.collect(cluster.nodes[node_id])

    def _connect(self, node_id: int) -> None:
        cluster = self.cluster
        for other in cluster.up():
            if other != node_id and node_id in cluster.voter_ids:
                cluster.core(other).voter_connected(cluster.now_ms, cluster.nodes[node_id].me)
                cluster.collect(cluster.nodes[other])

    def _step(self) -> None:
        cluster, chance = self.cluster, self.random
        choices = []
        if cluster.letters:
            choices += [self._letter] * 6
        busy = [
            i
            for i in cluster.up()
            if cluster.nodes[i].saving or cluster.nodes[i].flushes or cluster.nodes[i].installing
        ]
        if busy:
            choices += [lambda: self._disk(chance.choice(busy))] * 3
        choices += [self._append, self._time]
        if chance.random() < self.changes:
            choices += [self._change_voters] * 10
        if chance.random() < self.snapshots:
            choices += [self._snapshot] * 10
        chance.choice(choices)()

    def _letter(self) -> None:
        cluster, chance = self.cluster, self.random
        letter = cluster.letters[min(int(chance.expovariate(0.5)), len(cluster.letters) - 1)]
        if chance.random() < self.loss:
            cluster.drop(letter)
        else:
            cluster.deliver(letter, keep=chance.random() < self.repeats)

    def _disk(self, node_id: int) -> None:
        node = self.cluster.nodes[node_id]
        if node.installing is not None and (
            self.random.random() < 0.5 or not (node.flushes or node.saving)
        ):
            if self.random.random() < self.damage:
                node.snapshots.parts[node.installing] = b"damaged"
            self.cluster.install(node_id)
        elif node.saving is not None and (not node.flushes or self.random.random() < 0.5):
            self.cluster.save(node_id)
        else:
            self.cluster.flush(node_id)

    def _append(self) -> None:
        cluster = self.cluster
        up = cluster.up()
        if not up or self.random.random() < 0.5:
            return
        leaders = [node_id for node_id in up if cluster.role(node_id) is Role.LEADER]
        node_id = self.random.choice(leaders or up)
        values = [b"%d" % self.appended, b"x" * self.random.randrange(1, 60)]
        try:
            cluster.append(node_id, *values[: self.random.randrange(1, 3)])
            self.appended += 1
        except NotLeader:
            assert not leaders

    def _change_voters(self) -> None:
        cluster, chance = self.cluster, self.random
        leaders = [node_id for node_id in cluster.up() if cluster.role(node_id) is Role.LEADER]
        if not leaders:
            return
        leader = chance.choice(leaders)
        ids = [*cluster.voter_ids, *cluster.spare_ids]
        if chance.random() < 0.6:
            cluster.add_voter(leader, chance.choice(ids), meets=chance.random() < 0.9)
        else:
            cluster.remove_voter(leader, chance.choice(ids))

    def _snapshot(self) -> None:
        up = self.cluster.up()
        if up:
            self.cluster.take_snapshot(self.random.choice(up))

    def _time(self) -> None:
        self.cluster.pass_time(self.cluster.now_ms + self.random.randrange(1, 60))

    def _heal(self) -> None:
        """Check that the quorum commits again and that all logs agree, with all nodes up and
        connected."""
        cluster = self.cluster
        cluster.heal()
        for node_id in cluster.nodes:
            if cluster.nodes[node_id].raft is None:
                cluster.start(node_id)
        cluster.run(3000)
        self.invariants.check()
        committed = self.invariants.committed_end
        leader = cluster.leader()
        cluster.append(leader, b"alive")
        cluster.run(200)
        self.invariants.check()
        assert self.invariants.committed_end > committed, "nothing is committed after healing"
        ends = {node.log.end_offset for node in cluster.nodes.values()}
        assert ends == {self.invariants.committed_end}, f"not everybody has caught up: {ends}"
