"""The state of one replica as the leader: its followers, the ISR, and the high watermark they
allow.

A leadership begins when the metadata names this replica as the leader, and ends when it names
another one. The results are the next high watermark, and in `proposal` at most one ISR change at a
time. `isr_membership.py` decides which replicas join and leave.

Invariants:

- The high watermark advances only to an offset that every member of the maximal ISR has reached
  (`isr_states.py` defines the maximal and the committed ISR).
- The high watermark does not move while the committed ISR is below `effective_min_isr` (KIP-966).
- The leader is in the ISR.
- A proposal carries the partition epoch on which the leader decided it. The controller therefore
  refuses a proposal that was decided before a later change, such as that of a former leader
  (R57 in tests/scenarios).
"""

from __future__ import annotations

from collections.abc import Callable

from quorate.broker.partition.isr_membership import has_caught_up, is_isr_eligible, lagging
from quorate.broker.partition.isr_states import (
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
from quorate.quorum.controller.state.messages import IsrChange, IsrChangeResult
from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.image import Broker, Partition
from quorate.quorum.metadata.records import RECOVERED
from quorate.quorum.metadata.replica_directories import replica_directory

Brokers = Callable[[int], Broker | None]
"""A function from a broker id to the broker's registration in the latest image, or None."""


class Leadership:
    """One replica as the leader of its partition, in one or more leader epochs without another role
    between them.

    The event loop owns it. `proposal` is the ISR change that the caller must send to the
    controller. The caller sets it to None when it has taken the change over for sending. `isr`
    stays pending until the answer. `replicas` holds the followers, without this broker."""

    def __init__(
        self,
        key: tuple[Uuid, int],
        broker_id: int,
        brokers: Brokers,
        settings: PartitionSettings,
    ) -> None:
        """Begin without an epoch; `assign` gives the first one. `key` is (topic id, partition id).
        `brokers` returns a broker's registration in the latest image, or None."""
        self.settings = settings
        self.epoch = -1
        self.partition_epoch = -1
        self.epoch_start_offset = -1
        self.isr: IsrState = Committed(())
        self.replicas: dict[int, ReplicaState] = {}
        self.proposal: IsrChange | None = None
        self._value: Partition | None = None
        self._key = key
        self._broker_id = broker_id
        self._brokers = brokers

    def assign(self, value: Partition, end_offset: int, now_ms: int) -> bool:
        """Take the partition's state from the metadata. Return True if a new leader epoch begins.

        `end_offset` is the log end, where a new epoch starts. A newer state replaces the ISR and
        ends any proposal. A state that is not newer is ignored, and the result is False: the
        controller's answer to a proposal may have come before the metadata, and taking the older
        state would drop a later proposal that may have been applied."""
        self._value = value
        new_epoch = value.leader_epoch > self.epoch
        if not new_epoch and value.partition_epoch <= self.partition_epoch:
            return False
        # If epochs were missed, another broker may have led and the followers may have truncated.
        # Their earlier offsets then prove nothing.
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
        """Return min.insync.replicas, but at most the number of replicas."""
        return min(self.settings.min_insync_replicas, len(self.replicas) + 1)

    @property
    def under_min_isr(self) -> bool:
        """Return True if the committed ISR is too small for acks=all."""
        return len(self.isr.committed) < self.effective_min_isr

    @property
    def complete(self) -> bool:
        """Return True if every replica is in the committed ISR and no proposal waits to be sent. A
        proposal that was sent does not count."""
        return self.proposal is None and len(self.isr.committed) > len(self.replicas)

    def stale_fetch(self, replica_id: int, broker_epoch: int) -> bool:
        """Return True if a fetch with `broker_epoch` came from an earlier incarnation of the
        follower than the registered one. Return False if either epoch is unknown."""
        if broker_epoch == UNKNOWN_BROKER_EPOCH:
            return False
        broker = self._brokers(replica_id)
        return broker is not None and broker.epoch > broker_epoch

    def maybe_expand(self, replica: ReplicaState, high_watermark: int) -> None:
        """Propose `replica` for the ISR if it may join (`isr_membership.py`). Call it after a fetch
        of the replica. Do nothing while a proposal has no answer."""
        state = self.isr
        if state.in_flight or replica.broker_id in state.committed:
            return
        if not has_caught_up(replica, high_watermark, self.epoch_start_offset):
            return
        if self._is_eligible(replica):
            self._enter(PendingExpand(state.committed, replica.broker_id))
            self._propose(Cause.ISR_EXPAND)

    def maybe_shrink(self, end_offset: int, now_ms: int) -> None:
        """Propose to remove the members that lag behind the log end `end_offset`
        (`isr_membership.py`). Do nothing while a proposal has no answer."""
        state = self.isr
        if state.in_flight:
            return
        followers = (each for each in state.committed if each != self._broker_id)
        lag_ms = self.settings.replica_lag_time_max_ms
        leaving = lagging(followers, self.replicas, end_offset, now_ms, lag_ms)
        if leaving:
            self._enter(PendingShrink(state.committed, leaving))
            self._propose(Cause.ISR_SHRINK_LAG)

    def answered(self, change: IsrChange, result: IsrChangeResult) -> None:
        """Apply the controller's `result` for the proposal `change`, as OUTCOMES in `isr_states.py`
        says. If the outcome is unknown, `proposal` is set again, and the caller must send it.

        An answer to an outdated proposal is ignored. So is one whose ISR lacks this leader: no
        controller removes it, and the ISR then comes from the metadata log."""
        state = self.isr
        if isinstance(state, Committed) or change.leader_epoch != self.epoch:
            return
        if change.partition_epoch != self.partition_epoch:
            return
        outcome = outcome_of(result.error)
        if outcome is Outcome.COMMIT:
            plausible = result.leader_epoch == self.epoch and self._broker_id in result.isr
            if plausible and result.partition_epoch >= self.partition_epoch:
                self._enter(Committed(result.isr))
                self.partition_epoch = result.partition_epoch
        elif outcome is Outcome.REVERT:
            self._enter(Committed(state.committed))
        elif outcome is Outcome.PROPOSE_AGAIN:
            self.proposal = change

    def next_high_watermark(self, high_watermark: int, end_offset: int, now_ms: int) -> int:
        """Return the largest offset that every relevant replica has reached, or
        `high_watermark` if that is larger. Return `high_watermark` if the ISR is too small
        (`under_min_isr`).

        Relevant are this leader (`end_offset`), the maximal ISR, and the eligible replicas that
        have caught up within replica.lag.time.max.ms. The latter hold the high watermark back too;
        otherwise a replica that is about to join would never reach it."""
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
        """Return the lowest log start offset of the committed ISR, or -1 until all its members have
        fetched from this leader. `start_offset` is this leader's own."""
        in_sync = (self.replicas[each] for each in self.isr.committed if each in self.replicas)
        return min([start_offset, *(replica.start_offset for replica in in_sync)])

    def _joining_soon(self, replica: ReplicaState, end_offset: int, now_ms: int) -> bool:
        """Return True if the replica has caught up and may join the ISR."""
        lag_ms = self.settings.replica_lag_time_max_ms
        return replica.caught_up(end_offset, now_ms, lag_ms) and self._is_eligible(replica)

    def _is_eligible(self, replica: ReplicaState) -> bool:
        assert self._value is not None, "the followers are known from the metadata"
        directory = replica_directory(self._value, replica.broker_id)
        return is_isr_eligible(replica, self._brokers(replica.broker_id), directory)

    def _enter(self, state: IsrState) -> None:
        """Replace the state of the ISR. Raise AssertionError if the transition is not allowed."""
        check_transition(self.isr, state)
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
            min_insync_replicas=self.settings.min_insync_replicas,
        )

    def _broker_epoch(self, broker_id: int) -> int:
        if broker_id == self._broker_id:
            broker = self._brokers(broker_id)
            return UNKNOWN_BROKER_EPOCH if broker is None else broker.epoch
        replica = self.replicas.get(broker_id)
        return UNKNOWN_BROKER_EPOCH if replica is None else replica.broker_epoch
