"""The events of the metadata log, as `quorate history explain` words them. All pure.

An event is one line of GET /v1/changes that a viewer understands: another leader or ISR, a broker
that registers or is fenced, a changed config, and the reason. The state before a change is known
if the log that was read creates the partition. Then the event says what changed, and otherwise
what is the case after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from quorate.cli.console.views.partition_lines import partition_change, partition_record
from quorate.quorum.analytics.log.text import RESOURCES, clock
from quorate.quorum.analytics.replay.broker_story import LEFT
from quorate.quorum.analytics.replay.inference import broker_names, listed
from quorate.quorum.analytics.replay.quorum_story import BY_ADMINISTRATOR, ELECTED
from quorate.quorum.analytics.replay.story import changes, created
from quorate.quorum.metadata.causes import describe
from quorate.quorum.metadata.image import Partition
from quorate.quorum.metadata.records import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    PartitionChangeRecord,
)
from quorate.quorum.metadata.replay import merge, partition_of

MAX_PARTITIONS = 50_000
"""The most partitions whose states are known. The state of a further one is not kept."""
QUORUM = "quorum"
"""The subject of events about the controllers."""
Line = Mapping[str, Any]
"""A line of GET /v1/changes."""


class Event(NamedTuple):
    """One event. Its fields are the columns of the timeline.

    `subject` is "quorum", "broker 4", "topic orders", or the name of a partition, "orders-3".
    `leader` is that of the partition after the event, "none" if it has none, or empty if the event
    does not name it. `brokers` are those that gained or lost something. `time` is UTC."""

    time: str
    offset: int
    subject: str
    leader: int | str
    what: str
    why: str
    brokers: tuple[int, ...] = ()


class Known(NamedTuple):
    """The state of a partition, and the time in ms since 1970 since when it has no leader, or
    None."""

    state: Partition
    lost_ms: int | None = None


class EventReader:
    """Makes events of the lines of the log, which must be given in their order."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._known: dict[tuple[str, int], Known] = {}

    def know(self, names: Mapping[str, str]) -> None:
        """Add the names of topics, by id. Those of deleted topics are removed when the log deletes
        them."""
        self._names.update(names)

    def event_of(self, line: Line) -> Event | None:
        """Return the event of a line, or None if it has none."""
        read = READ.get(line["type"])
        said = None if read is None else read(self, line, line["record"])
        if said is None:
            return None
        cause = line["cause"]
        return Event(
            time=clock(line["timestamp_ms"]),
            offset=line["offset"],
            subject=said.subject,
            leader=said.leader,
            what=said.what,
            why=f"{describe(cause)} [{cause}]" if cause else said.why,
            brokers=said.brokers,
        )

    def elected(self, line: Line, record: Line) -> Said:
        """Return the event of a new active controller."""
        text = f"Node {record['leaderId']} became the active controller, epoch {line['epoch']}."
        return Said(QUORUM, text, ELECTED)

    def voters(self, line: Line, record: Line) -> Said:
        """Return the event of a new set of voters."""
        voters = sorted(each["voterId"] for each in record["voters"])
        return Said(QUORUM, f"The voters are {listed(voters)}." if voters else "", BY_ADMINISTRATOR)

    def feature(self, line: Line, record: Line) -> Said:
        """Return the event of a feature with a new level."""
        text = f"The feature {record['name']} has level {record['featureLevel']}."
        return Said(QUORUM, text, BY_ADMINISTRATOR)

    def registered(self, line: Line, record: Line) -> Said:
        """Return the event of a registered broker."""
        text = f"It registered with broker epoch {record['brokerEpoch']}."
        return Said(f"broker {record['brokerId']}", text, "")

    def unregistered(self, line: Line, record: Line) -> Said:
        """Return the event of a broker whose registration was removed."""
        return Said(f"broker {record['brokerId']}", "It was unregistered.", BY_ADMINISTRATOR)

    def broker_changed(self, line: Line, record: Line) -> Said | None:
        """Return the event of a broker that is fenced, unfenced, or shuts down."""
        fenced = record.get("fenced", 0)
        text = {1: "It was fenced.", -1: "It was unfenced, so that it may lead and join ISRs."}
        if fenced:
            return Said(f"broker {record['brokerId']}", text[fenced], LEFT if fenced > 0 else "")
        if record.get("inControlledShutdown"):
            return Said(f"broker {record['brokerId']}", "It began a controlled shutdown.", "")
        return None

    def config(self, line: Line, record: Line) -> Said:
        """Return the event of a changed config. The nodes hide secrets."""
        kind = RESOURCES.get(record["resourceType"], str(record["resourceType"]))
        value = record.get("value")
        what = f"{record['name']} was {'unset' if value is None else f'set to {value}'}."
        return Said(f"{kind} {record['resourceName'] or '(default)'}", what, BY_ADMINISTRATOR)

    def topic_created(self, line: Line, record: Line) -> Said:
        """Return the event of a new topic."""
        self._names[record["topicId"]] = record["name"]
        return Said(f"topic {record['name']}", "The topic was created.", "")

    def topic_deleted(self, line: Line, record: Line) -> Said:
        """Return the event of a deleted topic."""
        topic_id = record["topicId"]
        for key in [key for key in self._known if key[0] == topic_id]:
            del self._known[key]
        name = self._names.pop(topic_id, topic_id)
        return Said(f"topic {name}", "The topic was deleted.", BY_ADMINISTRATOR)

    def partition_created(self, line: Line, record: Line) -> Said:
        """Return the event of a new partition."""
        state = partition_of(partition_record(record))
        if len(self._known) < MAX_PARTITIONS:
            self._known[record["topicId"], record["partitionId"]] = Known(state)
        leader = leader_text(state.leader)
        return Said(self._partition(record), created(state), "", state.replicas, leader)

    def partition_changed(self, line: Line, record: Line) -> Said | None:
        """Return the event of a changed partition, or None if nothing changed that is shown."""
        key = record["topicId"], record["partitionId"]
        change = partition_change(record)
        known = self._known.get(key)
        named = change.leader != NO_LEADER_CHANGE
        leader = leader_text(change.leader) if named else ""
        if known is None:
            text = " ".join(after(change))
            brokers = {change.leader, *(change.isr or ())}
        else:
            old, new = known.state, merge(known.state, change)
            at_ms = line["timestamp_ms"]
            lost_ms = known.lost_ms if known.lost_ms is not None else at_ms
            text = " ".join(changes(old, new, named, max(0, at_ms - lost_ms)))
            brokers = concerned(old, new)
            leader = leader_text(new.leader)
            self._known[key] = Known(new, lost_ms if new.leader == NO_LEADER else None)
        ids = tuple(sorted(each for each in brokers if each >= 0))
        return Said(self._partition(record), text, "", ids, leader) if text else None

    def _name(self, topic_id: str) -> str:
        return self._names.get(topic_id, topic_id)

    def _partition(self, record: Line) -> str:
        return f"{self._name(record['topicId'])}-{record['partitionId']}"


