"""The answers that controllers get from controllers, altered on their way.

Voters ask each other for votes, announce and end epochs, and fetch the metadata log and snapshots.
They register at the leader. An input names the kind of answer, and holds the seed of the change. A
controller may close the link or lose an election. None may stop, and the quorum must serve again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import msgpack  # type: ignore[import-untyped]

from quorate.quorum.controller.state.messages import ControllerRegistrationResponse
from quorate.quorum.raft import messages as raft
from quorate.quorum.rpc.messages import BY_CLASS
from quorate.quorum.seams import Wire
from tests.fuzz import messages
from tests.fuzz.target import IncrementalWork, Target
from tests.ports.node import PortCluster, running_quorum
from tests.sim.world.cluster import Machine
from tests.sim.world.link import SimLink
from tests.sim.world.shape import Quorum

WAIT_S = 5.0
"""The longest wait for the answer to alter: an election takes one or two seconds."""
STEP_S, SETTLE_S = 0.02, 30.0
SEED_BYTES = 8
FETCHED = BY_CLASS[raft.FetchResponse].number
VOTED = BY_CLASS[raft.VoteResponse].number
GRANTED_AT = 5
"""The place of `granted` in the row of a VoteResponse."""
SNAPSHOT_AT = 8
"""The place of `snapshot` in the row of a FetchResponse."""
SNAPSHOT = [1, 1 << 40]
"""The epoch and the end offset of a snapshot that no leader has."""


class ControllerAnswers(Target):
    """Three controllers and a broker. One answer between controllers is altered for each input."""

    def __init__(self, node: PortCluster) -> None:
        self._node = node
        self._cluster = node.cluster
        self._wanted = FETCHED
        self._chance: random.Random | None = None
        self._altered: dict[int, int] = {}
        """The number of answers of each kind that were altered."""
        self._points_to_snapshot = False
        self._names = {each.name for each in self._cluster.controllers}
        self._cluster.network.alter = self._alter
        self.steps = IncrementalWork(node.loop)

    @property
    def altered(self) -> dict[type, int]:
        """Return the number of answers of each class that were altered."""
        return {cls: self._altered.get(BY_CLASS[cls].number, 0) for cls in PROVOKED}

    def feed(self, data: bytes) -> None:
        if not data:
            return
        cls = tuple(PROVOKED)[data[0] % len(PROVOKED)]
        self._wanted = BY_CLASS[cls].number
        self._chance = random.Random(data[1:])
        self._run_until(lambda: len(self._cluster.active_controllers()) == 1)
        PROVOKED[cls](self)
        self._run_until(lambda: self._chance is None)
        self._chance = None
        self._points_to_snapshot = False
        self._node.run(STEP_S)
        for each in self._cluster.controllers:
            if each.process is None:
                self._cluster.start(each)

    def _run_until(self, condition: Callable[[], bool]) -> None:
        until_s = self._node.loop.time() + WAIT_S
        while not condition() and self._node.loop.time() < until_s:
            self._node.run(STEP_S)

    def _leader(self) -> Machine | None:
        return next(iter(self._cluster.active_controllers()), None)

    def wait(self) -> None:
        """Provoke nothing: voters fetch all the time."""

    def name_a_snapshot(self) -> None:
        """Let a leader's answer to a Fetch name a snapshot, which the follower then fetches."""
        self._points_to_snapshot = True

    def elect(self) -> None:
        """Kill the leader, so that the others elect one."""
        if (leader := self._leader()) is not None:
            self._cluster.kill(leader)

    def resign(self) -> None:
        """Stop the leader as SIGTERM does, so that it ends its epoch."""
        leader = self._leader()
        if leader is not None and not leader.stopping:
            self._cluster.stop(leader)

    def restart_a_follower(self) -> None:
        """Kill a follower and start it, so that it registers."""
        leader = self._leader()
        for each in self._cluster.controllers:
            if each is not leader and each.process is not None and not each.stopping:
                self._cluster.kill(each)
                self._cluster.start(each)
                return

    def report_another_version(self) -> None:
        """Let a follower support another kraft.version, which it then reports to the leader."""
        leader = self._leader()
        for each in self._cluster.controllers:
            if each is leader or each.process is None or each.stopping:
                continue
            core = each.process.core.raft._core
            assert core.own_voter is not None
            known = core.own_voter.k_raft_version_feature
            other = replace(known, max_supported_version=3 - known.max_supported_version)
            core.own_voter = replace(core.own_voter, k_raft_version_feature=other)
            return

    def _alter(self, link: SimLink, frame: bytes) -> bytes:
        between = link.asks and link.wire is Wire.NODE and link.host.name in self._names
        if not between or self._chance is None:
            return frame
        rows = msgpack.unpackb(frame)
        for index, row in enumerate(rows):
            if self._points_to_snapshot and row[0] == FETCHED and len(row) > SNAPSHOT_AT:
                self._points_to_snapshot = False
                row[SNAPSHOT_AT] = SNAPSHOT
                return messages.packed(rows)
            if row[0] == self._wanted and (changed := damaged(row, self._chance)) != row:
                self._chance = None
                self._altered[self._wanted] = self._altered.get(self._wanted, 0) + 1
                rows[index] = changed
                return messages.packed(rows)
        return frame

    def systematic(self) -> Iterator[bytes]:
        for number in range(len(PROVOKED)):
            for seed in range(3):
                yield bytes([number]) + seed.to_bytes(SEED_BYTES, "big")

    def drawn(self, chance: random.Random) -> bytes:
        return bytes([chance.randrange(len(PROVOKED))]) + chance.randbytes(SEED_BYTES)

    def settle(self) -> None:
        self._node.run(SETTLE_S)

    def check(self) -> None:
        self._node.until(self._serves)

    def _serves(self) -> bool:
        """Return True if one controller leads, and all have the same log and a broker that runs."""
        processes = [each.process for each in self._cluster.controllers]
        if len(self._cluster.active_controllers()) != 1 or None in processes:
            return False
        ends = {each.core.log.end_offset for each in processes if each is not None}
        return len(ends) == 1 and self._node._serves()


PROVOKED: dict[type, Callable[[ControllerAnswers], None]] = {
    raft.FetchResponse: ControllerAnswers.wait,
    raft.FetchSnapshotResponse: ControllerAnswers.name_a_snapshot,
    raft.VoteResponse: ControllerAnswers.elect,
    raft.BeginQuorumEpochResponse: ControllerAnswers.elect,
    raft.EndQuorumEpochResponse: ControllerAnswers.resign,
    raft.UpdateVoterResponse: ControllerAnswers.report_another_version,
    ControllerRegistrationResponse: ControllerAnswers.restart_a_follower,
}
"""The answers that are altered, and how each one is provoked."""


def damaged(row: messages.Row, chance: random.Random) -> messages.Row:
    """Return the row with a part at its edge.

    A vote that was refused is never changed into one that was granted: an honest candidate obeys
    it, and two leaders of one epoch break every promise of Raft."""
    path = chance.choice(list(messages.paths(row)))
    changed: messages.Row = messages.with_part(
        row, path, chance.choice(messages.edges(messages.at(row, path)))
    )
    forged = row[0] == VOTED and changed[GRANTED_AT] and not row[GRANTED_AT]
    return row if forged else changed


@contextmanager
def controller_answers() -> Iterator[Target]:
    with running_quorum(Quorum.DYNAMIC, 3, 1, {}) as node:
        yield ControllerAnswers(node)
