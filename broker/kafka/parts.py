"""Long lists of topics and partitions, divided into parts that a group's shard takes one by one.

A shard works on a request as a whole, so the loop could serve nobody else meanwhile. Each part is
answered for itself, and the answers are joined again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

PARTITIONS_PER_PART = 250

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


def joined(topics: Iterable[T], field: str, key: Callable[[T], object]) -> tuple[T, ...]:
    """Join neighbours with the same key: their `field` holds the elements of all of them."""
    found: list[tuple[T, list[Any]]] = []
    for topic in topics:
        if found and key(found[-1][0]) == key(topic):
            found[-1][1].extend(getattr(topic, field))
        else:
            found.append((topic, list(getattr(topic, field))))
    return tuple(
        dataclasses.replace(topic, **{field: tuple(elements)})  # type: ignore[type-var]
        for topic, elements in found
    )


def is_short(topics: Iterable[Any], field: str) -> bool:
    """Return True if `topics` fit in one part."""
    return sum(max(1, len(getattr(each, field))) for each in topics) <= PARTITIONS_PER_PART
