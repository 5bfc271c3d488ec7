"""One replica's reign as leader: its followers, the ISR and the high watermark they allow.

Lives from the leader epoch that made this replica leader until another takes over. All that comes
out is the next high watermark and, rarely, one proposed ISR change at a time in `proposal`.

Invariants: the high watermark never passes the end offset of a member of the maximal ISR, and does
not move while the committed ISR is below min.insync.replicas (KIP-966). An ISR change is proposed
with the partition epoch it was decided on, so that a zombie's is refused (R57).
"""

from __future__ import annotations

from collections.abc import Callable

from quorate.broker.partition.isr import (
    Committed,
    IsrState,
    Outcome,
    PendingExpand,
    PendingShrink,
    check_transition,
    outcome_of,
)
from quorate.broker.partition.replica_state import UNKNOWN_BROKER_EPOCH, ReplicaState
from quorate.broker.partition.settings import PartitionSettings
from quorate.quorum.controller.messages import IsrChange, IsrChangeResult
from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.image import Broker, Partition
from quorate.quorum.metadata.records import RECOVERED

Brokers = Callable[[int], Broker | None]


class Leadership:
    def __init__(
        self,
        key: tuple[Uuid, int],
        broker_id: int,
        brokers: Brokers,
        settings: PartitionSettings,
    ) -> None:
        self.settings = settings
        self.epoch = -1
        self.partition_epoch = -1
        self.epoch_start_offset = -1
        self.isr: IsrState = Committed(())
        self.replicas: dict[int, ReplicaState] = {}
        self.proposal: IsrChange | None = None
        self._key = key
        self._broker_id = broker_id
        self._brokers = brokers

    def assign(self, value: Partition, end_offset: int, now_ms: int) -> bool:
        """Take over what the metadata log says; True when a new leader epoch begins.

        An epoch that is not newer than ours was learnt from the controller's answer already; taking
        it again would forget a change proposed since, which may have been applied."""
        new_epoch = value.leader_epoch > self.epoch
        if not new_epoch and value.partition_epoch <= self.partition_epoch:
            return False
        # Where epochs were missed, another may have led in between, and followers have truncated:
        # what they had in ours says nothing any more.
        new_leader = self.epoch < 0 or value.leader_epoch > self.epoch + 1
        assert self._broker_id in value.isr, f"leader {self._broker_id} is not in the ISR: {value}"
        known = self.replicas
        self.replicas = {
            each: known.get(each) or ReplicaState(each)
            for each in value.replicas
            if each != self._broker_id
        }
        self._enter(Committed(value.isr))
        self.proposal = None
        self.partition_epoch = value.partition_epoch
        if new_epoch:
            self.epoch = value.leader_epoch
            self.epoch_start_offset = end_offset
            for replica in self.replicas.values():
                replica.reset_for_epoch(
                    new_leader=new_leader,
                    in_isr=replica.broker_id in value.isr,
                    leader_end_offset=end_offset,
                    now_ms=now_ms,
                )
        return new_epoch

    @property
    def effective_min_isr(self) -> int:
        return min(self.settings.min_insync_replicas, len(self.replicas) + 1)

    @property
    def under_min_isr(self) -> bool:
        return len(self.isr.committed) < self.effective_min_isr

    @property
    def complete(self) -> bool:
        """Every replica is in sync, and nothing is left to be proposed."""
        return self.proposal is None and len(self.isr.committed) > len(self.replicas)

    def stale_fetch(self, replica_id: int, broker_epoch: int) -> bool:
        """A fetch that an earlier incarnation of the follower sent."""
        if broker_epoch == UNKNOWN_BROKER_EPOCH:
            return False
        broker = self._brokers(replica_id)
        return broker is not None and broker.epoch > broker_epoch

    def maybe_expand(self, replica: ReplicaState, high_watermark: int) -> None:
        """After a fetch of `replica`. It must hold this epoch's start too: it could otherwise be
        elected without records that are committed but above our high watermark (KIP-207)."""
        state = self.isr
        if state.in_flight or replica.broker_id in state.committed:
            return
        if replica.end_offset < max(high_watermark, self.epoch_start_offset):
            return
        if self._eligible(replica):
            self._enter(PendingExpand(state.committed, replica.broker_id))
            self._propose(Cause.ISR_EXPAND)

    def maybe_shrink(self, end_offset: int, now_ms: int) -> None:
        state = self.isr
        if state.in_flight:
            return
        lag_ms = self.settings.replica_lag_time_max_ms
        leaving = tuple(
            each
            for each in state.committed
            if each != self._broker_id
            and not (
                each in self.replicas and self.replicas[each].caught_up(end_offset, now_ms, lag_ms)
            )
        )
        if leaving:
            self._enter(PendingShrink(state.committed, leaving))
            self._propose(Cause.ISR_SHRINK_LAG)

    def answered(self, change: IsrChange, result: IsrChangeResult) -> None:
        """`change` is the proposal that `result` answers; one no longer ours is old news."""
        state = self.isr
        if isinstance(state, Committed) or change.leader_epoch != self.epoch:
            return
        if change.partition_epoch != self.partition_epoch:
            return
        outcome = outcome_of(result.error)
        if outcome is Outcome.COMMIT:
            if result.leader_epoch == self.epoch and result.partition_epoch >= self.partition_epoch:
                self._enter(Committed(result.isr))
                self.partition_epoch = result.partition_epoch
        elif outcome is Outcome.REVERT:
            self._enter(Committed(state.committed))
        elif outcome is Outcome.PROPOSE_AGAIN:
            self.proposal = change

    def next_high_watermark(self, high_watermark: int, end_offset: int, now_ms: int) -> int:
        """The largest offset that every replica which counts has reached; never less than before.

        A replica about to join holds it back as well, or it would chase it for ever."""
        if self.under_min_isr:
            return high_watermark
        maximal = self.isr.maximal
        lowest = end_offset
        for replica in self.replicas.values():
            if replica.end_offset < lowest and (
                replica.broker_id in maximal or self._joining_soon(replica, end_offset, now_ms)
            ):
                lowest = replica.end_offset
        return max(high_watermark, lowest)

    def low_watermark(self, start_offset: int) -> int:
        """No in-sync replica holds a record below it; -1 until all have fetched in this epoch."""
        in_sync = (self.replicas[each] for each in self.isr.committed if each in self.replicas)
        return min([start_offset, *(replica.start_offset for replica in in_sync)])

    def _joining_soon(self, replica: ReplicaState, end_offset: int, now_ms: int) -> bool:
        lag_ms = self.settings.replica_lag_time_max_ms
        return replica.caught_up(end_offset, now_ms, lag_ms) and self._eligible(replica)

    def _eligible(self, replica: ReplicaState) -> bool:
        broker = self._brokers(replica.broker_id)
        return (
            broker is not None
            and broker.active
            and replica.broker_epoch in (UNKNOWN_BROKER_EPOCH, broker.epoch)
        )

    def _enter(self, state: IsrState) -> None:
        """Replace the state of the ISR. Raise AssertionError if the transition is not allowed."""
        check_transition(self.isr, state)
        assert set(state.committed) <= set(state.maximal), state
        self.isr = state

    def _propose(self, cause: Cause) -> None:
        assert not isinstance(self.isr, Committed)
        assert self._broker_id in self.isr.proposed, "a leader never removes itself from the ISR"
        topic_id, partition_id = self._key
        self.proposal = IsrChange(
            topic_id=topic_id,
            partition_id=partition_id,
            leader_epoch=self.epoch,
            partition_epoch=self.partition_epoch,
            isr=tuple((each, self._broker_epoch(each)) for each in self.isr.proposed),
            leader_recovery_state=RECOVERED,
            cause=cause,
        )

    def _broker_epoch(self, broker_id: int) -> int:
        if broker_id == self._broker_id:
            broker = self._brokers(broker_id)
            return UNKNOWN_BROKER_EPOCH if broker is None else broker.epoch
        replica = self.replicas.get(broker_id)
        return UNKNOWN_BROKER_EPOCH if replica is None else replica.broker_epoch
