"""The plan that moves all replicas of one broker to the others. Pure and deterministic."""

from __future__ import annotations

from quorate.cli.reassign.plan import (
    Assignment,
    Impossible,
    Racks,
    filled,
    replica_counts,
)


def drained(current: Assignment, racks: Racks, leaving: int) -> Assignment:
    """Return the new replicas of each partition that has a replica on the broker `leaving`.

    `racks` are the brokers that may get replicas, without `leaving`. All other replicas stay. The
    new one takes the place of the old one in the list, so that the preferred leaders stay spread.
    Raise Impossible, which names a partition, if there are too few brokers."""
    loads = replica_counts(current.values())
    plan: Assignment = {}
    for key in sorted(current):
        replicas = current[key]
        if leaving not in replicas:
            continue
        kept = tuple(each for each in replicas if each != leaving)
        if not set(racks) - set(kept):
            raise Impossible(
                f"partition {key[0]}-{key[1]} has {len(replicas)} replicas, and only {len(racks)} "
                f"other brokers are live. Add a broker, or reduce its replicas"
            )
        *_, new = filled(kept, len(replicas), racks, loads)
        plan[key] = tuple(new if each == leaving else each for each in replicas)
    return plan
