"""What goes wrong in the consensus core.

RaftError
├── NotLeader            (retriable: ask the leader)
├── BatchTooLarge        the caller must split
├── ElectionFileError    the node must not start
├── GenerationFileError  the node must not start
└── InvariantViolation   the node must stop
"""

from __future__ import annotations

from quorate.quorum.state_in_doubt import StateInDoubt


class RaftError(Exception):
    retriable = False
    for_operator = False
    """The message says what to do: nothing is wrong with the program."""


class NotLeader(RaftError):
    """This node does not lead; `leader_id` does, or NO_NODE when nobody is known to."""

    retriable = True

    def __init__(self, epoch: int, leader_id: int) -> None:
        known = f"node {leader_id} does" if leader_id >= 0 else "no leader is known"
        super().__init__(f"this node does not lead the quorum in epoch {epoch}: {known}")
        self.epoch = epoch
        self.leader_id = leader_id


class BatchTooLarge(RaftError):
    """The records do not fit one batch, so they could not be written atomically."""

    def __init__(self, size_bytes: int, max_bytes: int) -> None:
        super().__init__(
            f"the records make a batch of {size_bytes} bytes, more than the {max_bytes} "
            "that a batch of the metadata log may have; write fewer records at a time"
        )


class ElectionFileError(RaftError):
    """The vote that this node once gave cannot be known for sure: it could vote twice."""

    for_operator = True


class GenerationFileError(RaftError):
    """It is not known which quorum, from before or after a rebuild, this node belongs to."""

    for_operator = True


class InvariantViolation(RaftError, StateInDoubt):
    """A rule that safety rests on is broken: going on could lose committed records."""
