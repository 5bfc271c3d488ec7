"""The replicas of a rehearsal: they leave ISRs, catch up and join them again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from quorate.quorum.analytics.rehearsal.assumptions import Assumptions, drawn
from quorate.quorum.analytics.rehearsal.requests import proposal
from quorate.quorum.analytics.rehearsal.timeline import Timeline
from quorate.quorum.analytics.rehearsal.troubles import Trouble, Troubles
from quorate.quorum.analytics.rehearsal.virtual_controller import VirtualController
from quorate.quorum.analytics.replay.what_if import setting
from quorate.quorum.controller.partitions.eligible_leaders import MIN_INSYNC_REPLICAS
from quorate.quorum.controller.state.partition_index import PartitionKey
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.delta import Change, ImageDelta
from quorate.quorum.metadata.image import MetadataImage, Partition
from quorate.quorum.metadata.records import NO_LEADER, RECOVERED
from quorate.quorum.seams import Random

RETRY_MS = 500
"""The time after which a leader repeats an ISR change without success."""
CatchingUp = tuple[PartitionKey, int]
"""A partition, and the broker whose replica catches up."""


class VirtualReplicas:
    """The replicas of all partitions, and the count of what happened to the partitions.

    `is_up` returns True if the process of a broker runs. A leader proposes ISRs only while its own
    process runs."""

    def __init__(
        self,
        controller: VirtualController,
        timeline: Timeline,
        assumptions: Assumptions,
        random: Random,
        is_up: Callable[[int], bool],
    ) -> None:
        self.troubles = Troubles()
        self.leader_moves = 0
        self.unclean_elections = 0
        self._controller, self._timeline = controller, timeline
        self._assumptions, self._random, self._is_up = assumptions, random, is_up
        self._catching_up: set[CatchingUp] = set()
        self._without_leader: set[CatchingUp] = set()
        self._keys: defaultdict[int, set[PartitionKey]] = defaultdict(set)
        self._deaths: defaultdict[int, int] = defaultdict(int)
        self._last_leader: dict[PartitionKey, int] = {}

    def begin(self) -> None:
        """Note the state of all partitions before the first fault. Let the replicas of running
        brokers that are out of an ISR catch up."""
        for topic, partition_id, partition in self._image.all_partitions():
            key = (topic.id, partition_id)
            self._last_leader[key] = partition.leader
            for each in partition.replicas:
                self._keys[each].add(key)
            self.troubles.begin(key, self._troubles(key, partition))
        for broker_id in sorted(self._keys):
            if self.is_in_service(broker_id):
                self._catch_up(broker_id)

    @property
    def are_settled(self) -> bool:
        """Return True if no replica catches up that can do so."""
        return not self._catching_up

    def is_in_service(self, broker_id: int) -> bool:
        """Return True if the broker runs and is unfenced."""
        broker = self._image.brokers.get(broker_id)
        return broker is not None and broker.active and self._is_up(broker_id)

    def is_in_sync(self, broker_id: int) -> bool:
        """Return True if the broker is in service, and in the ISR of each of its partitions that
        has a leader."""
        return self.is_in_service(broker_id) and all(
            broker_id in partition.isr
            for partition in map(self._partition, self._keys[broker_id])
            if self._is_led(partition) and broker_id in partition.replicas
        )

    def ended(self, broker_id: int) -> None:
        """Act on the end of a broker's process: its replicas no longer fetch."""
        self._deaths[broker_id] += 1
        death = self._deaths[broker_id]
        self._weigh(self._keys[broker_id])
        lag_ms = self._assumptions.replica_lag_ms
        delay_ms = lag_ms + self._random.randrange(0, lag_ms // 2 + 1)
        self._timeline.after(delay_ms, lambda: self._drop(broker_id, death))

    def began(self, broker_id: int) -> None:
        """Act on the registration of a new process of the broker."""
        self._weigh(self._keys[broker_id])

    def _drop(self, broker_id: int, death: int) -> None:
        """Let the leaders remove the replicas of a broker that has fetched nothing for too long."""
        if self._is_up(broker_id) or self._deaths[broker_id] != death:
            return
        if not self._controller.is_active:
            self._timeline.after(RETRY_MS, lambda: self._drop(broker_id, death))
            return
        for key in sorted(self._keys[broker_id]):
            partition = self._partition(key)
            if broker_id in partition.isr and self._is_led(partition):
                isr = tuple(each for each in partition.isr if each != broker_id)
                self._propose(key, isr, Cause.ISR_SHRINK_LAG)

    def _catch_up(self, broker_id: int) -> None:
        """Let every replica of a broker that is out of the ISR catch up."""
        for key in sorted(self._keys[broker_id]):
            partition = self._partition(key)
            if broker_id in partition.replicas and broker_id not in partition.isr:
                self._catch_up_one((key, broker_id))

    def _catch_up_one(self, catching_up: CatchingUp) -> None:
        if catching_up not in self._catching_up:
            self._catching_up.add(catching_up)
            delay_ms = drawn(self._random, self._assumptions.catch_up_ms)
            self._timeline.after(delay_ms, lambda: self._join(catching_up))

    def _join(self, catching_up: CatchingUp) -> None:
        """Let the leader add a replica that has caught up."""
        key, broker_id = catching_up
        partition = self._partition(key)
        joined_or_removed = broker_id in partition.isr or broker_id not in partition.replicas
        if joined_or_removed or not self.is_in_service(broker_id):
            self._catching_up.discard(catching_up)
        elif not self._is_led(partition):
            self._catching_up.discard(catching_up)
            self._without_leader.add(catching_up)
        elif self._propose(key, (*partition.isr, broker_id), Cause.ISR_EXPAND):
            self._catching_up.discard(catching_up)
        else:
            self._timeline.after(RETRY_MS, lambda: self._join(catching_up))

    def _propose(self, key: PartitionKey, isr: tuple[int, ...], cause: Cause) -> bool:
        """Return True if the controller took the leader's new ISR."""
        request = proposal(self._image, key, isr, cause, self._min_isr_of(key))
        response = self._controller.handle(request, self._timeline.now_ms)
        return response is not None and not response.error and not response.results[0].error

    # --------------------------------------------------------------------------------- the metadata

    def follow(self, delta: ImageDelta) -> None:
        """Act on a change of the metadata."""
        for broker_id, of_broker in delta.brokers.items():
            if of_broker.new is not None and of_broker.new.active and self._is_up(broker_id):
                self._catch_up(broker_id)
        changes = {
            (topic_id, partition_id): change
            for topic_id, of_topic in delta.topics.items()
            for partition_id, change in of_topic.partitions.items()
        }
        moved = sum(self._has_moved(key, change) for key, change in changes.items())
        lost = sum(_lost_its_leader(change) for change in changes.values())
        self.leader_moves += moved
        if moved or lost:
            self._timeline.tell(f"{moved} partitions get another leader, {lost} lose theirs")
        self._weigh(changes)
        for catching_up in sorted(self._without_leader):
            if self._is_led(self._partition(catching_up[0])):
                self._without_leader.discard(catching_up)
                self._catch_up_one(catching_up)

    def _has_moved(self, key: PartitionKey, change: Change[Partition]) -> bool:
        """Return True if the partition has another leader than its last one. Count the election if
        it was unclean."""
        old, new = change.old, change.new
        if new is None or new.leader in (NO_LEADER, self._last_leader.get(key, NO_LEADER)):
            return False
        self._last_leader[key] = new.leader
        if old is not None and _is_unclean(old, new):
            self.unclean_elections += 1
            self._timeline.tell(f"unclean election: broker {new.leader} may lack records")
        return True

    def _weigh(self, keys: Iterable[PartitionKey]) -> None:
        for key in keys:
            troubles = self._troubles(key, self._partition(key))
            self.troubles.update(key, frozenset(troubles), self._timeline.now_ms)

    def _troubles(self, key: PartitionKey, partition: Partition) -> list[Trouble]:
        """Return the reasons for which the partition cannot be written now."""
        if not self._is_led(partition):
            return [Trouble.LEADERLESS]
        troubles = []
        if len(partition.isr) < min(self._min_isr_of(key), len(partition.replicas)):
            troubles.append(Trouble.BELOW_MIN)
        if not all(map(self._is_up, partition.isr)):
            troubles.append(Trouble.WAITING)
        return troubles

    def _is_led(self, partition: Partition) -> bool:
        return partition.leader != NO_LEADER and self._is_up(partition.leader)

    @property
    def _image(self) -> MetadataImage:
        return self._controller.image

    def _partition(self, key: PartitionKey) -> Partition:
        return self._image.topics[key[0]].partitions[key[1]]

    def _min_isr_of(self, key: PartitionKey) -> int:
        found = setting(self._image, self._image.topics[key[0]].name, MIN_INSYNC_REPLICAS)
        return self._assumptions.min_isr if found is None else int(found)


def _is_unclean(old: Partition, new: Partition) -> bool:
    """Return True if the new leader may lack records.

    The end of a reassignment may elect a replica that joins the ISR in the same change."""
    if new.leader in (*old.isr, *old.elr):
        return False
    return not old.reassigning or new.leader_recovery_state != RECOVERED


def _lost_its_leader(change: Change[Partition]) -> bool:
    old, new = change.old, change.new
    return old is not None and old.leader != NO_LEADER and (new is None or new.leader == NO_LEADER)
