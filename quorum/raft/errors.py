"""The errors of the consensus core.

RaftError
├── NotLeader            retriable: ask the leader
├── BatchTooLarge        the caller must write fewer records
├── ElectionFileError    the node must not start
├── GenerationFileError  the node must not start
└── InvariantViolation   the node must stop
"""

from __future__ import annotations

from quorate.quorum.state_in_doubt import StateInDoubt


class RaftError(Exception):
    """The base of these errors. `retriable` is True if the same call may succeed later."""

    retriable = False
    for_operator = False
    """True if the cause is outside of the program. The message tells the operator what to do."""


class NotLeader(RaftError):
    """This node does not lead the quorum. `leader_id` is the known leader, or NO_NODE."""

    retriable = True

    def __init__(self, epoch: int, leader_id: int) -> None:
        known = f"node {leader_id} does" if leader_id >= 0 else "no leader is known, try again"
        super().__init__(f"this node does not lead the quorum in epoch {epoch}: {known}")
        self.epoch = epoch
        self.leader_id = leader_id


class BatchTooLarge(RaftError):
    """The records exceed one batch, so they cannot be written atomically."""

    def __init__(self, size_bytes: int, max_bytes: int) -> None:
        super().__init__(
            f"the records need a batch of {size_bytes} bytes, but a batch of the metadata log may "
            f"have at most {max_bytes} bytes. Write fewer records at a time"
        )


class ElectionFileError(RaftError):
    """The last vote of this node is unknown, so the node could vote twice in an epoch."""

    for_operator = True


class GenerationFileError(RaftError):
    """The generation of the quorum that this node belongs to is unknown."""

    for_operator = True


class InvariantViolation(RaftError, StateInDoubt):
    """A rule that safety depends on is broken. To continue could lose committed records."""
