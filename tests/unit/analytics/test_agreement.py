"""The agreement of several logs, compared with every outcome of an election and every commit of
small Raft histories."""

from __future__ import annotations

import random
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.quorum.analytics.log.agreement import (
    LogEnd,
    agreement,
    common_end,
    complete,
    decided_end,
)

Log = list[int]
"""The epoch of each record."""


def end_of(log: Log) -> LogEnd:
    starts = tuple(
        (epoch, offset)
        for offset, epoch in enumerate(log)
        if offset == 0 or log[offset - 1] != epoch
    )
    return LogEnd(starts, len(log))


def rank(log: Log) -> tuple[int, int]:
    return (log[-1] if log else -1, len(log))


class Raft:
    """Voters that elect, append and replicate at random, with the committed records noted."""

    def __init__(self, voters: int, chance: random.Random) -> None:
        self.logs: list[Log] = [[] for _ in range(voters)]
        self.majority = voters // 2 + 1
        self.seen = [0] * voters
        self.leader, self.epoch = 0, 0
        self.chance = chance
        self.committed = 0
        self.truth: Log = []

    def step(self) -> None:
        self.chance.choice(
            (self.elect, self.append, self.append, self.copy, self.copy, self.copy)
        )()

    def elect(self) -> None:
        electors = self.chance.sample(range(len(self.logs)), self.majority)
        winner = self.chance.choice(electors)
        if all(rank(self.logs[winner]) >= rank(self.logs[each]) for each in electors):
            self.epoch += 1
            self.leader = winner
            for each in electors:
                self.seen[each] = self.epoch
            self.append()

    def append(self) -> None:
        if self.epoch and self.seen[self.leader] == self.epoch:
            self.logs[self.leader].append(self.epoch)

    def copy(self) -> None:
        """One follower takes one record of the leader, and the leader commits what it may."""
        follower = self.chance.randrange(len(self.logs))
        if follower == self.leader or not self.epoch or self.seen[self.leader] != self.epoch:
            return
        if self.seen[follower] > self.epoch:
            return
        self.seen[follower] = self.epoch
        source, target = self.logs[self.leader], self.logs[follower]
        same = next(
            (at for at, (a, b) in enumerate(zip(source, target, strict=False)) if a != b),
            min(len(source), len(target)),
        )
        del target[same:]
        target.extend(source[same : same + 1])
        for end in range(len(source), self.committed, -1):
            if self.is_held(end) and source[end - 1] == self.epoch:
                self.committed, self.truth = end, source[:end]
                return

    def is_held(self, end: int) -> bool:
        """Return True if a majority has the leader's log up to `end`."""
        source = self.logs[self.leader]
        return sum(log[:end] == source[:end] for log in self.logs) >= self.majority


@settings(max_examples=80)
@given(st.integers(1, 5), st.integers(0, 60), st.randoms(use_true_random=False))
def test_a_complete_log_has_every_committed_record(
    voters: int, steps: int, chance: random.Random
) -> None:
    raft = Raft(voters, chance)
    for _ in range(steps):
        raft.step()
    for count in range(1, voters + 1):
        for given_logs in combinations(raft.logs, count):
            log = given_logs[complete([rank(each) for each in given_logs], voters)]
            if count > voters - raft.majority:
                assert log[: raft.committed] == raft.truth
            else:
                assert rank(log) == max(map(rank, given_logs))


@settings(max_examples=80)
@given(st.integers(1, 5), st.integers(0, 60), st.randoms(use_true_random=False))
def test_what_is_decided_is_in_the_log_of_every_later_leader(
    voters: int, steps: int, chance: random.Random
) -> None:
    raft = Raft(voters, chance)
    for _ in range(steps):
        raft.step()
    decided = decided_end([end_of(log) for log in raft.logs], voters)
    assert decided is not None and decided >= raft.committed
    kept = raft.logs[complete([rank(each) for each in raft.logs], voters)][:decided]
    for _ in range(60):
        raft.step()
        if raft.epoch and raft.logs[raft.leader] and raft.seen[raft.leader] == raft.epoch:
            assert raft.logs[raft.leader][:decided] == kept


