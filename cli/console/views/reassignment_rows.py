"""The rows of reassignments: their progress, and the replicas that each waits for. All pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from quorate.cli.client.groups import Place
from quorate.cli.console.views.table import Row
from quorate.cli.topics.topic_view import PartitionView

REASSIGNMENTS = ("topic", "partition", "state", "percent", "adding", "removing", "waits for")
MOVING, STALLED = "moving", "stalled"
STALLED_S = 10.0
"""The time without a copied byte after which a reassignment is stalled."""
Sizes = Mapping[Place, Mapping[int, int]]
"""The size in bytes of each replica, by partition and broker."""


@dataclass(frozen=True, slots=True)
class Copied:
    """The bytes of the added replicas of a partition, and the time since when they are the same."""

    total_bytes: int
    since_s: float


def copied_after(
    before: Mapping[Place, Copied],
    moving: Mapping[Place, PartitionView],
    sizes: Sizes,
    now_s: float,
) -> dict[Place, Copied]:
    """Return the bytes of all reassignments at `now_s`, with the times of those of `before` that
    have not changed."""
    found = {}
    for place, partition in moving.items():
        total_bytes = sum(sizes.get(place, {}).get(each, 0) for each in partition.adding)
        last = before.get(place)
        same = last is not None and last.total_bytes == total_bytes
        found[place] = last if same and last is not None else Copied(total_bytes, now_s)
    return found


def percent_of(partition: PartitionView, sizes: Mapping[int, int]) -> int:
    """Return the share of the bytes that the added replicas have, of those that they need, in
    percent. It is 100 only if all of them are in the ISR."""
    lacking = [each for each in partition.adding if each not in partition.isr]
    if not lacking:
        return 100
    whole = sizes.get(partition.leader, 0) if partition.leader is not None else 0
    if whole == 0:
        return 0
    done = sum(whole for each in partition.adding if each in partition.isr)
    done += sum(min(whole, sizes.get(each, 0)) for each in lacking)
    return min(99, 100 * done // (whole * len(partition.adding)))


def waits_for(
    partition: PartitionView, sizes: Mapping[int, int], up: Collection[int]
) -> Iterable[str]:
    """Yield what the reassignment waits for."""
    if partition.leader is None:
        yield "a leader of the partition"
        return
    lacking = [each for each in partition.adding if each not in partition.isr]
    if not lacking:
        yield "the controller, which ends it with its next change of the partition"
    for broker in lacking:
        if broker not in up:
            yield f"broker {broker}, which is down"
        elif broker not in sizes:
            yield f"broker {broker}, which has no log of it yet"
        else:
            whole = sizes.get(partition.leader)
            of_all = "" if whole is None else f" of {whole}"
            yield f"the replica on broker {broker}, which has {sizes[broker]}{of_all} bytes"


def reassignment_rows(
    moving: Mapping[Place, PartitionView],
    sizes: Sizes,
    copied: Mapping[Place, Copied],
    up: Collection[int],
    now_s: float,
) -> list[Row]:
    """Return a row for each reassignment: the stalled ones first, then the least percent."""
    found: list[tuple[tuple[bool, int, Place], Row]] = []
    for place, partition in moving.items():
        known = sizes.get(place, {})
        percent = percent_of(partition, known)
        same_s = now_s - copied[place].since_s
        is_stalled = same_s >= STALLED_S and percent < 100
        reasons = list(waits_for(partition, known, up))
        if is_stalled:
            reasons.append(f"no byte was copied for {int(same_s)} s")
        state = STALLED if is_stalled else MOVING
        row = (*place, state, percent, partition.adding, partition.removing, "; ".join(reasons))
        found.append(((not is_stalled, percent, place), row))
    return [row for _, row in sorted(found, key=lambda pair: pair[0])]
