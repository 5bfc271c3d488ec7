"""Scripted histories of one partition: the controller's rules and three replicas, by hand.

What crosses between them crosses when a script says so. `check` holds what the partition's walk
holds: every member of the ISR, any of whom may be elected, has all that was acknowledged.
"""

from __future__ import annotations

import contextlib

from quorate.broker.partition.partition import FollowerFetch, Partition
from quorate.quorum.controller.messages import AlterPartitionRequest, IsrChange
from quorate.quorum.metadata.records import BrokerRegistrationChangeRecord, PartitionChangeRecord
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from tests.unit.controller.harness import SESSION_MS, Driver
from tests.unit.partition.harness import append, fetch, partition, take_proposal

LAG_MS = 1_000
TOPIC = "t"


class ScenarioRun:
    """Replicas 1, 2, 3 of one partition, which 1 leads; `acknowledged` is the offset below which
    producers were told that all is safe."""

    def __init__(self) -> None:
        self.driver = Driver()
        self.driver.start(1, 2, 3)
        self.driver.create(TOPIC, (1, 2, 3))
        self.acknowledged = 0
        topic_id = self.driver.image.topic_id(TOPIC)
        assert topic_id is not None
        self.topic_id = topic_id
        self.replicas = {each: self._replica(each) for each in (1, 2, 3)}
        for broker_id in self.replicas:
            self.hear(broker_id)

    def _replica(self, broker_id: int) -> Partition:
        replica = partition(
            broker_id,
            lambda each: self.driver.image.brokers.get(each),  # type: ignore[arg-type]
            replica_lag_time_max_ms=LAG_MS,
        )
        replica.topic_id = self.topic_id
        return replica

    def hear(self, broker_id: int) -> None:
        """The replica has replayed the metadata log up to its end."""
        value = self.driver.partition(TOPIC)
        if value.leader == broker_id:
            self.replicas[broker_id].make_leader(value, self.driver.now_ms)
        else:
            self.replicas[broker_id].make_follower(value)

    def sent_by(self, follower: int, offset: int) -> FollowerFetch:
        """A fetch from there, which is now under way."""
        leader_epoch = self.driver.partition(TOPIC).leader_epoch
        broker_epoch = self.driver.broker(follower).epoch
        return FollowerFetch(follower, broker_epoch, leader_epoch, offset, leader_epoch, 0)

    def deliver(self, fetch: FollowerFetch, leader: int) -> None:
        """As the leader's broker takes it."""
        replica = self.replicas[leader]
        if replica.leader_error(fetch.leader_epoch) is ErrorCode.NONE:
            with contextlib.suppress(KafkaError):
                replica.follower_fetched(fetch, self.driver.now_ms)

    def restart(self, broker_id: int, incarnation: int) -> None:
        """Once its session is over; with nothing of what it had."""
        ends_ms = self.driver.now_ms + SESSION_MS
        self.driver.run_until(ends_ms - 1)
        for each in self.replicas:
            if each != broker_id:
                self.driver.heartbeat(each)
        self.driver.run_until(ends_ms)
        self.driver.start(broker_id, incarnation=incarnation)
        self.replicas[broker_id] = self._replica(broker_id)
        for each in self.replicas:
            self.hear(each)

    def replicate(self, source: int, target: int, *, batches: int = 0) -> None:
        """Twice: the second fetch says that the first one's records have arrived. So many batches,
        or all."""
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

    def producers_are_told(self, leader: int) -> None:
        self.acknowledged = max(self.acknowledged, self.replicas[leader].high_watermark)

    def rule(self, sender: int, change: IsrChange) -> None:
        """The controller rules on a proposal that was under way for a while."""
        epoch = self.driver.broker(sender).epoch
        self.driver.handle(
            AlterPartitionRequest(broker_id=sender, broker_epoch=epoch, changes=(change,))
        )
        self.check()

    def check(self) -> None:
        for member in self.driver.partition(TOPIC).isr:
            end = self.replicas[member].log.end_offset
            assert end >= self.acknowledged, (
                f"{member} may be elected, and what is acknowledged from {end} to "
                f"{self.acknowledged} is lost"
            )


def proposal_from_before_a_fence() -> None:
    """3 was out, has caught up, and 1 proposes it. While that is under way 3 is taken out again."""
    run = ScenarioRun()
    run.driver.propose_isr(TOPIC, (1, 2))
    for each in run.replicas:
        run.hear(each)
    run.produce(1)
    for follower in (2, 3):
        run.replicate(1, follower)
    late = take_proposal(run.replicas[1])
    run.driver.append([PartitionChangeRecord(topic_id=run.topic_id, partition_id=0, isr=(1, 2))])
    run.hear(1)
    run.driver.now_ms += 2 * LAG_MS
    run.produce(1)
    run.replicate(1, 2)
    run.producers_are_told(1)
    run.rule(1, late)


def fetch_of_an_earlier_incarnation() -> None:
    """What 2 says of its log is held back by the network. It loses its disk, and is in the ISR
    again, with less, when that arrives: what the others have must not count as its own."""
    run = ScenarioRun()
    for _ in range(3):
        run.produce(1)
    late = run.sent_by(2, offset=3)
    run.restart(2, incarnation=2)
    run.replicate(1, 2, batches=1)
    run.replicate(1, 3, batches=1)
    run.rule(1, take_proposal(run.replicas[1]))
    run.hear(1)
    assert 2 in run.driver.partition(TOPIC).isr
    run.deliver(late, 1)
    run.replicate(1, 3)
    run.producers_are_told(1)
    run.check()


def fetch_of_an_older_epoch() -> None:
    """What 2 says of its log is held back by the network. Another leader has less, so 2 cuts that
    off; then 1, which was away, leads again, with all of it, and hears what 2 had said."""
    run = ScenarioRun()
    run.produce(1)
    for follower in (2, 3):
        run.replicate(1, follower)
    for _ in range(2):
        run.produce(1)
    run.replicate(1, 2)
    late = run.sent_by(2, offset=3)
    for leader, isr in ((3, (1, 2, 3)), (1, (1, 2))):
        change = PartitionChangeRecord(
            topic_id=run.topic_id, partition_id=0, leader=leader, isr=isr
        )
        run.driver.append([change])
        if leader == 3:  # 1 hears of it too late
            for each in (2, 3):
                run.hear(each)
            run.replicate(3, 2)
    run.hear(1)
    run.hear(2)
    run.deliver(late, 1)
    run.producers_are_told(1)
    run.check()


def elected_while_fenced() -> None:
    """The leader dies; its first successor in the order of assignment is fenced."""
    driver = Driver()
    driver.start(1, 2, 3)
    driver.create(TOPIC, (1, 2, 3))
    epoch = driver.broker(2).epoch
    driver.append([BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=epoch, fenced=1)])
    driver.run_until(SESSION_MS - 1)
    driver.heartbeat(3)
    driver.run_until(SESSION_MS)
    leader = driver.partition(TOPIC).leader
    assert leader == 3, f"the partition is led by {leader}, which is fenced"


def only_the_isr_is_elected() -> None:
    """The only member of the ISR dies; the other replica lags behind."""
    driver = Driver()
    driver.start(1, 2)
    driver.create(TOPIC, (1, 2))
    driver.propose_isr(TOPIC, (1,))
    driver.run_until(SESSION_MS - 1)
    driver.heartbeat(2)
    driver.run_until(SESSION_MS)
    leader = driver.partition(TOPIC).leader
    assert leader == -1, f"the partition is led by {leader}, which is not in its ISR"
