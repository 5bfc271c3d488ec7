"""The events of decisions are logged at their commit, and only then."""

from __future__ import annotations

import logging

import pytest

from quorate.quorum.ids import EpochOffset, Uuid
from quorate.quorum.log_limit import INTERVAL_MS
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.records import PartitionChangeRecord, PartitionRecord, TopicRecord
from quorate.quorum.metadata.replay import replay
from quorate.quorum.node.controller.cluster_event_log import MAX_WAITING, ClusterEventLog
from tests.unit.rpc.kafka.fakes import FakeClock


def decide(log: ClusterEventLog, offset: int) -> None:
    """Decide to create a topic with one record at this offset."""
    record = TopicRecord(name=f"t{offset}", topic_id=Uuid(offset.to_bytes(16)))
    after, _ = replay(MetadataImage(), [record], EpochOffset(1, offset), 0)
    log.decided(offset, [record], MetadataImage(), after)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def log(clock: FakeClock, caplog: pytest.LogCaptureFixture) -> ClusterEventLog:
    caplog.set_level(logging.INFO)
    return ClusterEventLog(clock)


def test_an_event_waits_for_its_commit(
    log: ClusterEventLog, caplog: pytest.LogCaptureFixture
) -> None:
    decide(log, 5)
    decide(log, 6)
    log.committed(5)
    assert caplog.messages == []
    log.committed(6)
    assert caplog.messages == ["created 1 topic: t5 (offset 5)"]
    log.committed(7)
    assert caplog.messages[1:] == ["created 1 topic: t6 (offset 6)"]


def test_the_events_of_a_deposed_controller_never_happened(
    log: ClusterEventLog, caplog: pytest.LogCaptureFixture
) -> None:
    decide(log, 5)
    log.deactivated(1, 0)
    caplog.clear()
    log.committed(100)
    assert caplog.messages == [], "another leader's record is at this offset"


def test_the_waiting_events_are_bounded_and_the_others_are_counted(
    log: ClusterEventLog, caplog: pytest.LogCaptureFixture
) -> None:
    for offset in range(1, MAX_WAITING + 6):
        decide(log, offset)
    log.committed(MAX_WAITING + 10)
    assert len(caplog.messages) == MAX_WAITING + 1
    assert caplog.messages[-1].startswith("5 more events were not logged")


def test_a_flapping_follower_gets_one_line_in_an_interval(
    log: ClusterEventLog, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    topic = TopicRecord(name="t", topic_id=Uuid(bytes([1] * 16)))
    partition = PartitionRecord(
        partition_id=0, topic_id=topic.topic_id, replicas=(1, 2), isr=(1, 2), leader=1
    )
    before, _ = replay(MetadataImage(), [topic, partition], EpochOffset(1, 1), 0)
    shrink = PartitionChangeRecord(
        partition_id=0, topic_id=topic.topic_id, isr=(1,), cause=Cause.ISR_SHRINK_LAG
    )
    after, _ = replay(before, [shrink], EpochOffset(1, 2), 0)

    for _ in range(3):
        log.decided(2, [shrink], before, after)
        log.committed(3)
    assert len(caplog.messages) == 1
    clock.advance(INTERVAL_MS)
    log.decided(2, [shrink], before, after)
    log.committed(3)
    assert caplog.messages[0].startswith("shrank the ISR of 1 partition (t-0) by broker 2, led by")
    assert caplog.messages[1:] == [f"{caplog.messages[0]} (2 more like it were not logged)"]
