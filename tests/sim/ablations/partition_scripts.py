"""Scripted histories of one partition: the controller's rules and three replicas, by hand.

A message between them moves only when a script moves it. `check` requires the same as the
partition's walk: every member of the ISR has all acknowledged records, because any of them may be
elected.
"""

from __future__ import annotations

from dataclasses import replace

from quorate.broker.replication.partitions.replication_throttle import ALL_PARTITIONS, UNLIMITED
from quorate.quorum.metadata.records import BrokerRegistrationChangeRecord, PartitionChangeRecord
from quorate.quorum.protocol.schemas.configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from tests.unit.controller.harness import SESSION_MS, Driver
from tests.unit.partition.harness import result, take_proposal
from tests.unit.partition.replicated_partition import LAG_MS, TOPIC, ReplicatedPartition
from tests.unit.replication.cluster import ReplicaCluster, led_by


def proposal_from_before_a_fence() -> None:
    """Let 1 propose that 3, which was out of the ISR and has caught up, joins it. The controller
    removes 3 again while the proposal is in flight."""
    run = ReplicatedPartition()
    run.driver.propose_isr(TOPIC, (1, 2))
    for each in run.replicas:
        run.replay_metadata(each)
    run.produce(1)
    for follower in (2, 3):
        run.replicate(1, follower)
    late = take_proposal(run.replicas[1])
    run.driver.append([PartitionChangeRecord(topic_id=run.topic_id, partition_id=0, isr=(1, 2))])
    run.replay_metadata(1)
    run.driver.now_ms += 2 * LAG_MS
    run.produce(1)
    run.replicate(1, 2)
    run.acknowledge(1)
    run.alter_partition(1, late)


def fetch_of_an_earlier_incarnation() -> None:
    """Delay a Fetch of 2. Before it arrives, 2 loses its disk and joins the ISR again with fewer
    records. The leader must not count the offset of the old Fetch."""
    run = ReplicatedPartition()
    for _ in range(3):
        run.produce(1)
    late = run.fetch_in_flight(2, offset=3)
    run.restart(2, incarnation=2)
    run.replicate(1, 2, batches=1)
    run.replicate(1, 3, batches=1)
    run.alter_partition(1, take_proposal(run.replicas[1]))
    run.replay_metadata(1)
    assert 2 in run.driver.partition(TOPIC).isr
    run.deliver(late, 1)
    run.replicate(1, 3)
    run.acknowledge(1)
    run.check()


def fetch_of_an_older_epoch() -> None:
    """Delay a Fetch of 2. Before it arrives, 3 leads with fewer records, so 2 truncates its log.
    Then 1, which was away, leads again with all records, and gets the old Fetch."""
    run = ReplicatedPartition()
    run.produce(1)
    for follower in (2, 3):
        run.replicate(1, follower)
    for _ in range(2):
        run.produce(1)
    run.replicate(1, 2)
    late = run.fetch_in_flight(2, offset=3)
    for leader, isr in ((3, (1, 2, 3)), (1, (1, 2))):
        change = PartitionChangeRecord(
            topic_id=run.topic_id, partition_id=0, leader=leader, isr=isr
        )
        run.driver.append([change])
        if leader == 3:  # 1 learns of this leader too late
            for each in (2, 3):
                run.replay_metadata(each)
            run.replicate(3, 2)
    run.replay_metadata(1)
    run.replay_metadata(2)
    run.deliver(late, 1)
    run.acknowledge(1)
    run.check()


def read_from_a_follower_before_it_is_committed() -> None:
    """Let a consumer read from the follower 2 a record that 3, which is in the ISR, does not have.
    Then 3 leads, and 2 truncates the record."""
    cluster = ReplicaCluster()
    try:
        topic = cluster.create("t", [led_by(1, 2, 3)])
        cluster.run(50)
        cluster.produce(1, topic, b"committed")
        cluster.run(1200)
        cluster.network.isolate("b3")
        cluster.produce(1, topic, b"not committed")
        cluster.run(600)
        assert [end for end, _ in cluster.offsets(topic).values()] == [2, 2, 1]
        read = cluster.fetch(2, topic, 1, rack="")[0]
        cluster.kill(1)
        cluster.network.heal()
        cluster.change(topic, leader=3, isr=(2, 3))
        cluster.spread()
        cluster.run(600)
        cluster.produce(3, topic, b"another")
        cluster.run(1200)
        kept = cluster.content(2, topic)[1]
        seen = bytes(read.records)
        assert seen in (b"", kept), "R60: a consumer has read a record that no replica has any more"
    finally:
        cluster.close()


