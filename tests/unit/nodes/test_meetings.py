"""Meeting a replica before it becomes a voter."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from quorate.quorum.node.meetings import MEETING_TIMEOUT_MS, Meetings
from quorate.quorum.node.quorum_links import QuorumLinks
from quorate.quorum.rpc.handshake import Peer
from quorate.quorum.seams import Address
from tests.unit.kafka.fakes import FakeClock
from tests.unit.raft.harness import directory, voter

ADDRESS = Address("c11", 9093)


def peer(number: int = 1) -> Peer:
    hello = SimpleNamespace(directory_id=directory(11, number))
    return cast(Peer, SimpleNamespace(node_id=11, hello=hello))


@dataclass
class Links:
    """Who is known, and the one channel that is up."""

    known: dict[int, Address] = field(default_factory=dict)
    up: Peer | None = None

    def know(self, voter_id: int, address: Address) -> None:
        self.known[voter_id] = address

    def forget(self, voter_id: int) -> None:
        del self.known[voter_id]

    def channel(self, voter_id: int) -> Any:
        return None if self.up is None else SimpleNamespace(peer=self.up)


class Host:
    """Whoever knows who votes: it gives up the links that it does not need."""

    def __init__(self, up: Peer | None = None) -> None:
        self.clock = FakeClock()
        self.links = Links(up=up)
        self.voters: set[int] = set()
        self.told: list[bool] = []
        self.meetings = Meetings(self.clock, cast(QuorumLinks, self.links), self._prune)

    def _prune(self) -> None:
        for voter_id in [each for each in self.links.known if each not in self.voters]:
            self.links.forget(voter_id)

    def meet(self) -> None:
        self.meetings.meet(voter(11), ADDRESS, self.told.append)


@pytest.mark.parametrize(("number", "met"), [(1, True), (2, False)])
@pytest.mark.parametrize("already_up", [True, False])
def test_it_is_met_when_it_answers_and_is_that_replica(
    number: int, met: bool, already_up: bool
) -> None:
    host = Host(peer(number) if already_up else None)
    host.meet()
    assert host.told == [] and host.links.known == {11: ADDRESS}
    if not already_up:
        host.meetings.came_up(peer(number))
    host.clock.advance(0)
    assert host.told == [met]
    host.clock.advance(0)
    assert host.clock.waiting == 0
    host.meetings.came_up(peer(number))
    assert host.told == [met]


@pytest.mark.parametrize("became_voter", [True, False])
def test_who_does_not_answer_keeps_its_link_only_if_it_votes_by_now(became_voter: bool) -> None:
    """The leader that wanted to meet it was deposed, the next one made it a voter: its link was cut
    when the meeting of before had failed, and it was never asked for its vote again."""
    host = Host()
    host.meet()
    if became_voter:
        host.voters.add(11)
    host.clock.advance(MEETING_TIMEOUT_MS)
    host.clock.advance(0)
    assert host.told == [False]
    assert (11 in host.links.known) is became_voter


def test_who_turned_out_to_be_another_replica_keeps_no_link() -> None:
    host = Host()
    host.meet()
    host.meetings.came_up(peer(2))
    host.clock.advance(0)
    assert host.links.known == {}


def test_a_meeting_that_is_begun_anew_ends_once() -> None:
    host = Host()
    host.meet()
    host.clock.advance(MEETING_TIMEOUT_MS - 1)
    host.meet()
    host.clock.advance(1)
    assert host.told == []
    host.meetings.came_up(peer())
    assert host.told == [True]
