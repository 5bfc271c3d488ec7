"""Raft's record of the leader of an epoch, which is the first record of the epoch in the log."""

from __future__ import annotations

from pathlib import Path

from quorate.quorum.analytics.log.reading import read_batches
from quorate.quorum.analytics.log.seek import batches_from, last_before, passed_over
from quorate.quorum.analytics.log.segments import SEGMENT_NAME, Slice, StoredFile, files_named
from quorate.quorum.log.batches.batch import records_of
from quorate.quorum.metadata.record_text import control_message
from quorate.quorum.raft.control_records import LeaderChangeMessage


def leader_of(directory: Path | str, epoch: int) -> LeaderChangeMessage | None:
    """Return Raft's record of the leader of `epoch`, or None if the log does not hold it."""
    place = None
    for segment in reversed(files_named(directory, SEGMENT_NAME)):
        begins_before = False
        position = last_before(segment, lambda header: header.leader_epoch < epoch)
        for at, header in batches_from(segment, position):
            begins_before |= header.leader_epoch < epoch
            if header.leader_epoch >= epoch:
                place = (segment, at) if header.leader_epoch == epoch else place
                break
        if begins_before:
            break
    return None if place is None else _leader_at(*place)


def _leader_at(segment: StoredFile, position: int) -> LeaderChangeMessage | None:
    size = segment.size_bytes
    piece = Slice(segment.path, position, position + 1, size, may_be_torn=True)
    for header, data, at in read_batches(piece, passed_over):
        for record in records_of(data, at, header) if header.is_control else ():
            message, _ = control_message(record)
            if isinstance(message, LeaderChangeMessage):
                return message
    return None