def acks_all_while_a_throttle_is_exceeded() -> None:
    """Let 2, a member of the ISR, copy more records of a throttled partition than the rate
    allows."""
    cluster = ReplicaCluster(brokers=2)
    try:
        cluster.throttled = {"leader": ALL_PARTITIONS}
        cluster.nodes[1].replicas.limit_replication(10, UNLIMITED, UNLIMITED)
        topic = cluster.create("t", [led_by(1, 2)])
        cluster.run(50)
        for _ in range(5):
            answers = cluster.produce(1, topic, bytes(1000))
            cluster.run(400)
            assert answers, "acks=all was not answered: the throttle holds the ISR back"
    finally:
        cluster.close()


def elected_while_fenced() -> None:
    """Let the leader die while its first successor in the order of assignment is fenced."""
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
    """Let the only member of the ISR die while the other replica lags."""
    driver = Driver()
    driver.start(1, 2)
    driver.create(TOPIC, (1, 2))
    driver.propose_isr(TOPIC, (1,))
    driver.run_until(SESSION_MS - 1)
    driver.heartbeat(2)
    driver.run_until(SESSION_MS)
    leader = driver.partition(TOPIC).leader
    assert leader == -1, f"the partition is led by {leader}, which is not in its ISR"


def committed_by_the_leader_alone() -> None:
    """Let the leader commit alone after 2 and 3 left the ISR, with min.insync.replicas=1."""
    run = ReplicatedPartition(min_isr=1, elr=True)
    run.driver.now_ms += 2 * LAG_MS
    run.produce(1)
    run.replicas[1].check_followers(run.driver.now_ms)
    run.alter_partition(1, take_proposal(run.replicas[1]))
    run.replay_metadata(1)
    run.acknowledge(1)
    run.check()


def alone() -> ReplicatedPartition:
    """Leave 1 alone in the ISR, which is then below min.insync.replicas. All have one record."""
    run = ReplicatedPartition(min_isr=2, elr=True)
    run.produce(1)
    for follower in (2, 3, 2, 3):
        run.replicate(1, follower)
    run.acknowledge(1)
    run.driver.now_ms += 2 * LAG_MS
    run.produce(1)
    run.replicas[1].check_followers(run.driver.now_ms)
    run.alter_partition(1, take_proposal(run.replicas[1]))
    run.replay_metadata(1)
    assert run.driver.partition(TOPIC).elr == (2, 3)
    return run


def eligible_until_the_disk_is_lost() -> None:
    """Restart 2, which is eligible, without its data."""
    run = alone()
    run.restart(2, incarnation=2)
    run.check()


def a_leader_that_does_not_know_the_min_isr() -> None:
    """Raise min.insync.replicas to 2 while the leader still applies 1, and let it remove 2 and 3
    from the ISR. The leader gets the answer before it replays the config."""
    run = ReplicatedPartition(min_isr=1, elr=True)
    set_min_isr(run, 2)
    run.driver.now_ms += 2 * LAG_MS
    run.produce(1)
    leader = run.replicas[1]
    leader.check_followers(run.driver.now_ms)
    change = take_proposal(leader)
    run.alter_partition(1, change)
    partition = run.driver.partition(TOPIC)
    answer = result(change, isr=partition.isr, partition_epoch=partition.partition_epoch)
    leader.isr_answered(change, answer, run.driver.now_ms)
    run.acknowledge(1)
    run.check()


def min_isr_lowered() -> None:
    """Lower min.insync.replicas while the leader is alone in an ISR below the old value."""
    run = alone()
    set_min_isr(run, 1)
    run.driver.now_ms += 2 * LAG_MS
    leader = run.replicas[1]
    leader.configure(replace(leader.settings, min_insync_replicas=1), run.driver.now_ms)
    run.acknowledge(1)
    run.check()


def set_min_isr(run: ReplicatedPartition, value: int) -> None:
    config = IncrementalAlterableConfig(
        name="min.insync.replicas", config_operation=0, value=str(value)
    )
    resource = IncrementalAlterConfigsResource(
        resource_type=2, resource_name=TOPIC, configs=(config,)
    )
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    assert run.driver.handle(request).responses[0].error_code == 0
