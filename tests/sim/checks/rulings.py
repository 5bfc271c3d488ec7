"""The rules for the records that a controller may write into the metadata log.

They are checked record by record, because each record of a batch must be right at its place. The
image after the whole batch does not show that.

A new leader was in the ISR that the log held before, or in the one that the partition's leader
asked for (AlterPartition that completes a reassignment). A replica joins an ISR only if the leader
asked for it, in the epochs that the log held before. `proposals.py` has the requests that were
sent. The cause in a record proves nothing, because the checked code has written it. A broker's
epoch grows with each incarnation.

If an ISR is empty, the next leader was in the ELR. Otherwise it was the last known leader, the ELR
was empty, and the partition is RECOVERING (KIP-966). An ELR has only members of the ELR and the ISR
before. A replica that leaves an ISR does not become eligible while the remaining ISR is large
enough for the leader to commit.

A replica that joins or is elected is not fenced. It joins as the incarnation that is registered
(KIP-903). A broker that registers another incarnation leaves every ISR that has another member. If
its process was killed, it leaves every ELR, too.

If a topic allows unclean elections, its partitions may be led by any replica, which is then the
whole ISR.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.records import (
    NO_LEADER,
    RECOVERING,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from quorate.quorum.metadata.replay import merge, partition_of

Key = tuple[Uuid, int]
Asked = Callable[[Key, int, int, int, Iterable[tuple[int, int]]], bool]
"""`Proposals.asked`: (partition, partition epoch, leader epoch, leader, ISR with broker epochs)."""


CLEARED = PartitionChangeRecord(eligible_leader_replicas=(), last_known_elr=())


class Rulings:
    """Checks the records of the metadata log in their order.

    `asked` returns True if a leader sent a request. `unclean` returns True if a topic allows
    unclean elections. `was_killed` returns True if the process before an incarnation was killed.
    `min_isr` has the min.insync.replicas of topics whose value never changes. `checks` counts the
    changes of an ISR and of a leader that were checked."""

    def __init__(
        self,
        image: MetadataImage,
        asked: Asked,
        unclean: Callable[[Uuid], bool] = lambda topic_id: False,
        checks: Counter[str] | None = None,
        was_killed: Callable[[Uuid], bool] = lambda incarnation_id: False,
        min_isr: Mapping[str, int] | None = None,
    ) -> None:
        self.checks: Counter[str] = Counter() if checks is None else checks
        self._asked = asked
        self._unclean = unclean
        self._was_killed = was_killed
        self._min_isr = min_isr or {}
        self._fenced = {each.id: each.fenced for each in image.brokers.values()}
        self._anew: dict[int, Uuid] = {}
        """The incarnations that were registered by the present records."""
        self._partitions = {
            (topic.id, partition_id): partition
            for topic, partition_id, partition in image.all_partitions()
        }
        self._names = {topic.id: topic.name for topic in image.topics.values()}
        self._brokers: dict[int, tuple[int, Uuid | None]] = {
            each.id: (each.epoch, each.incarnation_id) for each in image.brokers.values()
        }

    def take(self, records: Sequence[MetadataRecord]) -> str:
        """Check the next records of the log. Return the fault of the first wrong record, or ""."""
        self._anew.clear()
        return next(filter(None, map(self._take, records)), "") or self._after_registrations()

    def _after_registrations(self) -> str:
        for broker_id, incarnation_id in self._anew.items():
            self.checks["registrations of another incarnation"] += 1
            killed = self._was_killed(incarnation_id)
            for key, each in self._partitions.items():
                if broker_id in each.isr and len(each.isr) > 1:
                    return f"broker {broker_id} has restarted, and is in the ISR {each.isr}"
                if broker_id in each.elr and killed and not self._unclean(key[0]):
                    return f"broker {broker_id} was killed, and is in the ELR {each.elr}"
        return ""

    def _take(self, record: MetadataRecord) -> str:
        match record:
            case TopicRecord():
                self._names[record.topic_id] = record.name
            case RemoveTopicRecord():
                for key in [each for each in self._partitions if each[0] == record.topic_id]:
                    del self._partitions[key]
            case PartitionRecord():
                key = (record.topic_id, record.partition_id)
                self._partitions[key] = partition_of(record)
                if record.leader not in (NO_LEADER, *record.isr):
                    return f"{record}: its leader is not in its ISR"
            case PartitionChangeRecord():
                return self._changed(record)
            case ClearElrRecord():
                self._cleared(record.topic_name)
            case RegisterBrokerRecord():
                return self._registered(record)
            case UnregisterBrokerRecord():
                # If the incarnation got no answer to its registration, it asks for another epoch.
                self._brokers[record.broker_id] = record.broker_epoch, None
            case BrokerRegistrationChangeRecord() if record.fenced:
                self._fenced[record.broker_id] = record.fenced > 0
        return ""

    def _cleared(self, name: str) -> None:
        for key, old in self._partitions.items():
            if (old.elr or old.last_known_elr) and name in ("", self._names[key[0]]):
                self._partitions[key] = merge(old, CLEARED)

    def _registered(self, record: RegisterBrokerRecord) -> str:
        """Check a registration. An incarnation that registers once more, because it got no answer
        to the first request, keeps its broker epoch."""
        before, incarnation_id = self._brokers.get(record.broker_id, (-1, None))
        self._brokers[record.broker_id] = record.broker_epoch, record.incarnation_id
        again = record.incarnation_id == incarnation_id
        self._fenced[record.broker_id] = record.fenced
        if incarnation_id is not None and not again:
            self._anew[record.broker_id] = record.incarnation_id
        if record.broker_epoch < before or (record.broker_epoch == before) != again:
            return f"{record}: {incarnation_id!r} had epoch {before}"
        return ""

    def _changed(self, record: PartitionChangeRecord) -> str:
        key = (record.topic_id, record.partition_id)
        before = self._partitions[key]
        new = self._partitions[key] = merge(before, record)
        isr, leader = new.isr, new.leader
        elected = leader not in (before.leader, NO_LEADER)
        joined = set(isr) - set(before.isr)
        if self._unclean(record.topic_id) and isr == (leader,):
            return ""
        self.checks["elections"] += elected
        self.checks["elections of eligible leader replicas"] += elected and leader in before.elr
        self.checks["replicas that joined an ISR"] += len(joined)
        in_sync = {*before.isr, *(before.elr if isr == (leader,) else ())}
        as_whom = [(each, self._brokers.get(each, (-1, None))[0]) for each in sorted(joined)]
        if self._asked(key, before.partition_epoch, before.leader_epoch, before.leader, as_whom):
            in_sync |= joined
        if isr == (leader,) and not before.isr and new.leader_recovery_state == RECOVERING:
            # A record may remove the last member of the ELR, which stopped uncleanly, and elect.
            in_sync |= set(before.last_known_elr if len(before.elr) <= 1 else ())
        if not set(new.elr) <= {*before.isr, *before.elr} - set(isr):
            return f"{record}: eligible without having been in the ISR {before.isr}"
        if before.isr and not isr and not (new.elr or new.last_known_elr):
            return f"{record}: the ISR is empty, and no replica is known that may lead"
        fenced = [each for each in (leader, *joined) if self._fenced.get(each)]
        if fenced and (elected or joined):
            return f"{record}: {fenced} are fenced"
        least = self._min_isr.get(self._names.get(record.topic_id, ""), 0)
        if 0 < least <= min(len(isr), len(new.replicas)) and set(new.elr) - set(before.elr):
            return f"{record}: eligible beside an ISR with which the leader commits, {isr}"
        if elected and leader not in in_sync:
            return f"{record}: leads after {before.leader}, and the ISR was {before.isr}"
        if not set(isr) <= in_sync:
            return f"{record}: {sorted(joined)} join the ISR {before.isr} and no leader asked"
        return ""
