"""The change record of one partition, computed from the partition's target state.

This is Kafka's PartitionChangeBuilder, with its order of steps. Invariants of the record:

- A leader is in the ISR.
- With ELR, an ISR becomes empty only when the partition loses its leader. The ELR and the last
  known leader then record which replicas may have the data (`eligible_leaders.py`).
- Without ELR, an ISR never becomes empty. Its last member stays because it may return with all the
  data, and no other field records it.
- An ELR is empty if the ISR has min.insync.replicas members.
- The leader epoch grows when the leader changes or a replica leaves the assignment. It does not
  grow when the ISR shrinks (KAFKA-15021).
- If nothing changes, there is no record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from quorate.quorum.controller.partitions.elections import (
    Acceptable,
    Candidates,
    Elected,
    Election,
    elect,
)
from quorate.quorum.controller.partitions.eligible_leaders import eligible, last_known
from quorate.quorum.controller.partitions.partition_states import check_transition
from quorate.quorum.controller.partitions.reassignment_completion import completion
from quorate.quorum.controller.state.partition_index import PartitionKey
from quorate.quorum.controller.topics.directories import default_directory
from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.image import MetadataImage, Partition
from quorate.quorum.metadata.records import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    RECOVERING,
    PartitionChangeRecord,
)
from quorate.quorum.metadata.replica_directories import has_online_directory

Ids = tuple[int, ...]
NO_BROKER = -1


@dataclass(slots=True, kw_only=True)
class Target:
    """The target state of a partition. `Target.of` starts it as the current state, and a rule
    changes fields of it.

    `min_isr` is the effective min.insync.replicas (`MinIsrs.of`), or None if ELR is off.
    `stopped_uncleanly` is the id of a broker that must not enter or stay in the ELR. If
    `use_last_known` is False, only an UNCLEAN election may choose the last known leader. `longest`
    is the replica with the longest log, or NO_LEADER. `assigned` is a replica with the id of its
    new log directory, or None."""

    isr: Ids
    replicas: Ids
    removing: Ids
    adding: Ids
    leader_recovery_state: int
    min_isr: int | None
    stopped_uncleanly: int = NO_BROKER
    use_last_known: bool = True
    longest: int = NO_LEADER
    assigned: tuple[int, Uuid] | None = None
    election: Election = Election.ONLINE

    @classmethod
    def of(cls, partition: Partition, min_isr: int | None) -> Target:
        """Return the current state of the partition as a target."""
        return cls(
            min_isr=min_isr,
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
    `acceptable` returns True if a broker may lead. Its replica must also be in an online log
    directory. A completed reassignment, an unclean election
    or the election of the last known leader replaces `cause` as the cause of the record.
    """
    if target.complete_reassignment():
        cause = Cause.REASSIGNMENT_COMPLETE
    recovery = target.leader_recovery_state
    leader = NO_LEADER_CHANGE
    directories = directories_of(image, partition, target.replicas, target.assigned)

    def acceptable_and_online(replica: int) -> bool:
        return acceptable(replica) and (
            replica not in target.replicas
            or has_online_directory(image, replica, directories[target.replicas.index(replica)])
        )

    isr, elr, elected = elected_state(partition, target, acceptable_and_online)
    if elected.leader != partition.leader:
        leader = elected.leader
        if elected.unclean:
            recovery = RECOVERING
            cause = Cause.LAST_KNOWN_LEADER if elected.last_known else Cause.UNCLEAN_ELECTION
    elif any(replica not in target.replicas for replica in partition.replicas):
        leader = partition.leader  # a replica leaves: naming the leader raises its epoch
    if leader != NO_LEADER_CHANGE or recovery != partition.leader_recovery_state:
        check_transition(
            (partition.leader, partition.leader_recovery_state),
            (elected.leader, recovery),
            next_epoch=leader != NO_LEADER_CHANGE,
        )
    last = last_known(partition, isr, target.replicas, elected.leader, target.min_isr)
    assert isr or target.min_isr is not None or not partition.isr, f"{key}: the ISR is empty"
    assert elected.leader in (NO_LEADER, *isr), f"{key}: leader {elected.leader}, ISR {isr}"
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
            ("eligible_leader_replicas", elr, partition.elr),
            ("last_known_elr", last, partition.last_known_elr),
        )
        if new != old
    }
    if not changed:
        return None
    return PartitionChangeRecord(topic_id=key[0], partition_id=key[1], cause=cause, **changed)


def elected_state(
    partition: Partition, target: Target, acceptable: Acceptable
) -> tuple[Ids, Ids, Elected]:
    """Return the ISR and the ELR after the election, and its outcome.

    A leader from outside of the target ISR becomes its only member. Without ELR, an ISR that would
    become empty is kept, and only a partition that has no ISR keeps its ELR.
    """
    isr, min_isr = target.isr, target.min_isr
    elr = eligible(partition, isr, target.replicas, min_isr, target.stopped_uncleanly)
    if min_isr is None and not partition.isr:
        # ELR was turned off while the partition had no leader, so no record was committed since.
        elr = tuple(each for each in partition.elr if each != target.stopped_uncleanly)
    use_last_known = target.use_last_known and min_isr is not None
    candidates = Candidates(
        leader=partition.leader,
        replicas=target.replicas,
        isr=isr,
        elr=elr,
        last_known=next(iter(partition.last_known_elr if use_last_known else ()), NO_LEADER),
        longest=target.longest,
    )
    elected = elect(target.election, candidates, acceptable)
    if elected.unclean:
        return (elected.leader,), (), elected
    if elected.leader not in (NO_LEADER, *isr):
        isr = (elected.leader,)
        elr = eligible(partition, isr, target.replicas, min_isr, target.stopped_uncleanly)
    elif min_isr is None:
        isr = isr or partition.isr
        elr = () if isr else elr
    return isr, elr, elected


def leader_after(partition: Partition, record: PartitionChangeRecord | None) -> int:
    """Return the leader of the partition after `record`, which may be None."""
    if record is None or record.leader == NO_LEADER_CHANGE:
        return partition.leader
    return record.leader


def directories_of(
    image: MetadataImage,
    partition: Partition,
    replicas: Ids,
    assigned: tuple[int, Uuid] | None = None,
) -> tuple[Uuid, ...]:
    """Return the directory of each of `replicas`. A replica keeps its directory; a new one gets the
    default of its broker. The replica in `assigned` gets the directory there."""
    unchanged = replicas == partition.replicas and len(partition.directories) == len(replicas)
    if unchanged and assigned is None:
        return partition.directories
    known = dict(zip(partition.replicas, partition.directories, strict=False))
    if assigned is not None:
        known[assigned[0]] = assigned[1]
    return tuple(
        known[replica] if replica in known else default_directory(image, replica)
        for replica in replicas
    )
