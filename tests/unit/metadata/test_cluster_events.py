"""The log lines about a decision: the event, its objects, its cause, and what to do."""

from __future__ import annotations

import pytest

from quorate.quorum.ids import EpochOffset, Uuid
from quorate.quorum.metadata.acl_records import (
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
)
from quorate.quorum.metadata.causes import Cause, with_ends
from quorate.quorum.metadata.cluster_events import cluster_events
from quorate.quorum.metadata.event_texts import MAX_CAUSES, NAMED
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.records import (
    NO_LEADER,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    Endpoint,
    FeatureLevelRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from quorate.quorum.metadata.replay import replay

TOPIC = Uuid(b"orders----------")


def registration(broker_id: int) -> RegisterBrokerRecord:
    endpoint = Endpoint(name="PLAINTEXT", host=f"b{broker_id}", port=9092)
    return RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=Uuid(bytes(15) + bytes([broker_id])),
        broker_epoch=broker_id * 10,
        end_points=(endpoint,),
        rack="r1",
        cause=Cause.REGISTERED,
    )


def image_of(*records: MetadataRecord) -> MetadataImage:
    return replay(MetadataImage(), records, EpochOffset(1, 99), 0)[0]


CLUSTER = image_of(
    registration(1),
    registration(2),
    registration(3),
    TopicRecord(name="orders", topic_id=TOPIC),
    *(
        PartitionRecord(
            partition_id=number, topic_id=TOPIC, replicas=(1, 2, 3), isr=(1, 2, 3), leader=1
        )
        for number in range(5)
    ),
)


def lines(*records: MetadataRecord) -> dict[str, str]:
    """Return the texts of the events of one decision, by kind."""
    after = replay(CLUSTER, records, EpochOffset(1, 200), 0)[0]
    found = cluster_events(records, CLUSTER, after)
    assert len({event.kind for event in found}) == len(found)
    return {event.kind: event.text for event in found}


def change(number: int, leader: int, cause: str = Cause.CONNECTION_LOST) -> PartitionChangeRecord:
    isr = (2, 3) if leader != NO_LEADER else (1,)
    return PartitionChangeRecord(
        partition_id=number, topic_id=TOPIC, leader=leader, isr=isr, cause=cause
    )


def test_a_dead_broker_is_one_event_and_its_leaderships_are_another() -> None:
    fenced = BrokerRegistrationChangeRecord(
        broker_id=1, broker_epoch=10, fenced=1, cause=Cause.CONNECTION_LOST
    )
    found = lines(fenced, *(change(number, 2 + number % 2) for number in range(5)))
    assert found == {
        "broker-fenced": "fenced broker 1 (epoch 10): Its connection closed and its port refused: "
        "it is dead. [connection-lost] Its process has ended. Start the broker again.",
        "leaders-moved": "moved the leadership of 5 partitions (orders-0, orders-1, orders-2 and 2 "
        "more) from broker 1 to broker 2 (3), broker 3 (2): Its connection closed and its port "
        "refused: it is dead. [connection-lost] Its process has ended. Start the broker again.",
    }


def test_partitions_without_a_leader_name_the_brokers_to_start() -> None:
    found = lines(change(0, NO_LEADER, Cause.SESSION_EXPIRED))
    assert found["partitions-offline"].startswith(
        "1 partition without a leader (orders-0): No hear"
    )
    assert found["partitions-offline"].endswith(" Start broker 1 again.")


def test_an_unclean_election_states_the_possible_loss() -> None:
    cause = with_ends(Cause.UNCLEAN_ELECTION, 120, 100)
    assert "data may be lost" in lines(change(0, 2, cause))["leaders-moved"]


ACL = AccessControlEntryRecord(
    id=TOPIC,
    resource_type=2,
    resource_name="orders",
    pattern_type=3,
    principal="User:a\nb",
    host="*",
    operation=3,
    permission_type=3,
)


def test_acls_name_their_resource_and_principal_on_one_line() -> None:
    """A line break in a client's text would let it write lines of its own."""
    removal = RemoveAccessControlEntryRecord(id=TOPIC)
    assert lines(ACL) == {"acls-added": r"added 1 ACL: orders for 'User:a\nb'"}
    before = image_of(ACL)
    (event,) = cluster_events([removal], before, image_of())
    assert event.text == r"removed 1 ACL: orders for 'User:a\nb'"


