"""The events of lines of the metadata log: subjects, sentences and reasons."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.cli.console.views import change_events
from quorate.cli.console.views.change_events import Event, EventReader
from quorate.quorum.ids import Uuid, uuid_to_text
from quorate.quorum.metadata.causes import Cause, describe

TOPIC_ID = uuid_to_text(Uuid(b"t" * 16))


def line(kind: str, cause: str | None = None, *, at_ms: int = 0, **record: Any) -> dict[str, Any]:
    """Return a line of /v1/changes at offset 7."""
    return {
        "offset": 7,
        "epoch": 3,
        "timestamp_ms": at_ms,
        "type": kind,
        "cause": cause,
        "record": record,
    }


def created(**changed: Any) -> dict[str, Any]:
    values = {"replicas": [1, 2], "isr": [1, 2], "leader": 1, "leaderEpoch": 4, **changed}
    return line("PARTITION_RECORD", topicId=TOPIC_ID, partitionId=0, **values)


def changed(cause: str | None = None, at_ms: int = 0, **values: Any) -> dict[str, Any]:
    key = {"topicId": TOPIC_ID, "partitionId": 0}
    return line("PARTITION_CHANGE_RECORD", cause, at_ms=at_ms, **key, **values)


def only(reader: EventReader, found: dict[str, Any]) -> Event:
    event = reader.event_of(found)
    assert event is not None
    return event


def test_a_change_of_a_known_partition_says_what_changed_and_why() -> None:
    reader = EventReader()
    reader.know({TOPIC_ID: "orders"})
    assert only(reader, created()).brokers == (1, 2)
    event = only(reader, changed(Cause.SESSION_EXPIRED, leader=2, isr=[2]))
    assert event.subject == "orders-0"
    assert event.leader == 2
    assert event.what.startswith(
        "Broker 2 leads instead of broker 1, leader epoch 5. Broker 1 left"
    )
    assert event.why == f"{describe(Cause.SESSION_EXPIRED)} [session-expired]"
    assert event.brokers == (1, 2)
    joined = only(reader, changed(isr=[1, 2]))
    assert (joined.leader, joined.what) == (2, "Broker 1 joined the ISR; in sync: 1 and 2.")
    assert joined.brokers == (1,)


def test_the_time_without_a_leader_is_counted() -> None:
    reader = EventReader()
    reader.event_of(created())
    assert only(reader, changed(leader=-1, at_ms=1_000)).leader == "none"
    assert only(reader, changed(isr=[1], at_ms=2_000)).leader == "none"
    event = only(reader, changed(leader=1, at_ms=4_000))
    assert event.what.startswith("Broker 1 leads after 3 s without a leader")
    assert "leads on" in only(reader, changed(leader=1, at_ms=9_000)).what


def test_a_change_of_an_unknown_partition_says_what_is_the_case_after_it() -> None:
    event = only(EventReader(), changed(leader=2, isr=[2, 3]))
    assert (event.subject, event.leader) == (f"{TOPIC_ID}-0", 2)
    assert event.what == "Broker 2 leads. In sync: 2 and 3."
    assert event.brokers == (2, 3)
    assert only(EventReader(), changed(leader=-1)).leader == "none"
    assert only(EventReader(), changed(isr=[2])).leader == ""
    assert EventReader().event_of(changed(leaderRecoveryState=0)) is None


def test_a_deleted_topic_keeps_its_name_in_its_events_only() -> None:
    reader = EventReader()
    assert only(reader, line("TOPIC_RECORD", name="a", topicId=TOPIC_ID)).subject == "topic a"
    assert only(reader, created()).subject == "a-0"
    assert only(reader, line("REMOVE_TOPIC_RECORD", topicId=TOPIC_ID)).subject == "topic a"
    assert only(reader, changed(leader=2)).subject == f"{TOPIC_ID}-0"


def test_brokers_the_quorum_and_configs() -> None:
    reader = EventReader()
    fenced = line("BROKER_REGISTRATION_CHANGE_RECORD", brokerId=4, fenced=1)
    assert only(reader, fenced)[2:5] == ("broker 4", "", "It was fenced.")
    assert reader.event_of(line("BROKER_REGISTRATION_CHANGE_RECORD", brokerId=4)) is None
    voters = line("KRAFT_VOTERS", voters=[{"voterId": 2}, {"voterId": 1}])
    assert only(reader, voters)[2:5] == ("quorum", "", "The voters are 1 and 2.")
    leader = only(reader, line("LEADER_CHANGE", leaderId=2))
    assert leader.what == "Node 2 became the active controller, epoch 3."
    config = line("CONFIG_RECORD", resourceType=2, resourceName="a", name="k", value=None)
    assert only(reader, config)[2:5] == ("topic a", "", "k was unset.")
    assert reader.event_of(line("NO_OP_RECORD")) is None


def test_the_number_of_known_partitions_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_events, "MAX_PARTITIONS", 0)
    reader = EventReader()
    assert only(reader, created()).what.startswith("Created")
    assert only(reader, changed(leader=2)).what == "Broker 2 leads."
