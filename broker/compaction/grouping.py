"""The grouping of consecutive segments that a cleaning writes into one segment.

A group ends before a segment with which it would exceed the size of a segment, that of an index, or
the offsets that an index can hold. Sizes are those before the cleaning, so a group becomes smaller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from quorate.quorum.log.batches.batch_file import MAX_RELATIVE_OFFSET

MAX_GROUP_SEGMENTS = 64
"""The replacement of a group renames all its segments in one step of the event loop."""


class GroupedSegment(Protocol):
    """The facts about a segment that the rule needs."""

    @property
    def base_offset(self) -> int:
        """The base offset."""

    @property
    def next_offset(self) -> int:
        """The offset at which the next segment begins."""

    @property
    def size(self) -> int:
        """Bytes of all batches."""


S = TypeVar("S", bound=GroupedSegment)


def grouped(segments: Sequence[S], segment_bytes: int) -> list[list[S]]:
    """Return the groups of `segments`, which are consecutive and in offset order.

    No group but one of a single segment exceeds `segment_bytes`, the offsets of an index, or
    MAX_GROUP_SEGMENTS."""
    groups: list[list[S]] = []
    size = 0
    for segment in segments:
        group = groups[-1] if groups else []
        fits = (
            group
            and len(group) < MAX_GROUP_SEGMENTS
            and size + segment.size <= segment_bytes
            and segment.next_offset - 1 - group[0].base_offset <= MAX_RELATIVE_OFFSET
        )
        if fits:
            group.append(segment)
            size += segment.size
        else:
            groups.append([segment])
            size = segment.size
    return groups
