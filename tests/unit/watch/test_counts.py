"""The counters behind the metrics, at the places that count."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from quorate.broker.controller.alter_partition_sender import AlterPartitionSender
from quorate.broker.metrics.traffic import of_fetchers
from quorate.quorum.controller.state.messages import (
    AlterPartitionResponse,
    IsrChange,
    IsrChangeResult,
)
from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.protocol.errors import ErrorCode
from tests.unit.broker.controller_double import ControllerDouble
from tests.unit.controller.harness import SESSION_MS, Driver
from tests.unit.replication.cluster import ReplicaCluster, led_by
from tests.unit.rpc.kafka.fakes import FakeClock


@pytest.fixture
def cluster() -> Iterator[ReplicaCluster]:
    made = ReplicaCluster()
    yield made
    made.close()


def test_an_expired_session_and_an_unclean_election() -> None:
    driver = Driver()
    driver.start(1, 2)
    driver.create("t", (1, 2), configs={"unclean.leader.election.enable": "true"})
    driver.propose_isr("t", (1,))
    driver.run_until(SESSION_MS - 1)
    driver.heartbeat(2)
    assert (driver.controller.expired_sessions, driver.controller.index.unclean_elections) == (0, 0)
    driver.run_until(SESSION_MS)
    assert driver.leader_and_isr("t") == (2, (2,))
    assert (driver.controller.expired_sessions, driver.controller.index.unclean_elections) == (1, 1)
    driver.controller.loaded(driver.image)
    assert driver.controller.index.unclean_elections == 1


def test_a_clean_election_is_none_of_the_unclean_ones() -> None:
    driver = Driver()
    driver.start(1, 2)
    driver.create("t", (1, 2))
    driver.heartbeat(1, want_fence=True)
    assert driver.leader_and_isr("t")[0] == 2
    assert driver.controller.index.unclean_elections == 0


@pytest.mark.parametrize(
    ("cause", "error", "counts"),
    [
        (Cause.ISR_SHRINK_LAG, 0, (1, 0, 0)),
        (Cause.ISR_EXPAND, 0, (0, 1, 0)),
        (Cause.ISR_EXPAND, ErrorCode.INELIGIBLE_REPLICA, (0, 0, 1)),
    ],
)
def test_isr_changes(cause: str, error: int, counts: tuple[int, int, int]) -> None:
    clock, controller = FakeClock(), ControllerDouble()
    sender = AlterPartitionSender(clock, controller, 4, lambda: 7)
    topic_id = Uuid(bytes(15) + b"\x07")
    change = IsrChange(
        topic_id=topic_id,
        partition_id=0,
        leader_epoch=1,
        partition_epoch=3,
        isr=((4, 10),),
        leader_recovery_state=0,
        cause=cause,
    )
    sender.propose(change, lambda result: None)
    clock.advance(0)
    clock.advance(4)
    result = IsrChangeResult(topic_id=topic_id, partition_id=0, error=error)
    controller.answer(AlterPartitionResponse(error=0, results=(result,)))
    assert (sender.shrinks, sender.expands, sender.failures) == counts
    assert (sender.round_trips.count, sender.round_trips.sum_us) == (1, 4000)


def test_what_replication_carries(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [led_by(1, 2, 3)])
    cluster.run(50)
    cluster.hosted(3, topic).adding = True
    answers = cluster.produce(1, topic, b"value")
    cluster.run(50)
    assert [each.error for each in answers] == [0]
    leader, follower, added = (cluster.hosted(broker, topic) for broker in (1, 2, 3))
    size = leader.log.size_bytes
    assert (leader.traffic.messages_in, leader.traffic.bytes_in) == (1, size)
    assert leader.traffic.replication_bytes_out == 2 * size
    assert follower.traffic.replication_bytes_in == size
    assert follower.traffic.reassignment_bytes_in == 0
    assert added.traffic.reassignment_bytes_in == size
    assert leader.traffic.replication_bytes_in == follower.traffic.bytes_in == 0
    lags = {lag for broker in (2, 3) for _, lag in cluster.nodes[broker].replicas.fetchers.lags()}
    assert lags == {0}
    for bound in (0, 1):
        most, by_partition = of_fetchers(cluster.nodes[2].replicas, bound)
        assert (len(most.samples), len(by_partition.samples)) == (1, bound)


def test_a_refused_append_is_counted(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [led_by(1, 2, 3)])
    cluster.run(50)
    cluster.produce(2, topic)
    traffic = cluster.hosted(2, topic).traffic
    assert (traffic.produce_requests, traffic.failed_produce_requests) == (1, 1)
    assert traffic.messages_in == 0