@pytest.mark.parametrize(
    ("record", "kind", "text"),
    [
        (registration(1), "broker-registered", "broker 1 registered again with epoch 10 at PLAINT"),
        (registration(4), "broker-registered", "broker 4 registered with epoch 40 at PLAINTEXT://"),
        (
            BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=20, fenced=-1),
            "broker-unfenced",
            "unfenced broker 2 (epoch 20).",
        ),
        (
            BrokerRegistrationChangeRecord(
                broker_id=2, broker_epoch=20, fenced=1, cause=Cause.SESSION_EXPIRED
            ),
            "broker-fenced",
            "fenced broker 2 (epoch 20): No heartbeat came for broker.session.timeout.ms. [sess",
        ),
        (
            BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=20, in_controlled_shutdown=1),
            "broker-shutdown",
            "broker 2 (epoch 20) began a controlled shutdown",
        ),
        (
            BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=20, log_dirs=(TOPIC,)),
            "broker-directories",
            "broker 2 (epoch 20) has 1 log directories, before 0",
        ),
        (
            UnregisterBrokerRecord(broker_id=3, broker_epoch=30, cause=Cause.UNREGISTERED),
            "broker-unregistered",
            "removed the registration of broker 3",
        ),
        (
            FeatureLevelRecord(name="metadata.version", feature_level=27),
            "feature-changed",
            "feature metadata.version has level 27, before 0",
        ),
        (RemoveTopicRecord(topic_id=TOPIC), "topics-deleted", "deleted 1 topic: orders"),
        (
            ConfigRecord(resource_type=2, resource_name="orders", name="k", value="secret"),
            "configs-changed",
            "changed 1 config: k of topic orders",
        ),
    ],
)
def test_each_event_has_its_line(record: MetadataRecord, kind: str, text: str) -> None:
    found = lines(record)
    assert list(found) == [kind]
    assert found[kind].startswith(text)
    assert "secret" not in found[kind], "a config's value may be a password"


def isr_change(number: int, isr: tuple[int, ...], cause: str) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=number, topic_id=TOPIC, isr=isr, cause=cause)


def test_isrs_that_shrink_are_one_event_with_the_brokers_that_left() -> None:
    """Kafka's leaders log a line for each partition ("Shrinking ISR from 1,2,3 to 1,2")."""
    lags = [isr_change(number, (1, 3), Cause.ISR_SHRINK_LAG) for number in range(5)]
    assert lines(*lags) == {
        "isr-shrank": "shrank the ISR of 5 partitions (orders-0, orders-1, orders-2 and 2 more) by "
        "broker 2, led by broker 1: A follower did not catch up for replica.lag.time.max.ms. "
        "[isr-shrink-lag]"
    }
    fenced = lines(isr_change(0, (1, 2), Cause.SESSION_EXPIRED))["isr-shrank"]
    assert fenced.startswith("shrank the ISR of 1 partition (orders-0) by broker 3, led by broker")


def test_an_isr_that_expands_is_an_event() -> None:
    before = image_of(
        *(registration(number) for number in (1, 2)),
        TopicRecord(name="orders", topic_id=TOPIC),
        PartitionRecord(partition_id=0, topic_id=TOPIC, replicas=(1, 2), isr=(1,), leader=1),
    )
    record = isr_change(0, (1, 2), Cause.ISR_EXPAND)
    after = replay(before, [record], EpochOffset(1, 200), 0)[0]
    (event,) = cluster_events([record], before, after)
    assert event.kind == "isr-expanded"
    assert event.text.startswith("expanded the ISR of 1 partition (orders-0) by broker 2, led by ")


def test_only_changes_of_isrs_that_leaders_ask_for_are_limited() -> None:
    """A follower that flaps repeats them all the time. A fenced broker is an event of its own."""

    def limited(isr: tuple[int, ...], cause: str) -> str:
        record = isr_change(0, isr, cause)
        after = replay(CLUSTER, [record], EpochOffset(1, 200), 0)[0]
        return cluster_events([record], CLUSTER, after)[0].limited

    assert limited((1, 2), Cause.ISR_SHRINK_LAG)
    assert limited((1, 2), Cause.ISR_SHRINK_LAG) != limited((1, 3), Cause.ISR_SHRINK_LAG)
    assert limited((1, 2), Cause.SESSION_EXPIRED) == ""


def test_a_record_that_changes_nothing_is_no_event() -> None:
    same = isr_change(0, (3, 2, 1), Cause.ISR_EXPAND)
    assert lines(NoOpRecord()) == lines(same) == lines(same, NoOpRecord()) == {}


def test_the_lines_of_a_decision_are_bounded() -> None:
    topics = [
        TopicRecord(name="x" * 200 + str(number), topic_id=Uuid(number.to_bytes(16)))
        for number in range(1, 1000)
    ]
    found = lines(*topics)["topics-created"]
    assert found.startswith("created 999 topics: ")
    assert found.endswith(f" and {999 - NAMED} more")
    causes = [change(0, 2, f"cause-{number}") for number in range(50)]
    after = replay(CLUSTER, causes, EpochOffset(1, 200), 0)[0]
    assert len(cluster_events(causes, CLUSTER, after)) <= MAX_CAUSES + 1
    shrinks = [isr_change(number % 5, (1,), f"cause-{number}") for number in range(50)]
    after = replay(CLUSTER, shrinks, EpochOffset(1, 200), 0)[0]
    assert len(cluster_events(shrinks, CLUSTER, after)) <= MAX_CAUSES + 1
