"""One partition on real cores: the controller's rules, and three replicas on logs in memory.

Nothing crosses between them by itself. A test moves requests, responses and metadata by hand.
"""

from __future__ import annotations

import contextlib

from quorate.broker.partition.partition import FollowerFetch, Partition
from quorate.quorum.controller.state.messages import AlterPartitionRequest, IsrChange
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from tests.unit.controller.harness import SESSION_MS, Driver
from tests.unit.partition.harness import append, fetch, partition

LAG_MS = 1_000
TOPIC = "t"


class ReplicatedPartition:
    """Replicas 1, 2 and 3 of one partition. Broker 1 is the first leader.

    `driver` owns the controller, and `replicas` maps each broker to its replica. `acknowledged` is
    the offset below which producers have acknowledgements.
    """

    def __init__(self, *, min_isr: int = 1, unclean: bool = False, elr: bool = False) -> None:
        """Begin with three empty replicas. `unclean` allows unclean elections of the topic, and
        `elr` turns eligible leader replicas on."""
        self._min_isr = min_isr
        self.driver = Driver(elr=elr)
        self.driver.start(1, 2, 3)
        configs = {"unclean.leader.election.enable": "true"} if unclean else {}
        if elr:
            configs["min.insync.replicas"] = str(min_isr)
        self.driver.create(TOPIC, (1, 2, 3), configs=configs)
        self.acknowledged = 0
        topic_id = self.driver.image.topic_id(TOPIC)
        assert topic_id is not None
        self.topic_id = topic_id
        self.replicas = {each: self.new_replica(each) for each in (1, 2, 3)}
        for broker_id in self.replicas:
            self.replay_metadata(broker_id)

    def new_replica(self, broker_id: int) -> Partition:
        """Return a replica with an empty log that has not replayed the metadata log yet."""
        replica = partition(
            broker_id,
            lambda each: self.driver.image.brokers.get(each),  # type: ignore[arg-type]
            replica_lag_time_max_ms=LAG_MS,
            min_insync_replicas=self._min_isr,
        )
        replica.topic_id = self.topic_id
        return replica

    def replay_metadata(self, broker_id: int) -> None:
        """Let a replica replay the metadata log up to its end."""
        value = self.driver.partition(TOPIC)
        if value.leader == broker_id:
            self.replicas[broker_id].make_leader(value, self.driver.now_ms)
        else:
            self.replicas[broker_id].make_follower(value)

    def fetch_in_flight(self, follower: int, offset: int) -> FollowerFetch:
        """Return the Fetch that a follower sends now."""
        leader_epoch = self.driver.partition(TOPIC).leader_epoch
        broker_epoch = self.driver.broker(follower).epoch
        return FollowerFetch(follower, broker_epoch, leader_epoch, offset, leader_epoch, 0)

    def deliver(self, fetch: FollowerFetch, leader: int) -> None:
        """Deliver a Fetch to the leader, as its broker does."""
        replica = self.replicas[leader]
        if replica.leader_error(fetch.leader_epoch) is ErrorCode.NONE:
            with contextlib.suppress(KafkaError):
                replica.follower_fetched(fetch, self.driver.now_ms)

    def restart(self, broker_id: int, incarnation: int) -> None:
        """Restart a broker after its session has expired, without its data."""
        ends_ms = self.driver.now_ms + SESSION_MS
        self.driver.run_until(ends_ms - 1)
        for each in self.replicas:
            if each != broker_id:
                self.driver.heartbeat(each)
        self.driver.run_until(ends_ms)
        self.driver.start(broker_id, incarnation=incarnation)
        self.replicas[broker_id] = self.new_replica(broker_id)
        for each in self.replicas:
            self.replay_metadata(each)

    def replicate(self, source: int, target: int, *, batches: int = 0) -> None:
        """Fetch twice, because the second fetch acknowledges the records of the first. Copy
        `batches`, or all."""
        leader, follower = self.replicas[source], self.replicas[target]
        epoch = self.driver.broker(target).epoch
        for _ in range(2):
            end = follower.log.end_offset
            last_epoch = follower.log.last_epoch
            diverging = fetch(
                leader,
                target,
                end,
                last_fetched_epoch=last_epoch,
                broker_epoch=epoch,
                now_ms=self.driver.now_ms,
            )
            if diverging is not None:
                follower.truncate(diverging)
            elif (batches or leader.log.end_offset) > end:
                data = leader.log.read(end, 1 if batches else 1 << 20)
                follower.append_as_follower(data, wall_ms=0)
            follower.leader_high_watermark(leader.high_watermark)

    def produce(self, leader: int) -> None:
        append(self.replicas[leader], now_ms=self.driver.now_ms)

    def acknowledge(self, leader: int) -> None:
        self.acknowledged = max(self.acknowledged, self.replicas[leader].high_watermark)

    def alter_partition(self, sender: int, change: IsrChange) -> None:
        """Let the controller decide on a proposal that was in flight for a while."""
        epoch = self.driver.broker(sender).epoch
        self.driver.handle(
            AlterPartitionRequest(broker_id=sender, broker_epoch=epoch, changes=(change,))
        )
        self.check()

    def check(self) -> None:
        partition = self.driver.partition(TOPIC)
        for member in (*partition.isr, *partition.elr):
            end = self.replicas[member].log.end_offset
            assert end >= self.acknowledged, (
                f"{member} may be elected, and what is acknowledged from {end} to "
                f"{self.acknowledged} is lost"
            )
