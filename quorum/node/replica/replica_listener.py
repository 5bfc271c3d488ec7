"""The interfaces between a metadata replica and its owner, the node core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from quorate.quorum.metadata.snapshot_file import SnapshotContents
from quorate.quorum.raft import effects
from quorate.quorum.raft.control_records import Voter
from quorate.quorum.raft.messages import Request, Response

VotersDone = Callable[[int, str], None]
"""A callback that receives the result of a voter change: Kafka's error code and a message. The
message is empty on success."""


class VoterLinks(Protocol):
    """Sends Raft requests to voters."""

    def send(
        self,
        voter_id: int,
        request: Request,
        timeout_ms: int,
        done: Callable[[Response | None], None],
    ) -> None:
        """Send `request`. Call `done` once, later, with the response, or with None if none came
        within `timeout_ms` or there is no link."""


class ReplicaListener(Protocol):
    """The owner of a replica, which gets the effects that do not concern the log. The replica calls
    it on the event loop, in the order of the effects."""

    def on_appended(self, last_offset: int, count: int) -> None:
        """This node appended `count` records as the leader, up to `last_offset`."""

    def on_role(self, effect: effects.RoleChanged) -> None:
        """The role, the epoch or the leader has changed."""

    def on_committed(self, high_watermark: int) -> None:
        """The high watermark has risen."""

    def on_loaded(self, contents: SnapshotContents) -> None:
        """A snapshot has replaced the log and the state before it."""

    def on_voters(self, effect: effects.VotersChanged) -> None:
        """The voter set has changed."""

    def on_leader_found(self, effect: effects.LeaderFound) -> None:
        """Another node has named the leader and its address."""

    def probe_voter(self, voter: Voter, done: Callable[[bool], None]) -> None:
        """Connect to the address of `voter`. Call `done` later, at most once: True if that replica
        answers."""

    def on_resigned(self) -> None:
        """The resignation of this node is complete, so it can stop."""

    def on_failed(self, error: BaseException) -> None:
        """The disk has failed. The replica is closed. Called at most once."""
