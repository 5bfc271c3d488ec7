"""Work over a whole image in short steps.

A million partitions take seconds; a step takes a few milliseconds. A small image needs no pause.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import islice
from typing import Any

from quorate.quorum.ids import Uuid
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.metadata.image import Topic
from quorate.quorum.metadata.persistent_map import PersistentMap

STEP_ENTRIES = 1000
"""The number of entries after which a step ends.

A single large entry makes a step longer: `freed` frees a topic with all of its partitions."""


class Pace:
    """A counter that requests a pause after every STEP_ENTRIES entries."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = STEP_ENTRIES

    def is_time(self, entries: int = 1) -> bool:
        """Count `entries` more entries. Return True if the caller should pause now."""
        self._left -= entries
        if self._left > 0:
            return False
        self._left = STEP_ENTRIES
        return True


def in_order(keys: Iterable[Any]) -> IncrementalWork[Iterator[Any]]:
    """Return an iterator over the keys in sorted order, in steps.

    Each step sorts STEP_ENTRIES keys. The iterator merges the sorted parts as it is read. Sorting a
    million keys without a pause would take a second."""
    runs: list[list[Any]] = []
    rest = iter(keys)
    while run := sorted(islice(rest, STEP_ENTRIES)):
        if runs:
            yield
        runs.append(run)
    return iter(runs[0]) if len(runs) == 1 else merge(*runs)


def freed(topics: PersistentMap[Uuid, Topic]) -> IncrementalWork[None]:
    """Free the topics of an image that is no longer used, in steps.

    The caller passes the last reference to the map. Freeing a million partitions in one step takes
    half a second, so this drops one topic after the other.
    """
    pace = Pace()
    for topic_id in list(topics):
        weight = 1 + len(topics[topic_id].partitions)
        topics = topics.discard(topic_id)
        if pace.is_time(weight):
            yield
