"""The rows of consumer groups and of their partitions, the largest lag first. All pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from quorate.cli.client.groups import Place
from quorate.cli.console.views.table import Row

GROUPS = ("group", "state", "lag", "partitions", "members", "coordinator", "protocol")
OFFSETS = ("group", "topic", "partition", "lag", "committed", "log end", "client", "host")
UNKNOWN = "unknown"
"""The value of a lag that cannot be computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offset:
    """The committed offset of a group in one partition, which may be None, and the log end offset,
    which is None if the leader does not answer. `client` and `host` are those of the owner, or
    empty."""

    place: Place
    committed: int | None
    end: int | None
    client: str = ""
    host: str = ""

    @property
    def lag(self) -> int | None:
        """Return the number of records that the group has not committed, or None if it is not
        known."""
        if self.committed is None or self.end is None:
            return None
        return max(0, self.end - self.committed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One group as its coordinator lists it. `members` and `offsets` are None until the group is
    described."""

    name: str
    state: str
    coordinator: int
    protocol: str = ""
    members: int | None = None
    offsets: tuple[Offset, ...] | None = None

    @property
    def lag(self) -> int | None:
        """Return the sum of the known lags, or None if none of them is known. A group without
        offsets has no lag."""
        if self.offsets is None:
            return None
        known = [each.lag for each in self.offsets if each.lag is not None]
        return None if self.offsets and not known else sum(known)


def group_rows(groups: Iterable[Group]) -> list[Row]:
    """Return a row for each group: the largest lag first, groups with an unknown lag last."""
    ordered = sorted(groups, key=lambda each: (each.lag is None, -(each.lag or 0), each.name))
    return [
        (
            each.name,
            each.state,
            UNKNOWN if each.lag is None else each.lag,
            UNKNOWN if each.offsets is None else len(each.offsets),
            UNKNOWN if each.members is None else each.members,
            each.coordinator,
            each.protocol,
        )
        for each in ordered
    ]


def offset_rows(groups: Iterable[Group]) -> list[Row]:
    """Return a row for each partition of each group: the largest lag first."""
    found = [(group.name, each) for group in groups for each in group.offsets or ()]
    found.sort(key=lambda pair: (-(pair[1].lag or 0), pair[0], pair[1].place))
    return [
        (
            group,
            *each.place,
            UNKNOWN if each.lag is None else each.lag,
            each.committed,
            UNKNOWN if each.end is None else each.end,
            each.client,
            each.host,
        )
        for group, each in found
    ]


def next_names(names: Sequence[str], after: str, most: int) -> list[str]:
    """Return at most `most` of the sorted names: those behind `after`, then the first ones."""
    later = [each for each in names if each > after]
    return list(islice((*later, *names[: len(names) - len(later)]), most))


def within(groups: Mapping[str, Group], most: int) -> tuple[dict[str, Group], int]:
    """Return the groups with `most` offsets at most together, and the number of groups whose
    offsets are left out."""
    kept: dict[str, Group] = {}
    count = left_out = 0
    for name, group in groups.items():
        count += len(group.offsets or ())
        if count > most and group.offsets:
            count -= len(group.offsets)
            left_out += 1
            group = Group(name=name, state=group.state, coordinator=group.coordinator)
        kept[name] = group
    return kept, left_out
