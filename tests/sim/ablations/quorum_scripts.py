"""Scripted histories of pure cores that random walks seldom find. Invariants are checked after
every effect, so a script only has to bring about the harmful situation. With unchanged production
code it passes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from quorate.quorum.raft.effects import Role
from quorate.quorum.raft.messages import VoteRequest, VoteResponse
from quorate.quorum.raft.settings import RaftSettings
from tests.unit.raft.harness import RaftCluster, RaftNode
from tests.unit.raft.invariants import Invariants

DYNAMIC = RaftSettings(may_become_voter=True, hints=False)


class Checked(RaftCluster):
    invariants: Invariants | None = None

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.invariants = Invariants(self)

    def collect(self, node: RaftNode) -> None:
        super().collect(node)
        if self.invariants is not None:
            self.invariants.check()

    def only(self, *groups: tuple[int, ...]) -> None:
        """Let the nodes of each group exchange messages only with each other."""
        self.heal()
        for group in groups:
            self.isolate(*group)

    def go_on(self, steps: int, *, unflushed: int, unheard: int = 0) -> None:
        """Deliver, save and flush for `steps` steps, except for flushes of `unflushed` and messages
        from and to `unheard`."""
        for _ in range(steps):
            for each in self.up():
                self.save_all(each)
            busy = [each for each in self.up() if each != unflushed and self.nodes[each].flushes]
            heard = [each for each in self.letters if unheard not in (each.source, each.target)]
            if busy:
                self.flush(busy[0])
            elif heard:
                self.deliver(heard[0])
            else:
                self.pass_time(self.now_ms + 100)

    def pass_on(self, kind: type[object], source: int, target: int) -> None:
        self.deliver(self.pick(kind, source, target))
        self.save_all(target)

    def healed(self) -> None:
        """Heal everything. Require that the quorum commits a new record."""
        self.heal()
        for node_id in self.nodes:
            if self.nodes[node_id].raft is None:
                self.start(node_id)
        self.run(20_000)
        end = self.append(self.leader(), b"alive")
        self.run(2_000)
        assert all(each.high_watermark > end for each in self.nodes.values()), "it does not heal"


def vote_forgotten_in_a_crash() -> None:
    """Let 1 and 3 campaign in epoch 1. 2 votes for 1, loses power, and is asked for its vote by
    3."""
    cluster = Checked()
    cluster.settle()
    for candidate in (1, 3):
        cluster.prompt(candidate)
        cluster.pass_on(VoteRequest, candidate, 2)
        cluster.pass_on(VoteResponse, 2, candidate)
    cluster.pass_on(VoteRequest, 1, 2)
    cluster.pass_on(VoteResponse, 2, 1)
    assert cluster.role(1) is Role.LEADER
    cluster.crash(2)
    cluster.start(2)
    cluster.pass_on(VoteRequest, 3, 2)
    cluster.pass_on(VoteResponse, 2, 3)
    cluster.healed()


def leader_restarted() -> None:
    """Restart a leader that lost a record of its epoch, which its followers have flushed
    (KAFKA-10527)."""
    cluster = Checked()
    cluster.elect(1)
    cluster.append(1, b"fetched, not flushed here")
    for follower in (2, 3):
        letter = next(each for each in cluster.letters if each.target == follower)
        cluster.deliver(letter)
        cluster.flush(follower)
    cluster.crash(1)
    cluster.start(1)
    if cluster.role(1) is Role.LEADER:
        cluster.append(1, b"another at the same offset")
    cluster.healed()


def cut_off_and_back() -> None:
    """R13: cut a node off. When it is back, it must not depose a healthy leader."""
    cluster = Checked()
    cluster.elect(1)
    cluster.run(600)
    cluster.isolate(3)
    cluster.run(20_000)
    cluster.heal()
    cluster.run(5_000)
    assert (cluster.leader(), cluster.core(1).epoch) == (1, 1), "a leader that works was deposed"


def nobody_follows() -> None:
    """Cut a leader off. If it did not resign, its clients would wait for a leader that can commit
    nothing."""
    cluster = Checked()
    cluster.elect(1)
    cluster.run(600)
    cluster.isolate(1)
    cluster.run(5_000)
    assert cluster.role(1) is not Role.LEADER, "a leader that nobody follows leads on"
    cluster.healed()


def late_flush() -> None:
    """R22, ABA: complete a flush after the records that it was requested for were truncated and
    replaced by others. (The log of the shell would not report such a flush as done.)"""
    cluster = Checked()
    cluster.elect(1)
    cluster.append(1, b"old", b"older")
    late = cluster.nodes[1].flushes.popleft()
    cluster.isolate(1)
    cluster.letters.clear()
    cluster.run(10_000)
    leader = cluster.leader()
    (third,) = {2, 3} - {leader}
    cluster.only((third,))
    cluster.append(leader, b"new")
    node = cluster.nodes[1]
    cluster.until(lambda: bool(node.log.truncations))
    for _ in range(20):
        if node.log.end_offset < late.offset:
            cluster.go_on(1, unflushed=1)
    node.core.flushed(cluster.now_ms, late.epoch, late.offset)
    cluster.collect(node)
    cluster.go_on(6, unflushed=1)
    cluster.healed()


def dynamic(voters: int, spares: int, settings: RaftSettings = DYNAMIC) -> tuple[Checked, int]:
    """Return an elected quorum with its voters in the log, and its leader. All nodes, also the
    spares, have caught up."""
    cluster = Checked(voters, settings=settings, spares=spares, dynamic=True)
    cluster.until(lambda: any(cluster.role(each) is Role.LEADER for each in cluster.up()))
    leader = cluster.leader()
    end = cluster.append(leader, b"a") + 1
    cluster.until(lambda: all(each.high_watermark >= end for each in cluster.nodes.values()))
    cluster.run(1_500)
    return cluster, leader


def change_of_a_new_leader() -> None:
    """Replay Ongaro's bug of single-voter changes (raft-dev, July 2015). A leader adds a voter and
    is cut off, and the next leader immediately removes the old one. The two voter sets differ by
    two, so that each may have a majority."""
    cluster, old = dynamic(voters=4, spares=1)
    cluster.only((old, 11))
    cluster.add_voter(old, 11)
    others = [each for each in cluster.voter_ids if each != old]
    cluster.until(lambda: any(cluster.role(each) is Role.LEADER for each in others))
    new = next(each for each in others if cluster.role(each) is Role.LEADER)
    kept, lent = (each for each in others if each != new)
    cluster.only((new, kept))
    cluster.letters = [each for each in cluster.letters if lent not in (each.source, each.target)]
    cluster.remove_voter(new, old)
    cluster.run(8_000)
    cluster.healed()


def joins_without_knowing() -> None:
    """Add voter 11 while it lacks the record that makes it a voter. It gets the records before this
    one, and the leader already counts it."""
    cluster, leader = dynamic(3, 1, replace(DYNAMIC, fetch_max_bytes=1))
    away, third = (each for each in cluster.voter_ids if each != leader)
    cluster.isolate(third)
    cluster.append(leader, b"x")
    cluster.add_voter(leader, 11)
    cluster.go_on(12, unflushed=11, unheard=away)
    cluster.go_on(40, unflushed=11)
    cluster.healed()


def two_changes_at_once() -> None:
    """Let a leader that only two new controllers hear add both as voters, before either change is
    committed. They are three of five voters."""
    cluster, leader = dynamic(voters=3, spares=2)
    cluster.only((leader, 11, 12))
    cluster.add_voter(leader, 11)
    cluster.add_voter(leader, 12)
    cluster.run(8_000)
    cluster.healed()


def change_truncated() -> None:
    """Let an isolated leader add a voter. The record is truncated, and the set before it is in
    effect again."""
    cluster, leader = dynamic(voters=3, spares=1)
    cluster.only((leader,))
    cluster.add_voter(leader, 11)
    cluster.run(8_000)
    cluster.heal()
    cluster.run(8_000)
    sets = {cluster.core(each)._core.voters.ids for each in cluster.up()}
    assert sets == {(1, 2, 3)}, f"after a change that never was the voters are {sorted(sets)}"


def wiped_voter() -> None:
    """R30, KAFKA-12181: let 1 and 2 commit, wipe 2, and let 1 die. 2 and 3 would be a majority
    without the committed records."""
    cluster = Checked()
    cluster.connect_all()
    cluster.elect(1)
    for node_id in cluster.nodes:
        cluster.save_all(node_id)
    cluster.isolate(3)
    cluster.append(1, b"committed by 1 and 2")
    cluster.run(400)
    assert cluster.invariants is not None
    cluster.crash(2)
    cluster.invariants.forget(2)
    cluster.wipe(2)
    cluster.start(2)
    cluster.crash(1)
    cluster.heal()
    cluster.run(20_000)
    cluster.healed()


def log_lost() -> None:
    """Let 1 and 2 commit. 2 loses its log but not its directory id, 1 dies, and 3 is stale."""
    cluster = Checked()
    cluster.connect_all()
    cluster.elect(1)
    cluster.isolate(3)
    cluster.append(1, b"committed by 1 and 2")
    cluster.run(400)
    _lose_log(cluster, 2)
    cluster.crash(1)
    cluster.heal()
    cluster.run(20_000)
    cluster.healed()


def log_lost_and_fetched_again() -> None:
    """Let 2 lose its log after the leader has counted 2. It fetches from the start again."""
    cluster = Checked()
    cluster.connect_all()
    cluster.elect(1)
    cluster.isolate(3)
    cluster.append(1, b"committed by 1 and 2")
    cluster.run(400)
    _lose_log(cluster, 2)
    cluster.append(1, b"only on 1")
    cluster.run(20_000)
    cluster.healed()


def _lose_log(cluster: Checked, node_id: int) -> None:
    assert cluster.invariants is not None
    cluster.crash(node_id)
    cluster.invariants.forget_votes(node_id)
    cluster.lose_log(node_id)
    cluster.start(node_id)
