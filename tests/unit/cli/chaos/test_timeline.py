"""Events and state intervals from records of the metadata log."""

from __future__ import annotations

from quorate.cli.chaos.timeline.cluster_states import ClusterStates, since_start
from quorate.cli.chaos.timeline.metadata_tail import LoggedRecord
from quorate.cli.chaos.timeline.timeline import FENCED, SERVING, partitions_text
from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.records import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
)
from quorate.quorum.raft.control_records import LeaderChangeMessage

TOPIC, OTHER = Uuid(bytes([7] * 16)), Uuid(bytes([8] * 16))
START_MS = 1_000_000


def logged(ms: int, record: MetadataRecord | LeaderChangeMessage, epoch: int = 1) -> LoggedRecord:
    """Return a record of the log with the timestamp `ms` after the start."""
    return LoggedRecord(ms, epoch, START_MS + ms, record)


def story() -> ClusterStates:
    """Return states after the creation of the topic's partitions."""
    found = ClusterStates(TOPIC, START_MS)
    found.begin([4, 5, 6], active=1)
    created = [
        PartitionRecord(
            partition_id=number,
            topic_id=TOPIC,
            replicas=(4, 5, 6),
            isr=(4, 5, 6),
            leader=4,
            leader_epoch=0,
            partition_epoch=0,
        )
        for number in range(2)
    ]
    assert list(found.apply([logged(-50, each) for each in created])) == []
    return found


def moved(partition: int, leader: int, topic: Uuid = TOPIC) -> PartitionChangeRecord:
    """Return a change of a partition's leader and ISR."""
    return PartitionChangeRecord(
        partition_id=partition, topic_id=topic, leader=leader, isr=(5, 6), cause="session-expired"
    )


def fenced(broker: int, how: int) -> BrokerRegistrationChangeRecord:
    """Return a change of a broker's fencing."""
    return BrokerRegistrationChangeRecord(
        broker_id=broker, broker_epoch=1, fenced=how, cause="session-expired"
    )


def test_a_broker_is_fenced_and_others_lead() -> None:
    told = story()
    events = list(
        told.apply(
            [
                logged(300, moved(0, 5)),
                logged(300, moved(1, 5)),
                logged(300, moved(0, 5, OTHER)),
                logged(300, fenced(4, 1)),
            ]
        )
    )
    assert [(event.ms, event.what, event.node, event.cause) for event in events] == [
        (300, "is fenced", 4, "session-expired"),
        (300, "new leaders: broker 5 for partitions 0, 1", None, "session-expired"),
    ]
    assert told.state(4) == FENCED
    assert told.led_by(4) == []
    assert told.led_by(5) == [0, 1]
    assert told.isr == {0: (5, 6), 1: (5, 6)}
    intervals = [
        (interval.subject, interval.leader, interval.epoch, interval.start_ms, interval.end_ms)
        for interval in told.leadership.close(900)
    ]
    assert intervals == [
        (0, 4, 0, 0, 300),
        (0, 5, 1, 300, 900),
        (1, 4, 0, 0, 300),
        (1, 5, 1, 300, 900),
    ]


def test_it_comes_back() -> None:
    told = story()
    register = RegisterBrokerRecord(
        broker_id=4, broker_epoch=9, incarnation_id=Uuid(bytes(16)), end_points=()
    )
    grown = PartitionChangeRecord(partition_id=1, topic_id=TOPIC, isr=(6, 4, 5), cause="isr-expand")
    records = [logged(10, register), logged(20, fenced(4, -1)), logged(30, grown)]
    events = list(told.apply(records))
    assert [event.what for event in events] == [
        "registers",
        "is unfenced",
        "ISR of partition 1 is 4, 5, 6",
    ]
    assert told.state(4) == SERVING


def test_another_controller_is_active() -> None:
    told = story()
    change = LeaderChangeMessage(version=0, leader_id=2, voters=(), granting_voters=())
    (event,) = told.apply([logged(40, change, epoch=3)])
    assert (event.node, event.what) == (2, "is the active controller, epoch 3")
    assert told.active == 2
    assert [(each.subject, each.end_ms) for each in told.controllers.close(90)] == [
        (1, 40),
        (2, 90),
    ]


def test_a_long_list_is_cut() -> None:
    assert partitions_text([3]) == "partition 3"
    assert partitions_text(list(range(12))) == "partitions 0, 1, 2, 3, 4, 5, 6, 7 and 4 more"


def test_a_record_of_a_wrong_clock_has_its_true_time() -> None:
    hour_ms = 3_600_000
    for offset_ms in (-hour_ms, 0, hour_ms):
        found = since_start(START_MS + 60_000 + offset_ms, START_MS, {0, hour_ms, -hour_ms})
        assert found == 60_000
    assert since_start(START_MS + hour_ms, START_MS, {0}) == hour_ms
    assert since_start(START_MS - 50, START_MS, {0}) == 0


def test_isrs_that_lose_a_replica_are_counted() -> None:
    found = story()
    for isr in ((4, 5), (5, 4, 6), (4, 5, 7), (4, 5, 7)):
        change = PartitionChangeRecord(partition_id=0, topic_id=TOPIC, isr=isr)
        list(found.apply([logged(1, change)]))
    assert found.isr_shrinks == 2
