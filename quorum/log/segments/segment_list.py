"""The segments of one log, and the queries that span several segments.

Invariants: the list is never empty; base offsets rise strictly; each segment ends at the offset at
which the next one begins; only the last segment, the active one, is appended to.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from operator import attrgetter

from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.log.segments.segment import Segment
from quorate.quorum.seams import Disk

_base_offset = attrgetter("base_offset")


class SegmentList:
    """The segments of one log in offset order.

    The log that owns the list calls it, in the log's thread. See the module for the invariants.
    """

    def __init__(
        self,
        disk: Disk,
        directory: str,
        segments: list[Segment],
        wall_ms: int,
    ) -> None:
        """Take over `segments`, the last of which is active since `wall_ms`."""
        assert segments, "a log has at least one segment"
        self.active = segments[-1]
        """The segment that is appended to."""
        self.active_since_ms = wall_ms
        """The wall time at which the active segment was created by `roll`, or else that of the
        opening of the log."""
        self._disk = disk
        self._directory = directory
        self._segments = segments
        for segment, following in pairwise(segments):
            assert segment.base_offset < following.base_offset == segment.next_offset

    def __iter__(self) -> Iterator[Segment]:
        """Iterate over a copy, so that the list may change meanwhile."""
        return iter(tuple(self._segments))

    def __len__(self) -> int:
        return len(self._segments)

    @property
    def first(self) -> Segment:
        """The segment with the lowest base offset."""
        return self._segments[0]

    @property
    def all(self) -> list[Segment]:
        """The list itself, for a caller that does not change it."""
        return self._segments

    @property
    def size_bytes(self) -> int:
        """Bytes of all batches."""
        return sum(segment.size for segment in self._segments)

    @property
    def max_timestamp_ms(self) -> int:
        """Largest timestamp of all records, or -1 if no record has one.

        May read a whole sealed segment whose time index has no entry. Raise CorruptLog."""
        return max(segment.max_timestamp_ms for segment in self._segments)

    def segment_of(self, offset: int) -> Segment:
        """Return the segment that holds `offset`, the active one if `offset` is the log end.

        `offset` must not lie below the first segment.
        """
        index = bisect_right(self._segments, offset, key=_base_offset) - 1
        assert index >= 0, f"{self._directory}: offset {offset} lies below the first segment"
        return self._segments[index]

    def first_removed(self, offset: int) -> int:
        """Return the lowest offset that a truncation to `offset` removes: the base offset of the
        batch that holds it, or `offset` itself if it is missing. Raise CorruptLog."""
        segment = self.segment_of(offset)
        return min(offset, segment.header_at(segment.position_of(offset)).base_offset)

    def end_below(self, offset: int) -> int:
        """Return the log end after a truncation to `offset`.

        It is the offset that follows the last batch which ends at or below `offset`, or the base
        offset of the segment. Raise CorruptLog."""
        return self.segment_of(offset).end_below(offset)

    def moved_to(self, directory: str) -> None:
        """Note that the files of all segments lie in `directory` now."""
        self._directory = directory
        for segment in self._segments:
            segment.moved_to(directory)

    def has(self, sources: list[Segment]) -> bool:
        """Return True if `sources`, at least one, are consecutive sealed segments of the list."""
        first = bisect_right(self._segments, sources[0].base_offset, key=_base_offset) - 1
        last = first + len(sources)
        in_list = first >= 0 and last < len(self._segments)
        return in_list and self._segments[first:last] == sources

    def replace(self, sources: list[Segment], cleaned: Segment) -> None:
        """Put `cleaned` in the place of `sources`, consecutive sealed segments of the list."""
        assert self.has(sources) and cleaned.base_offset == sources[0].base_offset
        first = self._segments.index(sources[0])
        cleaned.next_offset = sources[-1].next_offset
        self._segments[first : first + len(sources)] = [cleaned]

    def bytes_below(self, offset: int) -> int:
        """Return the size of the log below `offset`, a batch's base offset or the log end."""
        before = sum(each.size for each in self._segments if each.next_offset <= offset)
        holding = self.segment_of(offset)
        return before + (holding.position_of(offset) if holding.next_offset > offset else 0)

    def roll(self, base_offset: int, wall_ms: int, settings: LogSettings) -> Segment:
        """Seal the active segment and return a new, empty one that begins at `base_offset`.

        If the indexes of the sealed segment cannot be written, OSError is raised and the active
        segment stays active. The file of the new segment is created by its first append."""
        self.active.seal()
        assert self.active.next_offset == base_offset > self.active.base_offset
        self.active = self._new(base_offset, settings)
        self._segments.append(self.active)
        self.active_since_ms = wall_ms
        return self.active

    def pop_from(self, offset: int) -> Iterator[Segment]:
        """Remove and yield the segments that begin at `offset` or above it, newest first.

        The first segment of the log always stays. The last one that stays becomes the active
        segment when the iteration ends; the caller truncates it, which loads its indexes."""
        while len(self._segments) > 1 and self._segments[-1].base_offset >= offset:
            yield self._segments.pop()
        self.active = self._segments[-1]

    def take_first(self, count: int) -> list[Segment]:
        """Remove the `count` oldest segments from the list and return them, oldest first."""
        assert 0 <= count < len(self._segments), "the active segment stays"
        taken = self._segments[:count]
        del self._segments[:count]
        return taken

    def replace_all(self, offset: int, settings: LogSettings) -> list[Segment]:
        """Replace all segments by one empty active segment that begins at `offset`.

        Return the old segments, oldest first. The caller creates the new segment's file."""
        old = self._segments
        self.active = self._new(offset, settings)
        self._segments = [self.active]
        return old

    def _new(self, base_offset: int, settings: LogSettings) -> Segment:
        segment = Segment(self._disk, self._directory, base_offset, settings.index_interval_bytes)
        segment.create(settings.segment_bytes if settings.preallocate else 0)
        return segment
