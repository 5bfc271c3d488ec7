"""Raft's records in a log: the leader of an epoch, and the voters that may elect the next one.

A set of voters is in effect as soon as its record is appended (KIP-853). While this record may be
uncommitted, a voter without it may still be elected by the set before. The leader commits a change
of the voters before it begins the next one, so only the last two sets count. A snapshot holds only
committed records, so of the sets below its end only the last one counts.

A record that cannot be decoded is passed over. The readers of the log report it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from quorate.quorum.analytics.log.reading import read_batches
from quorate.quorum.analytics.log.seek import batches_from, last_batch, last_before, passed_over
from quorate.quorum.analytics.log.segments import (
    SEGMENT_NAME,
    SNAPSHOT_NAME,
    Slice,
    StoredFile,
    files_named,
)
from quorate.quorum.log.batches.batch import BatchHeader, records_of
from quorate.quorum.log.files.errors import CorruptBatch
from quorate.quorum.metadata.errors import MalformedRecord
from quorate.quorum.metadata.record_text import control_message
from quorate.quorum.protocol.codec import DecodeError
from quorate.quorum.raft.control_records import LeaderChangeMessage, VotersRecord


class Election(NamedTuple):
    """Raft's record of a leader, and its offset."""

    offset: int
    message: LeaderChangeMessage


def election_of(directory: Path | str, epoch: int) -> Election | None:
    """Return the election of the leader of `epoch`, whose record is the first one of the epoch, or
    None if the log does not hold it."""
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
    if place is None:
        return None
    segment, at = place
    for offset, message in _control_messages(segment, at, end=at + 1):
        if isinstance(message, LeaderChangeMessage):
            return Election(offset, message)
    return None


def electorates(directory: Path | str) -> list[frozenset[int]]:
    """Return the sets of voters of which each may elect the next leader, the latest one last.

    There are at most two, and none if the log names no voters."""
    last = last_batch(directory)
    election = None if last is None else election_of(directory, last.leader_epoch)
    found = [] if election is None else [_ids(election.message)]
    begin = 0 if election is None else election.offset
    for snapshot in files_named(directory, SNAPSHOT_NAME)[-1:]:
        if snapshot.offset > begin:
            begin = snapshot.offset
            found = _of_snapshot(snapshot) or found
    segments = files_named(directory, SEGMENT_NAME)
    for segment, following in zip_longest(segments, segments[1:]):
        if following is None or following.offset > begin:
            position = last_before(segment, lambda header: header.base_offset <= begin)
            found += [
                _ids(message)
                for offset, message in _control_messages(segment, position)
                if offset >= begin and isinstance(message, VotersRecord)
            ]
    return found[-2:]


def _of_snapshot(snapshot: StoredFile) -> list[frozenset[int]]:
    """Return the voters in the first batch of a snapshot, or nothing if it names none."""
    first = _control_messages(snapshot, 0, end=1)
    return [_ids(message) for _, message in first if isinstance(message, VotersRecord)]


def _ids(message: LeaderChangeMessage | VotersRecord) -> frozenset[int]:
    return frozenset(voter.voter_id for voter in message.voters)


def _control_messages(
    file: StoredFile, position: int, *, end: int | None = None
) -> Iterator[tuple[int, object]]:
    """Yield (offset, message) of the control records in the batches that begin between a position,
    where a batch begins, and `end`, which is the end of the file if it is None."""
    size = file.size_bytes
    piece = Slice(file.path, position, size if end is None else end, size, may_be_torn=True)
    for header, data, at in read_batches(piece, passed_over):
        if header.is_control:
            yield from _decoded(header, data, at)


def _decoded(header: BatchHeader, data: bytes, at: int) -> Iterator[tuple[int, object]]:
    with suppress(CorruptBatch, MalformedRecord, DecodeError):
        for record in records_of(data, at, header):
            yield record.offset, control_message(record)[0]
