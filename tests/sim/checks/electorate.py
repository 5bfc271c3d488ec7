"""The voter sets of all logs, and the controllers that the quorum can spare.

A directory that is wiped never votes again, because its key is lost. An administrator of the quorum
wipes and removes voters. A majority of live voters must be left in every set that some log may
hold. Otherwise the quorum is lost, and only force-voters helps. A change without an answer may
still happen, so it counts both as happened and as not happened.

A controller whose disk lost records is silent: it does not vote until it has caught up with a
leader. The others must be able to elect a leader without it. A controller whose disk has lied may
be silent after its next start.
"""

from __future__ import annotations

from random import Random

from quorate.quorum.ids import NO_NODE, EpochOffset, ReplicaKey
from quorate.quorum.raft.voter_history import QuorumVoters, key_of
from tests.sim.checks.quorum_history import Voting
from tests.sim.world.cluster import Machine, Process, SimCluster
from tests.sim.world.shape import Quorum

Voters = frozenset[ReplicaKey]


class Electorate:
    def __init__(self, cluster: SimCluster) -> None:
        self.lost: dict[ReplicaKey, None] = {}
        self.unsettled_adds: dict[ReplicaKey, None] = {}
        self.unsettled_removals: dict[ReplicaKey, None] = {}
        self._cluster = cluster
        self._of_dead: dict[str, tuple[Voters, ...]] = {}
        self._died_silent: dict[str, bool] = {}

    def remember(self, machine: Machine, process: Process) -> None:
        """Record the voter sets in the log of a process that is about to end, and whether it is
        silent."""
        self._of_dead[machine.name] = self._sets_of(process)
        self._died_silent[machine.name] = process.core.replica.raft.catching_up

    def may_wipe(self, machine: Machine) -> bool:
        if self._cluster.shape.quorum is not Quorum.DYNAMIC or self.unsettled_removals:
            return False
        if self._cluster.shape.auto_join:
            self.unsettled_adds[machine.key] = None
        return self._can_elect_without(machine.key)

    def others_have(self, machine: Machine) -> bool:
        """Return True if this controller may lose all that it has, because the others have it.

        - All other controllers run, and have flushed every record that this one may have
          acknowledged.
        - They know the leader of its epoch, so no voter asks again for the vote that it may have
          given.
        - It is not the only voter, also at no earlier offset, where its log may end after the loss.
          A sole voter asks no other voter.
        - The others can elect a leader if this controller is silent afterwards."""
        own = machine.process
        if own is None or frozenset((machine.key,)) in (*self._sets(), *self._sets_before(own)):
            return False
        if not self._can_elect_without(machine.key):
            return False
        others = [each.process for each in self._cluster.controllers if each is not machine]
        return all(
            each is not None and _flushed(each) >= _flushed(own) and _knows_leader(each, own)
            for each in others
        )

    def wiped(self, key: ReplicaKey) -> None:
        self.lost[key] = None

    def may_add(self, machine: Machine) -> bool:
        """Return True if the voters can elect a leader after this controller has joined them.

        The leader refuses a controller that catches up, but it learns of that only from the first
        fetch after the loss (seed 4401)."""
        gone = self._gone()
        joined = [voters | {machine.key} for voters in self._sets()]
        return all(_has_majority(voters, voters - gone) for voters in joined)

    def may_remove(self, key: ReplicaKey) -> bool:
        """Return True if this voter is lost, or if no voter is lost, and the others can elect a
        leader."""
        if key not in self.lost and self.lost:
            return False
        gone = self._gone()
        left = [voters - {key} for voters in self._sets()]
        return all(_has_majority(voters, voters - gone) for voters in left if voters)

    def is_alone(self, machine: Machine) -> bool:
        """Return True if the log of a dead machine may name it as the only voter."""
        return frozenset((machine.key,)) in self._of_dead.get(machine.name, ())

    def majority(self, random: Random) -> list[Machine]:
        """Return random controllers that can elect a leader with the voter set of every log. If
        necessary, return all controllers."""
        controllers = list(self._cluster.controllers)
        random.shuffle(controllers)
        sets, silent = self._sets(), self._silent()
        for count in range(1, len(controllers)):
            living = frozenset(each.key for each in controllers[:count]) - silent
            if all(_has_majority(voters, voters & living) for voters in sets):
                return controllers[:count]
        return controllers

    def is_silent(self, machine: Machine) -> bool:
        """Return True if a controller does not vote, or may find at its next start that it must
        not vote, before it has caught up."""
        if machine.scarred or machine.lying or (machine.process is None and machine.lost_metadata):
            return True
        if machine.process is not None:
            return machine.process.core.replica.raft.catching_up
        return self._died_silent.get(machine.name, False)

    def may_be_silent(self, machine: Machine) -> bool:
        """Return True if the others can elect a leader while this controller is silent."""
        return not machine.may_fail and self._can_elect_without(machine.key)

    def _silent(self) -> Voters:
        return frozenset(each.key for each in self._cluster.controllers if self.is_silent(each))

    def _gone(self) -> Voters:
        return frozenset(self.lost) | self._silent()

    def _can_elect_without(self, key: ReplicaKey) -> bool:
        gone = self._gone() | {key}
        return all(_has_majority(voters, voters - gone) for voters in self._sets())

    def _sets(self) -> list[Voters]:
        """Return the voter sets that may be in effect, with and without each change that may still
        be carried out."""
        sets: dict[Voters, None] = {}
        for machine in self._cluster.controllers:
            if machine.process is not None:
                found = self._sets_of(machine.process)
            else:
                found = self._of_dead.get(machine.name, ())
            sets.update(dict.fromkeys(found))
        for key in self.unsettled_adds:
            sets.update(dict.fromkeys([voters | {key} for voters in sets]))
        for key in self.unsettled_removals:
            sets.update(dict.fromkeys([voters - {key} for voters in sets]))
        return [each for each in sets if each]

    def _sets_of(self, process: Process) -> tuple[Voters, ...]:
        core = process.core
        ends = core.replica.raft.high_watermark, core.end_offset
        return tuple(self._voters(core.replica.raft.voters_at(each)) for each in ends)

    def _sets_before(self, process: Process) -> tuple[Voters, ...]:
        core = process.core
        offsets = range(core.log.start_offset, core.end_offset)
        return tuple(self._voters(core.replica.raft.voters_at(each)) for each in offsets)

    def _voters(self, quorum: QuorumVoters) -> Voters:
        if quorum.kraft_version:
            return frozenset(key_of(each) for each in quorum.voters)
        if self._cluster.shape.quorum is Quorum.DYNAMIC:
            return frozenset()  # a spare that knows no voter yet
        return self.configured().voters

    def configured(self) -> Voting:
        """Return the voter set of the formatted directories."""
        shape = self._cluster.shape
        voters = frozenset(e.key for e in self._cluster.controllers if e.id in shape.voter_ids)
        return Voting(int(shape.quorum is Quorum.DYNAMIC), voters)

    def voting(self) -> Voting:
        """Return the voter set of the running controller with the highest high watermark."""
        running = [each.process for each in self._cluster.controllers if each.process is not None]
        rafts = [process.core.replica.raft for process in running]
        raft = max(rafts, key=lambda each: each.high_watermark)
        quorum = raft.voters_at(raft.high_watermark)
        return Voting(quorum.kraft_version, self._voters(quorum))


def _flushed(process: Process) -> EpochOffset:
    log = process.core.log
    return EpochOffset(log.last_epoch, log.flushed_offset)


def _knows_leader(process: Process, own: Process) -> bool:
    raft = process.core.replica.raft
    return raft.epoch >= own.core.replica.raft.epoch and raft.leader_id != NO_NODE


def _has_majority(voters: Voters, living: Voters) -> bool:
    return 2 * len(living) > len(voters)
