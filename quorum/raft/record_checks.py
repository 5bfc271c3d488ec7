"""The checks of fetched records before a follower appends them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from quorate.quorum.clipped import clipped
from quorate.quorum.log.batches.batch import Placed, batches, records_of
from quorate.quorum.log.files.errors import CorruptBatch
from quorate.quorum.raft.control_records import decode_control
from quorate.quorum.raft.core import Core
from quorate.quorum.seams import Buffer


class CheckedRecords(NamedTuple):
    """The result of the check: the position and the header of each batch, for the append, and what
    `FollowedBatches.check` has returned."""

    placed: Placed
    checked: Sequence[Any]


def check_records(core: Core, data: Buffer) -> CheckedRecords:
    """Check the batches in `data`.

    Raise CorruptBatch if a batch is damaged or has a later epoch than its leader, or if no node
    could replay it. An unreadable batch would stop every node that replays it after its commit. The
    log itself checks the order of offsets and epochs.
    """
    view = memoryview(data)
    placed = list(batches(view))
    epoch, check = core.epoch, core.followed.check
    checked = []
    for position, header in placed:
        if header.leader_epoch > epoch:
            raise CorruptBatch(
                f"batch at offset {header.base_offset} has epoch {header.leader_epoch}, but its "
                f"leader leads epoch {epoch}"
            )
        try:
            if header.is_control:
                records = records_of(view, position, header)
                for offset, record in enumerate(records, header.base_offset):
                    if record.offset != offset:  # the history of voters needs rising offsets
                        raise CorruptBatch(f"record {record.offset} is in the place of {offset}")
                    decode_control(record.key, record.value)
            else:
                checked.append(check(view, position, header))
        except Exception as error:  # reading changes nothing: the data is at fault
            reason = clipped(f"{type(error).__name__}: {error}")
            message = f"batch at offset {header.base_offset} cannot be read: {reason}"
            raise CorruptBatch(message) from error
    return CheckedRecords(placed, checked)
