"""Divides the topics and partitions of a large request into parts, and joins the results.

A group's shard and the replica manager handle one call in one step. A large request is therefore
passed to them in parts, between which the event loop serves other connections.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.metadata.pace import STEP_ENTRIES, Pace

PARTITIONS_PER_PART = 250
"""Maximum number of partitions in a part. A topic without partitions counts as one."""
TOPIC_ENTRIES = 4
"""The weight of a topic in `joined`, in entries of a step (`Pace`)."""

T = TypeVar("T")


def divided(topics: Sequence[T], field: str) -> Iterator[tuple[T, ...]]:
    """Yield `topics` in parts of PARTITIONS_PER_PART, counting the elements of their `field`.

    A topic may be in several parts. A topic without elements counts as one."""
    part: list[T] = []
    room = PARTITIONS_PER_PART
    for topic in topics:
        elements = getattr(topic, field)
        start = 0
        while start < len(elements) or start == 0:
            some = elements[start : start + room]
            whole = len(some) == len(elements)
            one: Any = topic
            part.append(topic if whole else dataclasses.replace(one, **{field: some}))
            start += max(1, len(some))
            room -= max(1, len(some))
            if room == 0:
                yield tuple(part)
                part, room = [], PARTITIONS_PER_PART
    if part:
        yield tuple(part)


def all_parts(topics: Sequence[T], field: str) -> IncrementalWork[list[tuple[T, ...]]]:
    """Return the parts of `divided` in steps."""
    parts: list[tuple[T, ...]] = []
    for part in divided(topics, field):
        if parts:
            yield
        parts.append(part)
    return parts


def joined(
    topics: Iterable[T], field: str, key: Callable[[T], object]
) -> IncrementalWork[tuple[T, ...]]:
    """Join adjacent topics with the same key, in steps. The `field` of a joined topic holds the
    elements of all of them."""
    found: list[T] = []
    elements: list[Any] | None = None  # of the last topic, if it is joined
    pace = Pace()
    for topic in topics:
        if found and key(found[-1]) == key(topic):
            if elements is None:
                elements = list(getattr(found[-1], field))
            elements.extend(getattr(topic, field))
        else:
            if elements is not None:
                found[-1] = _with(found[-1], field, elements)
                elements = None
            found.append(topic)
        if pace.is_time(TOPIC_ENTRIES):
            yield
    if elements is not None:
        found[-1] = _with(found[-1], field, elements)
    return tuple(found)


def _with(topic: Any, field: str, elements: list[Any]) -> Any:
    return dataclasses.replace(topic, **{field: tuple(elements)})


def in_pieces(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield `items` in pieces of STEP_ENTRIES."""
    for start in range(0, len(items), STEP_ENTRIES):
        yield items[start : start + STEP_ENTRIES]


def emptied(items: set[Any] | dict[Any, Any]) -> IncrementalWork[None]:
    """Empty `items` in steps, because freeing many objects in one step takes long, too."""
    pop: Callable[[], object] = items.popitem if isinstance(items, dict) else items.pop
    while items:
        for _ in range(min(len(items), STEP_ENTRIES)):
            pop()
        if items:
            yield


def is_short(topics: Iterable[Any], field: str) -> bool:
    """Return True if `topics` fit in one part."""
    room = PARTITIONS_PER_PART
    for each in topics:
        room -= max(1, len(getattr(each, field)))
        if room < 0:
            return False
    return True
