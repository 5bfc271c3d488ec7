"""Checks that appended batches continue the log: their offsets and their leader epochs."""

from __future__ import annotations

from quorate.quorum.log.batches.batch import Placed
from quorate.quorum.log.batches.batch_file import MAX_RELATIVE_OFFSET
from quorate.quorum.log.files.errors import BrokenChain


def require_continuation(
    directory: str,
    end_offset: int,
    latest_epoch: int,
    placed: Placed,
    *,
    gaps: bool = False,
) -> bool:
    """Raise BrokenChain unless these batches, at least one, continue the log in `directory`.

    The log ends at `end_offset` in `latest_epoch`. A leader assigns both numbers, and a follower
    appends what its leader sent. The error therefore means a defect of the caller or a divergence
    of the two logs. Raise BrokenChain also if the batches reach further from the log end than the
    index of a segment can, because an append may begin a segment there.

    With `gaps`, offsets may be missing before each batch. Return True if some are."""
    expected, epoch, found = end_offset, latest_epoch, False
    for _, header in placed:
        if header.base_offset != expected and gaps and header.base_offset > expected:
            found = True
        elif header.base_offset != expected:
            raise BrokenChain(
                f"{directory}: batch at offset {header.base_offset} cannot follow the log end"
                f" {expected}"
            )
        if header.leader_epoch < epoch:
            raise BrokenChain(
                f"{directory}: batch at offset {expected} has leader epoch {header.leader_epoch},"
                f" which is lower than the log's leader epoch {epoch}"
            )
        expected, epoch = header.next_offset, header.leader_epoch
    if expected - 1 - end_offset > MAX_RELATIVE_OFFSET:
        raise BrokenChain(
            f"{directory}: one append reaches from the log end {end_offset} to offset"
            f" {expected - 1}: a segment holds at most {MAX_RELATIVE_OFFSET + 1} offsets"
        )
    return found
