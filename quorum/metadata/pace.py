"""Work over a whole image in short steps, between which the event loop does other work.

Work over a million partitions takes seconds, but one step takes a few milliseconds. Work over fewer
than STEP_ENTRIES entries does not pause.
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

A step may exceed it by one large entry: `freed` frees a topic with all of its partitions in one
step."""


class Pace:
    """A counter of entries, which shows a generator when to pause: after every STEP_ENTRIES."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = STEP_ENTRIES

    def is_time(self, entries: int = 1) -> bool:
        """Count `entries` more entries. Return True if the caller should `yield` now.

        True starts the count again from 0."""
        self._left -= entries
        if self._left > 0:
            return False
        self._left = STEP_ENTRIES
        return True


def in_order(keys: Iterable[Any]) -> IncrementalWork[Iterator[Any]]:
    """Return an iterator over the keys in sorted order, in steps. The keys must be comparable.

    Each step sorts STEP_ENTRIES keys, because sorting a million keys in one step takes a second.
    The iterator merges the sorted parts while it is read, without pauses of its own."""
    runs: list[list[Any]] = []
    rest = iter(keys)
    while run := sorted(islice(rest, STEP_ENTRIES)):
        if runs:
            yield
        runs.append(run)
    return iter(runs[0]) if len(runs) == 1 else merge(*runs)


def freed(topics: PersistentMap[Uuid, Topic]) -> IncrementalWork[None]:
    """Free the topics of an image that is no longer used, in steps.

    Freeing a million partitions in one step takes half a second. The steps drop one topic after the
    other. No other reference to the map or to its image may exist, because it would keep the topics
    alive. A caller that holds one must drop it before the first step.
    """
    pace = Pace()
    for topic_id in list(topics):
        weight = 1 + len(topics[topic_id].partitions)
        topics = topics.discard(topic_id)
        if pace.is_time(weight):
            yield
