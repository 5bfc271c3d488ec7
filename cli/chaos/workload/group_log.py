"""The record of a consumer group: its deliveries, commits and rebalances. Pure.

Members are numbered in the order of their start. Their events carry times of one monotonic clock,
because the lines of several processes arrive in any order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

MAX_EVENTS = 500_000
"""The most committed offsets that are kept."""
MAX_ERRORS = 20


class Seen(NamedTuple):
    """A committed offset of a partition: acknowledged to a member, or fetched when it joined."""

    at_s: float
    partition: int
    offset: int
    fetched: bool


class Rebalance(NamedTuple):
    """The kill of a member, and the time at which all partitions had a member again, or None."""

    killed_s: float
    complete_s: float | None


@dataclass(slots=True)
class GroupLog:
    """The events of one group, owned by the event loop of the run.

    Bound: MAX_EVENTS, and the ranges of offsets, which merge as soon as they touch."""

    partitions: int
    rebalances: list[Rebalance] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """The first MAX_ERRORS errors of members. A member joins again after each one."""
    joins: int = 0
    _ranges: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    _seen: list[Seen] = field(default_factory=list)
    _killed: set[int] = field(default_factory=set)
    _assigned: dict[int, frozenset[int]] = field(default_factory=dict)

    def take(self, member: int, said: Mapping[str, Any]) -> None:
        """Apply one event of a member. Those of a killed member count, but it has no partitions."""
        at_s = said["at_s"]
        if said["event"] == "joined":
            self.joins += 1
            if member not in self._killed:
                self._assigned[member] = frozenset(said["partitions"])
            self._add(at_s, said["committed"], True)
            self._complete(at_s)
        elif said["event"] == "committed":
            self._add(at_s, said["offsets"], False)
        elif said["event"] == "read":
            for partition, (start, end) in said["ranges"].items():
                self._deliver(int(partition), start, end)
        elif len(self.errors) < MAX_ERRORS:
            self.errors.append(said["what"])

    def killed(self, member: int, at_s: float) -> None:
        """Record the kill of a member. Its partitions have no member until others get them."""
        self._killed.add(member)
        self._assigned.pop(member, None)
        self.rebalances.append(Rebalance(at_s, None))

    def complete(self) -> bool:
        """Return True if every partition has a member."""
        return len(frozenset[int]().union(*self._assigned.values())) == self.partitions

    def missing(self, ends: Mapping[int, int]) -> dict[int, int]:
        """Return the first offset below its end that no member has read, by partition."""
        found = {}
        for partition, end in ends.items():
            ranges = self._ranges.get(partition, [])
            first = ranges[0][1] if ranges and ranges[0][0] == 0 else 0
            if first < end:
                found[partition] = first
        return found

    def delivered(self, ends: Mapping[int, int]) -> int:
        """Return the number of offsets below the ends that members have read."""
        return sum(
            max(0, min(end, ends.get(partition, 0)) - start)
            for partition, ranges in self._ranges.items()
            for start, end in ranges
        )

    def went_back(self) -> Iterator[str]:
        """Yield a text for each committed offset that is lower than one before it, and one if not
        all offsets could be kept."""
        if len(self._seen) >= MAX_EVENTS:
            yield f"more than {MAX_EVENTS:,} offsets, so the last ones are not checked"
        highest: dict[int, int] = {}
        for seen in sorted(self._seen):
            was = highest.get(seen.partition, 0)
            if seen.offset < was:
                how = "a member found" if seen.fetched else "a member committed"
                yield f"partition {seen.partition}: {how} {seen.offset} after {was}"
            highest[seen.partition] = max(was, seen.offset)

    def commits(self) -> int:
        """Return the number of committed offsets."""
        return sum(not seen.fetched for seen in self._seen)

    def _add(self, at_s: float, offsets: Mapping[str, int], fetched: bool) -> None:
        if len(self._seen) < MAX_EVENTS:
            self._seen += [Seen(at_s, int(key), value, fetched) for key, value in offsets.items()]

    def _complete(self, at_s: float) -> None:
        """End the rebalances that last if every partition has a member now."""
        if not self.complete():
            return
        self.rebalances = [
            each if each.complete_s is not None else Rebalance(each.killed_s, at_s)
            for each in self.rebalances
        ]

    def _deliver(self, partition: int, start: int, end: int) -> None:
        """Add a range of offsets to those that members have read."""
        ranges = sorted([*self._ranges.get(partition, []), (start, end)])
        self._ranges[partition] = list(merged(ranges))


def merged(ranges: Sequence[tuple[int, int]]) -> Iterable[tuple[int, int]]:
    """Return the ranges without those that touch another one, in ascending order."""
    found: list[tuple[int, int]] = []
    for start, end in ranges:
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found
