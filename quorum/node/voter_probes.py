"""Probes of replicas that are to become voters: does the replica answer at its address?

The leader probes a replica before it adds the replica to the voters (KIP-853). A voter that nobody
can reach would count for every majority and acknowledge nothing.

The link that a probe opens is the link that the replica will have as a voter. This module does not
close it. After each probe, the owner closes the links to nodes that are not voters: by then another
leader may have made the replica a voter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quorate.quorum.node.quorum_links import QuorumLinks
from quorate.quorum.raft.control_records import Voter
from quorate.quorum.rpc.hello import Peer
from quorate.quorum.seams import Address, Clock, Timer

PROBE_TIMEOUT_MS = 2000
"""Time, in ms, after which a replica counts as one that does not answer."""


@dataclass(frozen=True, slots=True)
class _Probe:
    voter: Voter
    done: Callable[[bool], None]
    timer: Timer


class VoterProbes:
    """The probes in flight, at most one for each node id. Owned by the node's event loop."""

    def __init__(self, clock: Clock, links: QuorumLinks, ended: Callable[[], None]) -> None:
        """`ended` is called soon after each probe, to close the links that are not needed."""
        self._clock = clock
        self._links = links
        self._ended = ended
        self._probes: dict[int, _Probe] = {}

    def probe(self, voter: Voter, address: Address, done: Callable[[bool], None]) -> None:
        """Connect to `address` and compare the replica there with `voter`.

        `done` is called once, later. It gets True if a node with that id and directory id completes
        the handshake; an open link to `address` counts. It gets False if the node there has another
        directory id, or if no node with that id answers within PROBE_TIMEOUT_MS. If a probe of the
        same id starts before that, or the node stops, `done` is never called."""
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
        """End the probe of the id of `peer`, if there is one. Call this after each handshake."""
        probe = self._probes.get(peer.node_id)
        if probe is not None:
            passed = peer.hello.directory_id == probe.voter.voter_directory_id
            self._end(peer.node_id, passed=passed)

    def close(self) -> None:
        """Cancel all probes, because the node stops. None of them calls `done` or `ended`."""
        for probe in self._probes.values():
            probe.timer.cancel()
        self._probes.clear()

    def _end(self, voter_id: int, *, passed: bool) -> None:
        probe = self._probes.pop(voter_id)
        probe.timer.cancel()
        probe.done(passed)
        self._clock.call_soon(self._ended)
