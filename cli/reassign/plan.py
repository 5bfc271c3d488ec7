"""Plans for `quorate reassign-partitions`: an assignment of replicas to brokers.

The functions are pure and deterministic: the same cluster gives the same plan. A replica stays on
its broker where possible, because a moved replica costs a copy of its data. The replicas of a
partition are on different racks as far as there are racks (KAFKA-1543, KIP-36)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

Assignment = dict[tuple[str, int], tuple[int, ...]]
Racks = Mapping[int, str | None]
"""The usable brokers with their racks, or None for a broker without a rack."""


class Impossible(Exception):
    """The plan needs more brokers than are usable."""


def spread(current: Assignment, racks: Racks) -> Assignment:
    """Return a plan that spreads all replicas over the brokers of `racks`.

    Each partition keeps its number of replicas. Each broker gets about an equal share of the
    replicas and of the preferred leaders. Different racks are more important than equal shares.
    Raise Impossible if a partition has more replicas than there are brokers."""
    check_size(racks, max(map(len, current.values()), default=0))
    share, one_more = divmod(sum(map(len, current.values())), len(racks))
    leaders_share = -(-len(current) // len(racks))
    loads: Counter[int] = Counter()
    kept: dict[tuple[str, int], list[int]] = {}
    for key in sorted(current):
        kept[key] = []
        for each in current[key]:
            if each not in racks or loads[each] > share:
                continue
            if loads[each] == share:  # some brokers hold one more if the shares cannot be equal
                if one_more == 0:
                    continue
                one_more -= 1
            kept[key].append(each)
            loads[each] += 1
    plan: Assignment = {}
    leading: Counter[int] = Counter()
    for key in sorted(current):
        replicas = filled(tuple(kept[key]), len(current[key]), racks, loads)
        first = replicas[0]
        if leading[first] >= leaders_share:
            first = min(replicas, key=lambda each: leading[each])
        leading[first] += 1
        plan[key] = (first, *(each for each in replicas if each != first))
    return plan


def resized(current: Assignment, racks: Racks, factor: int, loads: Counter[int]) -> Assignment:
    """Return a plan with `factor` replicas for each partition.

    Present replicas stay unless there are more than `factor`, even on brokers outside of `racks`.
    The preferred leader remains first unless it is removed (see `shrunk`). `loads` is the present
    number of replicas on each broker, and is not changed. Raise Impossible if there are too few
    brokers."""
    check_size(racks, factor)
    loads = loads.copy()
    return {
        key: filled(shrunk(current[key], factor, racks, loads), factor, racks, loads)
        for key in sorted(current)
    }


def shrunk(
    replicas: tuple[int, ...], factor: int, racks: Racks, loads: Counter[int]
) -> tuple[int, ...]:
    """Return at most `factor` of the replicas, and update `loads`.

    Replicas on unusable brokers are removed first, then those on the most loaded brokers. The
    preferred leader is not removed if its broker is usable."""
    left = list(replicas)
    while len(left) > factor:
        candidates = left[1:] if left[0] in racks else left
        gone = max(candidates, key=lambda each: (each not in racks, loads[each], left.index(each)))
        left.remove(gone)
        loads[gone] -= 1
    return tuple(left)


def filled(
    replicas: tuple[int, ...], factor: int, racks: Racks, loads: Counter[int]
) -> tuple[int, ...]:
    """Return the replicas with new ones up to `factor`, and update `loads`.

    A new replica goes to a broker on a rack without a replica if possible, then to the least loaded
    one."""
    chosen = list(replicas)
    while len(chosen) < factor:
        used = {racks.get(each) for each in chosen}
        best = min(
            (each for each in sorted(racks) if each not in chosen),
            key=lambda each: (racks[each] is not None and racks[each] in used, loads[each]),
        )
        chosen.append(best)
        loads[best] += 1
    return tuple(chosen)


def replica_counts(assignments: Iterable[tuple[int, ...]]) -> Counter[int]:
    """Return the number of replicas on each broker."""
    return Counter(each for replicas in assignments for each in replicas)


def check_size(racks: Racks, factor: int) -> None:
    """Raise Impossible if fewer than `factor` brokers are usable."""
    if factor > len(racks):
        raise Impossible(
            f"Replication factor: {factor} larger than available brokers: {len(racks)}."
        )
