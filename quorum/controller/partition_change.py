"""One partition's change record, from what should be true of it (Kafka's PartitionChangeBuilder;
the order of the steps is kafka-rules 3.6).

Invariants of what comes out: a leader is in the ISR; an ISR that would become empty is kept (its
last member may come back with all the data; without ELR there is no other place to remember it);
the leader epoch grows when the leader changes or a replica leaves, and not when the ISR merely
shrinks (KAFKA-15021); nothing changed means no record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from quorate.quorum.controller.directories import default_directory
from quorate.quorum.controller.elections import Acceptable, Election, elect
from quorate.quorum.controller.index import PartitionKey
from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.image import MetadataImage, Partition
from quorate.quorum.metadata.records import (
    NO_LEADER_CHANGE,
    RECOVERING,
    PartitionChangeRecord,
)

Ids = tuple[int, ...]


@dataclass(slots=True, kw_only=True)
class Target:
    """What should be true of the partition; starts as what is (`Target.of`)."""

    isr: Ids
    replicas: Ids
    removing: Ids
    adding: Ids
    leader_recovery_state: int
    election: Election = Election.ONLINE

    @classmethod
    def of(cls, partition: Partition) -> Target:
        return cls(
            isr=partition.isr,
            replicas=partition.replicas,
            removing=partition.removing,
            adding=partition.adding,
            leader_recovery_state=partition.leader_recovery_state,
        )

    def complete_reassignment(self) -> bool:
        """When all that is to stay is in the ISR, what is to go goes now."""
        if not self.removing and not self.adding:
            return False
        isr = tuple(replica for replica in self.isr if replica not in self.removing)
        replicas = tuple(replica for replica in self.replicas if replica not in self.removing)
        if not isr or not replicas or not set(replicas) <= set(isr):
            return False
        self.isr, self.replicas, self.removing, self.adding = isr, replicas, (), ()
        return True


def partition_change(
    image: MetadataImage,
    key: PartitionKey,
    partition: Partition,
    target: Target,
    acceptable: Acceptable,
    cause: str,
) -> PartitionChangeRecord | None:
    """Completes a reassignment on the way. Where that or an unclean election happens, it is the
    cause, whatever the occasion was."""
    if target.complete_reassignment():
        cause = Cause.REASSIGNMENT_COMPLETE
    isr = target.isr or partition.isr
    recovery = target.leader_recovery_state
    leader = NO_LEADER_CHANGE
    elected = elect(target.election, partition, target.replicas, target.isr, acceptable)
    if elected.leader != partition.leader:
        leader = elected.leader
        if elected.unclean:
            isr, recovery, cause = (leader,), RECOVERING, Cause.UNCLEAN_ELECTION
    elif any(replica not in target.replicas for replica in partition.replicas):
        leader = partition.leader  # only to raise the leader epoch: a replica leaves
    directories = directories_of(image, partition, target.replicas)
    changed: dict[str, Any] = {
        name: new
        for name, new, old in (
            ("leader", leader, NO_LEADER_CHANGE),
            ("isr", isr, partition.isr),
            ("replicas", target.replicas, partition.replicas),
            ("removing_replicas", target.removing, partition.removing),
            ("adding_replicas", target.adding, partition.adding),
            ("directories", directories, partition.directories),
            ("leader_recovery_state", recovery, partition.leader_recovery_state),
        )
        if new != old
    }
    if not changed:
        return None
    return PartitionChangeRecord(topic_id=key[0], partition_id=key[1], cause=cause, **changed)


def directories_of(image: MetadataImage, partition: Partition, replicas: Ids) -> tuple[Uuid, ...]:
    """Directories follow their replicas; a replica that is new gets its broker's default."""
    if replicas == partition.replicas and len(partition.directories) == len(replicas):
        return partition.directories
    known = dict(zip(partition.replicas, partition.directories, strict=False))
    return tuple(
        known[replica] if replica in known else default_directory(image, replica)
        for replica in replicas
    )
