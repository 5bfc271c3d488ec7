"""The completion of a partition's reassignment (KIP-455).

A reassignment completes with the first change of the partition that finds all remaining replicas
in the ISR. `reassign.py` starts and cancels reassignments. `partition_change.py` applies this
rule to each change of a partition.

Invariant: a completion leaves neither the ISR nor the assignment empty.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Completion:
    """The ISR and the replicas of a partition whose reassignment is complete, without the replicas
    that leave."""

    isr: tuple[int, ...]
    replicas: tuple[int, ...]


def completion(
    isr: tuple[int, ...],
    replicas: tuple[int, ...],
    *,
    removing: tuple[int, ...],
    adding: tuple[int, ...],
) -> Completion | None:
    """Return the completion of a reassignment, or None if it is not complete or none is running.

    A reassignment is complete if all replicas that stay are in the ISR. Those are the replicas that
    it adds and also those that were there before."""
    if not removing and not adding:
        return None
    isr = tuple(replica for replica in isr if replica not in removing)
    replicas = tuple(replica for replica in replicas if replica not in removing)
    if not replicas or not set(replicas) <= set(isr):
        return None
    return Completion(isr, replicas)
