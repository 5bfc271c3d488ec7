"""Probes of replicas before they become voters."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from quorate.quorum.node.peers.quorum_links import QuorumLinks
from quorate.quorum.node.peers.voter_probes import PROBE_TIMEOUT_MS, VoterProbes
from quorate.quorum.rpc.hello import Peer
from quorate.quorum.seams import Address
from tests.unit.raft.harness import directory, voter
from tests.unit.rpc.kafka.fakes import FakeClock

ADDRESS = Address("c11", 9093)


def peer(number: int = 1) -> Peer:
    hello = SimpleNamespace(directory_id=directory(11, number))
    return cast(Peer, SimpleNamespace(node_id=11, hello=hello))


@dataclass
class Links:
    """The known addresses, and the one channel that is up."""

    known: dict[int, Address] = field(default_factory=dict)
    up: Peer | None = None

    def know(self, voter_id: int, address: Address) -> None:
        self.known[voter_id] = address

    def forget(self, voter_id: int) -> None:
        del self.known[voter_id]

    def channel(self, voter_id: int) -> Any:
        return None if self.up is None else SimpleNamespace(peer=self.up)


class Host:
    """The owner of the probes. It knows the voters and closes the links to all other nodes."""

    def __init__(self, up: Peer | None = None) -> None:
        self.clock = FakeClock()
        self.links = Links(up=up)
        self.voters: set[int] = set()
        self.passed: list[bool] = []
        self.probes = VoterProbes(self.clock, cast(QuorumLinks, self.links), self._prune)

    def _prune(self) -> None:
        for voter_id in [each for each in self.links.known if each not in self.voters]:
            self.links.forget(voter_id)

    def probe(self) -> None:
        self.probes.probe(voter(11), ADDRESS, self.passed.append)


@pytest.mark.parametrize(("number", "passes"), [(1, True), (2, False)])
@pytest.mark.parametrize("already_up", [True, False])
def test_a_probe_passes_if_that_replica_answers(
    number: int, passes: bool, already_up: bool
) -> None:
    host = Host(peer(number) if already_up else None)
    host.probe()
    assert host.passed == [] and host.links.known == {11: ADDRESS}
    if not already_up:
        host.probes.came_up(peer(number))
    host.clock.advance(0)
    assert host.passed == [passes]
    host.clock.advance(0)
    assert host.clock.waiting == 0
    host.probes.came_up(peer(number))
    assert host.passed == [passes]


@pytest.mark.parametrize("became_voter", [True, False])
def test_a_silent_replica_keeps_its_link_only_if_it_is_a_voter_by_now(became_voter: bool) -> None:
    """The leader that probed the replica was deposed, and the next leader made the replica a voter.
    Once, the end of the older probe cut the voter's link, and no leader reached it again."""
    host = Host()
    host.probe()
    if became_voter:
        host.voters.add(11)
    host.clock.advance(PROBE_TIMEOUT_MS)
    host.clock.advance(0)
    assert host.passed == [False]
    assert (11 in host.links.known) is became_voter


def test_another_replica_at_the_address_keeps_no_link() -> None:
    host = Host()
    host.probe()
    host.probes.came_up(peer(2))
    host.clock.advance(0)
    assert host.links.known == {}


def test_a_second_probe_replaces_the_first() -> None:
    host = Host()
    host.probe()
    host.clock.advance(PROBE_TIMEOUT_MS - 1)
    host.probe()
    host.clock.advance(1)
    assert host.passed == []
    host.probes.came_up(peer())
    assert host.passed == [True]


def test_a_node_that_stops_leaves_no_timer_of_a_probe() -> None:
    host = Host()
    host.probe()
    assert host.clock.waiting == 1
    host.probes.close()
    assert host.clock.waiting == 0
    host.clock.advance(PROBE_TIMEOUT_MS)
    assert host.passed == []
