"""The times during which partitions could not be written, by reason."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from quorate.quorum.controller.state.partition_index import PartitionKey


class Trouble(enum.Enum):
    """The reasons for which a partition cannot be written."""

    LEADERLESS = "no leader"
    """No leader is elected, or the process of the leader has ended."""
    BELOW_MIN = "below min ISR"
    """The ISR has fewer members than min.insync.replicas, so that acks=all fails."""
    WAITING = "waiting"
    """The ISR has a dead member, so that acks=all gets no answer until the member leaves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Duration:
    """The time of one reason: the sum over all partitions, and the longest of one partition, in ms.

    `partitions` counts the partitions that it concerned."""

    total_ms: int = 0
    longest_ms: int = 0
    partitions: int = 0


class Troubles:
    """The troubles of each partition. A trouble that a partition has in the beginning never counts
    for it, because no fault of the rehearsal caused it."""

    def __init__(self) -> None:
        self._old: set[tuple[PartitionKey, Trouble]] = set()
        self._since: dict[tuple[PartitionKey, Trouble], int] = {}
        self._lasted: defaultdict[tuple[PartitionKey, Trouble], int] = defaultdict(int)
        self._ended_ms = 0

    def begin(self, key: PartitionKey, troubles: Iterable[Trouble]) -> None:
        """Note the troubles of a partition before the first fault."""
        self._old.update((key, each) for each in troubles)

    def update(self, key: PartitionKey, troubles: frozenset[Trouble], now_ms: int) -> None:
        """Note the troubles of a partition from now on."""
        for each in Trouble:
            place = (key, each)
            if each in troubles:
                if place not in self._old:
                    self._since.setdefault(place, now_ms)
            elif (since := self._since.pop(place, None)) is not None:
                self._lasted[place] += now_ms - since
                self._ended_ms = max(self._ended_ms, now_ms)

    @property
    def recovered_ms(self) -> int | None:
        """Return the time at which the last trouble ended, 0 if there was none, or None if one
        remains."""
        return None if self._since else self._ended_ms

    def durations(self, now_ms: int) -> dict[Trouble, Duration]:
        """Return the times by reason. Troubles that remain count up to now."""
        lasted = dict(self._lasted)
        for place, since in self._since.items():
            lasted[place] = lasted.get(place, 0) + now_ms - since
        by_trouble: defaultdict[Trouble, list[int]] = defaultdict(list)
        for (_, trouble), time_ms in lasted.items():
            by_trouble[trouble].append(time_ms)
        return {
            each: Duration(
                total_ms=sum(by_trouble[each]),
                longest_ms=max(by_trouble[each], default=0),
                partitions=len(by_trouble[each]),
            )
            for each in Trouble
        }
