"""The durable part of a log: the changes that no fsync covers yet, and the work that syncs them.

A flush has three steps. The log's owner prepares it in the log's thread (`FlushState.prepare`),
runs it in any thread (`Flush.run`), and completes it in the log's thread (`FlushState.complete`).
Between the first and the last step the log may be appended to and truncated. A flush that was
prepared before a truncation proves nothing about the bytes that were appended after it (R22,
tests/scenarios). A failed flush is never retried, because the kernel may have dropped the dirty
pages (R45, tests/scenarios).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from quorate.quorum.log.files import checkpoints
from quorate.quorum.log.files.flushed_marker import FlushedMarker
from quorate.quorum.log.segments.epochs import EpochCache
from quorate.quorum.log.segments.segment import Segment
from quorate.quorum.seams import Disk


class FlushedLog(Protocol):
    """The part of a log that its flush reads; `Log` satisfies it."""

    disk: Disk
    directory: str
    deleted: bool


@dataclass(slots=True)
class Unsynced:
    """Segments with unsynced bytes and directories with unsynced names, in order of first change.

    Invariant: a segment is in the list if and only if its `dirty` flag is set.
    """

    segments: list[Segment] = field(default_factory=list)
    directories: list[str] = field(default_factory=list)

    def add_segment(self, segment: Segment) -> None:
        """Add a segment that was written to or truncated. An empty segment is not added: its file
        is synced with the first bytes that are appended."""
        if not segment.dirty and segment.size:
            segment.dirty = True
            self.segments.append(segment)

    def remove_segment(self, segment: Segment) -> None:
        """Remove a segment that has left its log."""
        if segment.dirty:
            self.segments.remove(segment)

    def add_directory(self, directory: str) -> None:
        """Add a directory in which a file was created, renamed or removed."""
        if directory not in self.directories:
            self.directories.append(directory)

    def take(self) -> tuple[tuple[Segment, ...], tuple[str, ...]]:
        """Return the segments and the directories, and start anew without any."""
        taken = tuple(self.segments), tuple(self.directories)
        for segment in self.segments:
            assert segment.dirty
            segment.dirty = False
        self.segments.clear()
        self.directories.clear()
        return taken


@dataclass(frozen=True, slots=True)
class Flush:
    """One flush: when `run` has returned, everything below `end_offset` is on disk, unless the log
    was truncated meanwhile."""

    log: FlushedLog
    end_offset: int
    generation: int
    """Number of truncations and resets before this flush was prepared."""
    segments: tuple[Segment, ...]
    epochs: bytes | None
    """New content of the leader epoch checkpoint, or None if the epochs have not changed."""
    directories: tuple[str, ...]

    def run(self) -> None:
        """Sync the segments, the epochs and the directories. Block; may run in any thread.

        Raise OSError if a sync fails. The caller must not flush this log again. If the log was
        deleted meanwhile, missing files are no error, and the remaining ones are not synced."""
        try:
            for segment in self.segments:
                segment.sync()
            if self.epochs is not None:
                path = checkpoints.epochs_path(self.log.directory)
                checkpoints.replace(self.log.disk, path, self.epochs)
            for directory in self.directories:
                self.log.disk.sync_dir(directory)
        except FileNotFoundError:
            if not self.log.deleted:
                raise


class FlushState:
    """The flushed offset of one log, and the changes that its next flush must sync.

    Used in the log's thread, but for `lower_marker_to`. Invariants: everything below
    `flushed_offset` is on disk; bytes are removed only after the flushed marker, if the log has
    one, was lowered; at most one flush is in flight.
    """

    def __init__(
        self, flushed_offset: int, directories: list[str], marker: FlushedMarker | None
    ) -> None:
        """Begin with this flushed offset. `directories` have names that are not synced yet."""
        self.flushed_offset = flushed_offset
        self.generation = 0
        """Number of truncations and resets since the log was opened."""
        self.unsynced = Unsynced(directories=directories)
        self.in_flight = False
        self._marker = marker

    def prepare(self, log: FlushedLog, end_offset: int, epochs: EpochCache) -> Flush:
        """Return the flush of everything below `end_offset`, the log end."""
        assert not self.in_flight, "a flush is in flight"
        self.in_flight = True
        segments, directories = self.unsynced.take()
        content = checkpoints.encode_epochs(epochs.entries) if epochs.changed else None
        epochs.changed = False
        return Flush(log, end_offset, self.generation, segments, content, directories)

    def complete(self, flush: Flush) -> bool:
        """Raise the flushed offset, unless the log was deleted. The marker is raised too, without a
        sync.

        If a truncation made the flush void, return False and leave both as they are."""
        assert self.in_flight, "no flush is in flight"
        self.in_flight = False
        if flush.generation != self.generation:
            return False
        if flush.end_offset > self.flushed_offset and not flush.log.deleted:
            self.flushed_offset = flush.end_offset
            if self._marker is not None:
                self._marker.raise_to(flush.end_offset)
        return True

    def lower_to(self, offset: int) -> None:
        """Lower the flushed offset before a truncation to `offset`. A flush in flight is void."""
        self.generation += 1
        self.flushed_offset = min(self.flushed_offset, offset)

    def lower_marker_to(self, offset: int) -> None:
        """Lower the flushed marker durably, before bytes above `offset` are removed. Block; may run
        in any thread while no flush completes."""
        if self._marker is not None:
            self._marker.lower_to(offset)

    def close(self) -> None:
        """Sync and close the flushed marker. Block."""
        if self._marker is not None:
            self._marker.close()
