"""The change record of one partition, computed from the partition's target state.

This is Kafka's PartitionChangeBuilder, with its order of steps. Invariants of the record:

- A leader is in the ISR.
- An ISR never becomes empty. Its last member stays because it may return with all the data, and
  without an ELR no other field records which replica has them.
- The leader epoch grows when the leader changes or a replica leaves the assignment. It does not
  grow when the ISR shrinks (KAFKA-15021).
- If nothing changes, there is no record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from quorate.quorum.controller.directories import default_directory
from quorate.quorum.controller.elections import Acceptable, Election, elect
from quorate.quorum.controller.partition_index import PartitionKey
from quorate.quorum.controller.partition_states import check_transition
from quorate.quorum.controller.reassignment_completion import completion
from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.image import MetadataImage, Partition
from quorate.quorum.metadata.records import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    RECOVERING,
    PartitionChangeRecord,
)

Ids = tuple[int, ...]


@dataclass(slots=True, kw_only=True)
class Target:
    """The target state of a partition. `Target.of` starts it as the current state, and a rule
    changes fields of it."""

    isr: Ids
    replicas: Ids
    removing: Ids
    adding: Ids
    leader_recovery_state: int
    election: Election = Election.ONLINE

    @classmethod
    def of(cls, partition: Partition) -> Target:
        """Return the current state of the partition as a target."""
        return cls(
            isr=partition.isr,
            replicas=partition.replicas,
            removing=partition.removing,
            adding=partition.adding,
            leader_recovery_state=partition.leader_recovery_state,
        )

    def complete_reassignment(self) -> bool:
        """Complete the reassignment if all replicas that stay are in the ISR
        (`reassignment_completion.py`). Return True if it was completed."""
        complete = completion(self.isr, self.replicas, removing=self.removing, adding=self.adding)
        if complete is None:
            return False
        self.isr, self.replicas = complete.isr, complete.replicas
        self.removing = self.adding = ()
        return True


def partition_change(
    image: MetadataImage,
    key: PartitionKey,
    partition: Partition,
    target: Target,
    acceptable: Acceptable,
    cause: str,
) -> PartitionChangeRecord | None:
    """Return the record that changes `partition` to `target`, or None if nothing changes.

    The function completes a reassignment if it can, which changes `target`, and elects a leader.
    `acceptable` returns True if a replica may lead. A completed reassignment or an unclean election
    replaces `cause` as the cause of the record.
    """
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
        leader = partition.leader  # a replica leaves: naming the leader raises its epoch
    if leader != NO_LEADER_CHANGE or recovery != partition.leader_recovery_state:
        check_transition(
            (partition.leader, partition.leader_recovery_state),
            (elected.leader, recovery),
            next_epoch=leader != NO_LEADER_CHANGE,
        )
    assert isr, f"{key}: the change leaves no replica in the ISR"
    assert elected.leader in (NO_LEADER, *isr), f"{key}: leader {elected.leader}, ISR {isr}"
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
    """Return the directory of each of `replicas`. A replica keeps its directory; a new one gets the
    default of its broker."""
    if replicas == partition.replicas and len(partition.directories) == len(replicas):
        return partition.directories
    known = dict(zip(partition.replicas, partition.directories, strict=False))
    return tuple(
        known[replica] if replica in known else default_directory(image, replica)
        for replica in replicas
    )
