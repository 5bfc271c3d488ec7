"""Probes of replicas that are to become voters, which show that a replica answers at its address.

The leader probes a replica before it adds the replica to the voters (KIP-853). A voter that no node
can reach would count for every majority and acknowledge nothing.

A probe leaves its link open, because the leader needs this link if the replica becomes a voter. The
owner of the probes closes links after each probe, because only the owner knows the voters: another
leader may have added the replica meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quorate.quorum.node.peers.quorum_links import QuorumLinks
from quorate.quorum.raft.control_records import Voter
from quorate.quorum.rpc.hello import Peer
from quorate.quorum.seams import Address, Clock, Timer

PROBE_TIMEOUT_MS = 2000
"""Time, in ms, after which a probe without an answer fails."""


@dataclass(frozen=True, slots=True)
class _Probe:
    voter: Voter
    done: Callable[[bool], None]
    timer: Timer


class VoterProbes:
    """The probes in flight, at most one for each node id. The node's event loop owns the object."""

    def __init__(self, clock: Clock, links: QuorumLinks, ended: Callable[[], None]) -> None:
        """Probe over `links`. After each call of a probe's `done`, `ended` is called in the next
        loop iteration. The owner of the probes then closes the links that it does not need."""
        self._clock = clock
        self._links = links
        self._ended = ended
        self._probes: dict[int, _Probe] = {}

    def probe(self, voter: Voter, address: Address, done: Callable[[bool], None]) -> None:
        """Connect to `address` and compare the replica there with `voter`.

        If a link of this id to `address` is open, its completed handshake gives the result. A link
        of this id to another address is closed.

        `done` is called at most once, in a later loop iteration:

        - with True if the node there has the voter's id and directory id.
        - with False if it has another directory id, or if no node with the voter's id completes the
          handshake within PROBE_TIMEOUT_MS.
        - never, if another probe of the same id starts first, or `close` is called."""
        voter_id = voter.voter_id
        replaced = self._probes.pop(voter_id, None)
        if replaced is not None:
            replaced.timer.cancel()
        self._links.know(voter_id, address)
        timer = self._clock.call_later(PROBE_TIMEOUT_MS, lambda: self._end(voter_id, passed=False))
        self._probes[voter_id] = _Probe(voter, done, timer)
        channel = self._links.channel(voter_id)
        if channel is not None:
            peer = channel.peer
            self._clock.call_soon(lambda: self.came_up(peer))

    def came_up(self, peer: Peer) -> None:
        """End the probe of the node `peer`, which has completed the handshake of a link of `links`.

        Do nothing if no such probe is in flight. Call this after each such handshake: without it
        the probe of a new link fails after PROBE_TIMEOUT_MS."""
        probe = self._probes.get(peer.node_id)
        if probe is not None:
            passed = peer.hello.directory_id == probe.voter.voter_directory_id
            self._end(peer.node_id, passed=passed)

    def close(self) -> None:
        """Cancel all probes, because the node stops. They call neither `done` nor `ended`."""
        for probe in self._probes.values():
            probe.timer.cancel()
        self._probes.clear()

    def _end(self, voter_id: int, *, passed: bool) -> None:
        probe = self._probes.pop(voter_id)
        probe.timer.cancel()
        probe.done(passed)
        self._clock.call_soon(self._ended)
