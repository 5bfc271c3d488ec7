"""Meeting a replica at its address before it becomes a voter: does it answer there, is it the one?

The link that is made for it is the one that it will have as a voter. Whether it stays is for who
knows who votes, when the meeting is over: by then another leader may have made it one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quorate.quorum.node.quorum_links import QuorumLinks
from quorate.quorum.raft.control import Voter
from quorate.quorum.rpc.handshake import Peer
from quorate.quorum.seams import Address, Clock, Timer

MEETING_TIMEOUT_MS = 2000


@dataclass(frozen=True, slots=True)
class _Meeting:
    voter: Voter
    done: Callable[[bool], None]
    timer: Timer


class Meetings:
    def __init__(self, clock: Clock, links: QuorumLinks, over: Callable[[], None]) -> None:
        self._clock = clock
        self._links = links
        self._over = over
        self._meetings: dict[int, _Meeting] = {}

    def meet(self, voter: Voter, address: Address, done: Callable[[bool], None]) -> None:
        """`done` is called once, later; not at all when another meeting with that id is begun."""
        voter_id = voter.voter_id
        forgotten = self._meetings.pop(voter_id, None)
        if forgotten is not None:
            forgotten.timer.cancel()
        self._links.know(voter_id, address)
        timer = self._clock.call_later(MEETING_TIMEOUT_MS, lambda: self._end(voter_id, met=False))
        self._meetings[voter_id] = _Meeting(voter, done, timer)
        channel = self._links.channel(voter_id)
        if channel is not None:
            peer = channel.peer
            self._clock.call_soon(lambda: self.came_up(peer))

    def came_up(self, peer: Peer) -> None:
        meeting = self._meetings.get(peer.node_id)
        if meeting is not None:
            met = peer.hello.directory_id == meeting.voter.voter_directory_id
            self._end(peer.node_id, met=met)

    def _end(self, voter_id: int, *, met: bool) -> None:
        meeting = self._meetings.pop(voter_id)
        meeting.timer.cancel()
        meeting.done(met)
        self._clock.call_soon(self._over)