class Changing(Raft):
    """The same with changes of the voters, one node at a time (KIP-853). Each node goes by the last
    set in its own log."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(5, chance)
        self.changes: dict[tuple[int, int], frozenset[int]] = {}
        """The new set by the epoch and the offset of its record."""

    def sets_of(self, node: int) -> list[frozenset[int]]:
        """Return all sets in the log of a node. The last one is in effect."""
        held = enumerate(self.logs[node])
        return [
            frozenset({0}),
            *(self.changes[each] for at, epoch in held if (each := (epoch, at)) in self.changes),
        ]

    def step(self) -> None:
        self.chance.choice((self.elect, self.append, self.change, *[self.copy] * 6))()

    def elect(self) -> None:
        candidate = self.chance.randrange(len(self.logs))
        voters = sorted(self.sets_of(candidate)[-1])
        electors = self.chance.sample(voters, len(voters) // 2 + 1)
        if candidate in voters and all(
            rank(self.logs[candidate]) >= rank(self.logs[each]) for each in electors
        ):
            self.epoch += 1
            self.leader = candidate
            for each in {candidate, *electors}:
                self.seen[each] = self.epoch
            self.append()

    def change(self) -> None:
        leader, log = self.leader, self.logs[self.leader]
        if (
            not self.epoch
            or self.seen[leader] != self.epoch
            or log[self.committed - 1] != self.epoch
        ):
            return
        if any((epoch, at) in self.changes for at, epoch in enumerate(log) if at >= self.committed):
            return
        now = self.sets_of(leader)[-1]
        changed = now ^ {self.chance.choice([each for each in range(5) if each != leader])}
        self.changes[self.epoch, len(log)] = changed
        self.append()

    def is_held(self, end: int) -> bool:
        source = self.logs[self.leader]
        voters = self.sets_of(self.leader)[-1]
        held = sum(self.logs[each][:end] == source[:end] for each in voters)
        return held > len(voters) // 2


@pytest.mark.parametrize("seeds", [range(first, first + 500) for first in (1_500, 4_000)], ids=str)
def test_both_sets_count_while_a_change_of_the_voters_may_be_uncommitted(seeds: range) -> None:
    """Each range has a seed for which the last set alone is wrong: a voter that lacks it leads."""
    for seed in seeds:
        raft = Changing(random.Random(seed))
        for _ in range(raft.chance.randrange(120)):
            raft.step()
        newest = max(range(5), key=lambda node: rank(raft.logs[node]))
        logs = {node: end_of(log) for node, log in enumerate(raft.logs)}
        facts = agreement(logs, raft.sets_of(newest)[-2:])
        assert facts.complete is not None
        best = raft.logs[facts.complete]
        assert best[: raft.committed] == raft.truth
        assert facts.decided_end >= raft.committed or not facts.rest_is_known
        for _ in range(60):
            raft.step()
            if raft.epoch and raft.seen[raft.leader] == raft.epoch:
                assert raft.logs[raft.leader][: facts.decided_end] == best[: facts.decided_end]


def test_without_every_voters_log_nothing_is_decided() -> None:
    log = end_of([1, 1, 2])
    assert decided_end([log, log], 3) is None
    assert decided_end([log, log, log], 3) == 3
    assert decided_end([], 0) is None


def test_the_end_of_what_two_logs_have_in_common() -> None:
    """The second follower kept two records of epoch 1 that the leader of epoch 2 never had."""
    leader, follower = end_of([1, 1, 2, 2]), end_of([1, 1, 1, 1])
    assert common_end(leader, follower) == common_end(follower, leader) == 2
    assert common_end(leader, end_of([3])) == 0
    assert common_end(leader, leader) == 4
