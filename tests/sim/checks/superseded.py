"""The controllers of an old quorum that have met the rebuilt one, and the votes that they cast.

A controller that has met its successor while it had no leader votes for no candidate. This ends
when it finds a leader of its own quorum, because that quorum still works
(docs/protocol/rebuilding-a-quorum.md, rule 12). The check sees the handshakes, not the state that
the Raft core derives from them.
"""

from __future__ import annotations

from collections.abc import Sequence

from quorate.quorum.ids import NO_NODE
from quorate.quorum.node.peers.generations import Generations
from quorate.quorum.raft.raft import Raft
from quorate.quorum.raft.states import Follower, Leader
from quorate.quorum.rpc.hello import Hello
from tests.sim.checks.committed_log import Violation
from tests.sim.world.cluster import Machine

Vote = tuple[int, int]
"""An epoch, and the id of the replica that got the vote of a node in it, or NO_NODE."""


class SupersededControllers:
    """The controllers of an old quorum from their start on."""

    def __init__(self, controllers: Sequence[Machine]) -> None:
        self._at_meeting: dict[str, Vote] = {}
        """The votes of the controllers without a leader, when they met the rebuilt quorum."""
        self._rafts: dict[str, Raft] = {}
        for machine in controllers:
            assert machine.process is not None
            core = machine.process.core
            self._rafts[machine.name] = core.replica.raft
            self._watch(machine.name, core.generations)

    def check(self) -> None:
        """Raise Violation if a controller voted after its meeting."""
        for name, before in list(self._at_meeting.items()):
            raft = self._rafts[name]
            now = vote_of(raft)
            if now[1] != NO_NODE and now != before:
                raise Violation(f"{name} met the rebuilt quorum, and then voted in the old one")
            if has_leader(raft):
                del self._at_meeting[name]

    def _watch(self, name: str, generations: Generations) -> None:
        met = generations.met

        def seen(hello: Hello) -> None:
            met(hello)
            if not has_leader(self._rafts[name]):
                self._at_meeting.setdefault(name, vote_of(self._rafts[name]))

        setattr(generations, "met", seen)  # noqa: B010


def vote_of(raft: Raft) -> Vote:
    return raft.epoch, raft.voted_id


def has_leader(raft: Raft) -> bool:
    """Return True if this node leads, or follows a leader that has answered it."""
    state = raft._core.state
    follows = isinstance(state, Follower) and state.has_fetched and not state.leader_gone
    return follows or isinstance(state, Leader)
