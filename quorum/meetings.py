"""Meeting a replica at its address before it becomes a voter: does it answer there, is it the one?

The link that is made for it is the one that it will have as a voter; when the meeting fails it is
given up again.
"""

from __future__ import annotations

from collections.abc import Callable

from quorate.quorum.quorum_links import QuorumLinks
from quorate.quorum.raft.control import Voter
from quorate.quorum.rpc.handshake import Peer
from quorate.quorum.seams import Address, Clock

MEETING_TIMEOUT_MS = 2000


class Meetings:
    def __init__(self, clock: Clock, links: QuorumLinks) -> None:
        self._clock = clock
        self._links = links
        self._waiting: dict[int, tuple[Voter, Callable[[bool], None]]] = {}

    def meet(self, voter: Voter, address: Address, done: Callable[[bool], None]) -> None:
        """`done` is called exactly once, later."""
        self._links.know(voter.voter_id, address)
        self._waiting[voter.voter_id] = (voter, done)
        channel = self._links.channel(voter.voter_id)
        if channel is not None:
            peer = channel.peer
            self._clock.call_soon(lambda: self.came_up(peer))
        self._clock.call_later(MEETING_TIMEOUT_MS, lambda: self._missed(voter, done))

    def came_up(self, peer: Peer) -> None:
        waiting = self._waiting.pop(peer.node_id, None)
        if waiting is not None:
            voter, done = waiting
            done(peer.hello.directory_id == voter.voter_directory_id)

    def _missed(self, voter: Voter, done: Callable[[bool], None]) -> None:
        if self._waiting.get(voter.voter_id) == (voter, done):
            del self._waiting[voter.voter_id]
            self._links.forget(voter.voter_id)
            done(False)
