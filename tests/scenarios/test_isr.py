"""Historic bugs of brokers, on whole clusters and virtual time (README.md of this folder)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

import pytest

from quorate.broker.kafka.records.list_offsets import (
    CONSUMER,
    LATEST,
    MAX_TIMESTAMP,
    ListOffsetsHandler,
)
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.log.files import checkpoints
from quorate.quorum.log.files.names import PartitionName
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from quorate.quorum.rpc.kafka.server import RequestContext
from tests.sim.run import play, simulation
from tests.sim.scripts import scenarios
from tests.unit.replication.cluster import LOG_DIR, ReplicaCluster, led_by


def played(scenario: scenarios.Scenario) -> None:
    with simulation(scenario.__name__, scenarios.SHAPES.get(scenario)) as stage:
        play(stage, scenario(stage))


def test_r55_the_last_replica_standing_loses_power() -> None:
    """KIP-966: a partition is down to its leader, the leader's page cache goes, it comes back and
    leads. Whatever it took alone was below min.insync.replicas and acknowledged to nobody."""
    played(scenarios.alone_in_the_isr)


def test_r55_a_member_of_the_isr_comes_back_without_its_page_cache() -> None:
    """KIP-966: back before its session ended, it would still be in the ISR and could be elected. An
    unclean restart leaves every ISR, with another broker epoch."""
    played(scenarios.power_lost_in_the_isr)


def test_r56_the_isr_shrinks_to_the_leader_and_the_leader_dies() -> None:
    """aphyr 293 (Jepsen on Kafka 0.8, 2013): what was acknowledged by an ISR of one was lost."""
    played(scenarios.shrink_unanswered)


def test_r57_a_leader_that_was_deposed_and_does_not_know_it() -> None:
    """KIP-320, KIP-497: a zombie goes on taking records from clients that do not know it either."""
    played(scenarios.zombie_leader)


def test_r59_a_producer_that_hears_nothing_sends_everything_again() -> None:
    """Redpanda #3039 and #3003: a retry was appended a second time, or out of order."""
    played(scenarios.answers_lost)


def test_r60_a_reader_at_a_leader_whose_followers_do_not_fetch() -> None:
    """Redpanda #3036: what was read above the high watermark went with the leader."""
    played(scenarios.read_before_committed)


SEED = 4
"""In which power cuts take what was not flushed."""


@pytest.fixture
def pair() -> Iterator[ReplicaCluster]:
    cluster = ReplicaCluster(brokers=2, seed=SEED)
    yield cluster
    cluster.close()


@dataclass
class Asked:
    """The context of one request: remembers the answer."""

    version: int = 9
    answers: list[ListOffsetsResponse] = field(default_factory=list)

    def respond(self, response: ListOffsetsResponse) -> None:
        self.answers.append(response)

    def respond_steps(self, response: ListOffsetsResponse) -> IncrementalWork[None]:
        self.respond(response)
        yield from ()


def latest_offset(
    cluster: ReplicaCluster, broker_id: int, timestamp: int = LATEST, version: int = 9
) -> tuple[ErrorCode, int]:
    handler = ListOffsetsHandler(cluster.nodes[broker_id].replicas)
    wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topic = ListOffsetsTopic(name="t", partitions=(wanted,))
    asked = Asked(version)
    request = ListOffsetsRequest(replica_id=CONSUMER, topics=(topic,))
    for _ in handler.list_offsets(cast(RequestContext, asked), request) or ():
        pass
    (partition,) = asked.answers[0].topics[0].partitions
    return ErrorCode.of(partition.error_code), partition.offset


def test_r61_a_new_leader_that_knows_a_lower_high_watermark(pair: ReplicaCluster) -> None:
    """KIP-207: a consumer asked for the end of the log, then asked the next leader, and the end had
    gone back. Until it knows what was committed the new leader does not tell, and a consumer that
    had read on waits there."""
    topic = pair.create("t", [led_by(1, 2)])
    pair.run(50)
    for _ in range(3):
        pair.produce(1, topic)
    while pair.offsets(topic)[1] != (3, 3):
        pair.run(0.1)
    end_offset, high_watermark = pair.offsets(topic)[2]
    assert end_offset == 3 > high_watermark, "it hears of it with its next fetch"
    assert latest_offset(pair, 1) == (ErrorCode.NONE, 3)
    pair.network.isolate("b1")
    pair.change(topic, leader=2)
    pair.spread(2)
    pair.run(20)
    assert latest_offset(pair, 2) == (ErrorCode.OFFSET_NOT_AVAILABLE, -1)
    (read_on,) = pair.fetch(2, topic, 3)
    assert (read_on.error, len(read_on.records)) == (0, 0)
    pair.network.heal()
    pair.spread(1)
    pair.run(3_000)
    assert latest_offset(pair, 2) == (ErrorCode.NONE, 3)


@pytest.mark.parametrize("timestamp", [1_700_000_000_000, MAX_TIMESTAMP])
def test_r61_a_new_leader_that_does_not_know_that_a_record_is_committed(
    pair: ReplicaCluster, timestamp: int
) -> None:
    """KIP-207: a consumer that begins at a time got the answer that no record is that late. It
    began at the end, and left committed records out."""
    topic = pair.create("t", [led_by(1, 2)])
    pair.run(50)
    pair.produce(1, topic, timestamp_ms=1_700_000_000_000)
    while pair.offsets(topic)[1] != (1, 1):
        pair.run(0.1)
    assert latest_offset(pair, 1, timestamp) == (ErrorCode.NONE, 0)
    assert pair.offsets(topic)[2] == (1, 0)
    pair.network.isolate("b1")
    pair.change(topic, leader=2)
    pair.spread(2)
    pair.run(20)
    assert latest_offset(pair, 2, timestamp) == (ErrorCode.OFFSET_NOT_AVAILABLE, -1)
    if timestamp >= 0:
        assert latest_offset(pair, 2, timestamp, 4) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    pair.network.heal()
    pair.spread(1)
    pair.run(3_000)
    assert latest_offset(pair, 2, timestamp) == (ErrorCode.NONE, 0)
    if timestamp >= 0:
        assert latest_offset(pair, 2, timestamp + 1) == (ErrorCode.NONE, -1)


def test_r49_a_high_watermark_that_was_written_apart_is_only_a_hint(pair: ReplicaCluster) -> None:
    """etcd #13766, #14685, #17780: the state and the index up to which it was applied were written
    apart, and after a crash one was older than the other. Here the checkpoint of the high watermark
    survives a power cut that takes the records it speaks of."""
    topic = pair.create("t", [led_by(2, 1)])
    pair.run(20)
    for _ in range(5):
        pair.produce(2, topic)
    pair.run(10_100)
    disk = pair.cut_power(1)
    watermarks = checkpoints.read_offsets(disk, LOG_DIR, checkpoints.HIGH_WATERMARKS_NAME)
    assert watermarks == {PartitionName("t", 0): 5}
    pair.network.isolate("b2")
    pair.start(1, disk)
    pair.run(20)
    end_offset, high_watermark = pair.offsets(topic)[1]
    assert high_watermark <= end_offset < 5