class Said(NamedTuple):
    """The parts of an event that one record tells. `why` is the reason if no cause is stored."""

    subject: str
    what: str
    why: str
    brokers: tuple[int, ...] = ()
    leader: int | str = ""


def leader_text(leader: int) -> int | str:
    """Return the leader as an event shows it."""
    return "none" if leader == NO_LEADER else leader


def concerned(old: Partition, new: Partition) -> set[int]:
    """Return the brokers that gained or lost the leadership, a place in the ISR, or a replica."""
    found = {*old.isr} ^ {*new.isr} | {*old.replicas} ^ {*new.replicas}
    return found if old.leader == new.leader else found | {old.leader, new.leader}


def after(change: PartitionChangeRecord) -> Iterator[str]:
    """Yield sentences about the state after a change of a partition whose state before is not
    known."""
    if change.leader == NO_LEADER:
        yield "It has no leader: it cannot be written or read."
    elif change.leader != NO_LEADER_CHANGE:
        yield f"Broker {change.leader} leads."
    if change.isr:
        yield f"In sync: {listed(change.isr)}."
    if change.replicas:
        yield f"Its replicas are on {broker_names(change.replicas)}."


READ: Mapping[str, Callable[[EventReader, Line, Line], Said | None]] = {
    "LEADER_CHANGE": EventReader.elected,
    "KRAFT_VOTERS": EventReader.voters,
    "FEATURE_LEVEL_RECORD": EventReader.feature,
    "REGISTER_BROKER_RECORD": EventReader.registered,
    "UNREGISTER_BROKER_RECORD": EventReader.unregistered,
    "BROKER_REGISTRATION_CHANGE_RECORD": EventReader.broker_changed,
    "CONFIG_RECORD": EventReader.config,
    "TOPIC_RECORD": EventReader.topic_created,
    "REMOVE_TOPIC_RECORD": EventReader.topic_deleted,
    "PARTITION_RECORD": EventReader.partition_created,
    "PARTITION_CHANGE_RECORD": EventReader.partition_changed,
}
"""The types of records with events."""
