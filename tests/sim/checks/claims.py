"""The leaders and ISRs that were ever stated for each partition.

Invariant: one broker leads a partition in one leader epoch, and a partition has one ISR in one
partition epoch. This holds for every source: the metadata log, an image, or a leader.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quorate.broker.replication.partitions.hosted_partition import Key
from quorate.quorum.ids import uuid_to_text
from quorate.quorum.metadata.delta import Change
from quorate.quorum.metadata.image import Partition
from quorate.quorum.metadata.records import NO_LEADER
from tests.sim.checks.committed_log import Violation

Isr = tuple[int, ...]


class PartitionClaims:
    """All claims since the beginning, by partition and epoch."""

    def __init__(self, note: Callable[[str], None]) -> None:
        """Pass each new ISR to `note`."""
        self._note = note
        self._leaders: dict[tuple[Key, int], int] = {}
        self._isrs: dict[tuple[Key, int], Isr] = {}

    def changed(self, key: Key, name: str, change: Change[Partition]) -> None:
        """Check the change of a partition that a node has replayed."""
        old, new = change.old, change.new
        if new is None:
            return
        if new.leader != NO_LEADER and new.leader not in new.isr:
            raise Violation(f"{name}: leader {new.leader} is not in the ISR {new.isr}")
        if old is not None and (
            new.leader_epoch < old.leader_epoch or new.partition_epoch < old.partition_epoch
        ):
            raise Violation(f"{name}: epochs go back: {old} -> {new}")
        if (key, new.partition_epoch) not in self._isrs:
            self._note(
                f"{name}: leader {new.leader} epoch {new.leader_epoch}.{new.partition_epoch} "
                f"isr {list(new.isr)}"
            )
        self.has_isr(key, new.partition_epoch, new.isr)
        if new.leader != NO_LEADER:
            claim(self._leaders, (key, new.leader_epoch), new.leader, f"leader of {name}")

    def leads(self, key: Key, epoch: int, broker_id: int, name: str) -> None:
        """Check that no other broker leads the partition in this leader epoch."""
        claim(self._leaders, (key, epoch), broker_id, f"leader of {name} in epoch")

    def has_isr(self, key: Key, partition_epoch: int, isr: Isr) -> None:
        """Check that the partition has no other ISR in this partition epoch."""
        known = self._isrs.setdefault((key, partition_epoch), isr)
        if sorted(known) != sorted(isr):
            name = f"{uuid_to_text(key[0])}-{key[1]}"
            raise Violation(f"ISR of {name} in partition epoch {partition_epoch}: {isr}, {known}")

    def forget_after(self, key: Key, old: Partition | None) -> None:
        """Remove the claims that are later than the state `old` of a partition, because the quorum
        was rebuilt without them."""
        self._isrs = {
            (each, epoch): isr
            for (each, epoch), isr in self._isrs.items()
            if each != key or (old is not None and epoch <= old.partition_epoch)
        }
        self._leaders = {
            (each, epoch): leader
            for (each, epoch), leader in self._leaders.items()
            if each != key or (old is not None and epoch <= old.leader_epoch)
        }


def claim(claims: dict[Any, Any], what: Any, value: Any, meaning: str) -> None:
    """Raise Violation if another value was claimed for `what` before."""
    known = claims.setdefault(what, value)
    if known != value:
        raise Violation(f"{meaning} {what}: {value} and {known}")
