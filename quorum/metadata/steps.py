"""Work over a whole image in short steps.

A million partitions take seconds; a step takes a few milliseconds. Small images need no pause.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import islice
from typing import Any

from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.image import Topic
from quorate.quorum.metadata.persistent import PersistentMap
from quorate.quorum.steps import Steps

STEP_ENTRIES = 1000


class Pace:
    """Counts entries; says when it is time to pause."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = STEP_ENTRIES

    def is_time(self, entries: int = 1) -> bool:
        """So many more were looked at."""
        self._left -= entries
        if self._left > 0:
            return False
        self._left = STEP_ENTRIES
        return True


def in_order(keys: Iterable[Any]) -> Steps[Iterator[Any]]:
    """Sorted; of a million keys that alone would be a second in one go."""
    runs: list[list[Any]] = []
    rest = iter(keys)
    while run := sorted(islice(rest, STEP_ENTRIES)):
        if runs:
            yield
        runs.append(run)
    return iter(runs[0]) if len(runs) == 1 else merge(*runs)


def freed(topics: PersistentMap[Uuid, Topic]) -> Steps[None]:
    """Of an image that nobody has any more. Letting go of a million partitions at once takes half
    a second; this holds the last reference and drops them topic by topic."""
    pace = Pace()
    for topic_id in list(topics):
        weight = 1 + len(topics[topic_id].partitions)
        topics = topics.discard(topic_id)
        if pace.is_time(weight):
            yield
