"""Which brokers shall hold which replicas: plans for `quorate reassign-partitions`.

Pure and deterministic: the same cluster gives the same plan. Replicas that may stay do, since each
one that moves is data copied; racks differ as far as there are racks (KAFKA-1543, KIP-36).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

Assignment = dict[tuple[str, int], tuple[int, ...]]
Racks = Mapping[int, str | None]
"""The brokers that may be used, with their racks."""


class Impossible(Exception):
    pass


def spread(current: Assignment, racks: Racks) -> Assignment:
    """Every partition keeps its number of replicas, on `racks`' brokers only: equal shares of the
    replicas and of the preferred leaders for each, as far as these can be divided."""
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
            if loads[each] == share:  # some brokers hold one more where the shares are not even
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
    """`factor` replicas each: what is there stays where it can, preferred leader first. `loads`:
    how many replicas each broker has now."""
    check_size(racks, factor)
    loads = loads.copy()
    return {
        key: filled(shrunk(current[key], factor, racks, loads), factor, racks, loads)
        for key in sorted(current)
    }


def shrunk(
    replicas: tuple[int, ...], factor: int, racks: Racks, loads: Counter[int]
) -> tuple[int, ...]:
    """Those that are dead go first, then the most loaded, but never the preferred leader that
    lives."""
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
    """As many more as are missing: from racks that have none yet, least loaded first."""
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
    return Counter(each for replicas in assignments for each in replicas)


def check_size(racks: Racks, factor: int) -> None:
    if factor > len(racks):
        raise Impossible(
            f"Replication factor: {factor} larger than available brokers: {len(racks)}."
        )
