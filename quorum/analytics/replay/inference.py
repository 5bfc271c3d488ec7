"""Infers the causes of changes from a log that does not name them, such as Apache Kafka's.

The rules rely on two facts. Kafka's controller writes related records in one batch: fencing a
broker and moving its leaderships is one step. And only few events can cause a change of a given
form.

If the cause is not certain, the result of `why` is None. A batch of the maximum size that Kafka
writes may be a part of a larger change, so `why` infers nothing from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from quorate.quorum.metadata.image import Partition
from quorate.quorum.metadata.records import (
    NO_LEADER,
    RECOVERED,
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)

MAX_CERTAIN_RECORDS = 1_000
"""The number of records from which on a batch may be a part of a larger change."""


@dataclass(slots=True)
class Together:
    """The other events in the batch of a change, as broker ids and topic ids."""

    fenced: set[int] = field(default_factory=set)
    leaving: set[int] = field(default_factory=set)
    """Brokers that began a controlled shutdown."""
    unregistered: set[int] = field(default_factory=set)
    registered: set[int] = field(default_factory=set)
    unfenced: set[int] = field(default_factory=set)
    created: set[bytes] = field(default_factory=set)
    whole: bool = True
    """False if the batch is so large that it may be a part of a larger change."""

    @classmethod
    def of(cls, messages: Iterable[object]) -> Together:
        """Return the events of the records in one batch."""
        said = cls()
        count = 0
        for count, message in enumerate(messages, 1):  # noqa: B007  # the last one is the count
            said._add(message)
        said.whole = count < MAX_CERTAIN_RECORDS
        return said

    def _add(self, message: object) -> None:
        match message:
            case BrokerRegistrationChangeRecord(broker_id=broker):
                if message.fenced == 1:
                    self.fenced.add(broker)
                if message.fenced == -1:
                    self.unfenced.add(broker)
                if message.in_controlled_shutdown == 1:
                    self.leaving.add(broker)
            case FenceBrokerRecord(id=broker):
                self.fenced.add(broker)
            case UnfenceBrokerRecord(id=broker):
                self.unfenced.add(broker)
            case UnregisterBrokerRecord(broker_id=broker):
                self.unregistered.add(broker)
            case RegisterBrokerRecord(broker_id=broker):
                self.registered.add(broker)
            case TopicRecord(topic_id=topic_id):
                self.created.add(topic_id)


@dataclass(frozen=True, slots=True)
class Step:
    """One change of a partition, with the other events of its batch."""

    old: Partition
    new: Partition
    together: Together

    @property
    def lost(self) -> set[int]:
        """Return the brokers that left the ISR or lost the leadership."""
        lost = set(self.old.isr) - set(self.new.isr)
        return lost | ({self.old.leader} - {self.new.leader, NO_LEADER})

    @property
    def joined(self) -> set[int]:
        """Return the brokers that joined the ISR."""
        return set(self.new.isr) - set(self.old.isr)


def why(step: Step) -> str | None:
    """Return the cause as one sentence, or None if the log does not prove one."""
    if not step.together.whole:
        return None
    return next((said for rule in RULES if (said := rule(step)) is not None), None)


def why_created(topic_id: bytes, together: Together) -> str:
    """Return the cause of a new partition as one sentence.

    Unlike `why`, it does not consider that a batch may be a part of a larger change."""
    if topic_id in together.created:
        return "The partition was created with its topic."
    return "The number of partitions of the topic was raised."


def _unclean(step: Step) -> str | None:
    """Explain an unclean election: the new leader was outside the ISR.

    The election is clean if the leader was in the ELR or a reassignment was in progress, and the
    election did not begin a recovery. A partition that is in recovery stays so in any election,
    which then proves nothing unless the last known leader was elected."""
    old, leader = step.old, step.new.leader
    if leader in (NO_LEADER, old.leader) or leader in old.isr:
        return None
    # At the end of a reassignment a replica that caught up may lead immediately.
    clean = leader in old.elr or old.reassigning
    if clean and step.new.leader_recovery_state == RECOVERED:
        return None
    is_last_known = leader in old.last_known_elr and leader not in old.elr
    if clean and old.leader_recovery_state != RECOVERED and not is_last_known:
        return None
    if leader in old.last_known_elr:
        return f"Broker {leader}, the last leader, was elected uncleanly: data may be lost."
    return f"Broker {leader} was elected uncleanly, from outside of the ISR: data may be lost."


def _reassigned(step: Step) -> str | None:
    """Explain the beginning, change and end of a reassignment."""
    old, new = step.old, step.new
    if new.reassigning:
        if (old.replicas, old.adding, old.removing) == (new.replicas, new.adding, new.removing):
            return None
        return "The reassignment was changed." if old.reassigning else "A reassignment began."
    if not old.reassigning:
        at_once = "Its replicas were reassigned at once: nothing had to be copied."
        return at_once if old.replicas != new.replicas else None
    if set(new.replicas) == set(old.replicas) - set(old.removing):
        return "The reassignment was complete: all new replicas were in the ISR."
    if set(new.replicas) == set(old.replicas) - set(old.adding):
        return "The reassignment was cancelled."
    return "Another reassignment took its place and was complete at once."


def _broker_went(step: Step) -> str | None:
    """Explain a loss by a broker that was fenced, shut down, or registered again in the same
    batch."""
    together = step.together
    for brokers, what in (
        (together.unregistered, "was unregistered"),
        (together.leaving, "began to shut down in order"),
        (together.fenced, "was fenced"),
        (together.registered, "registered again after an unclean shutdown"),
    ):
        gone = sorted((step.lost | set(step.old.elr) - set(step.new.elr)) & brokers)
        if gone:
            return f"In the same step {broker_names(gone)} {what}."
    return None


def _broker_came(step: Step) -> str | None:
    """Explain a new leader by a broker that was unfenced in the same batch."""
    leader = step.new.leader
    if step.old.leader == NO_LEADER and leader in step.together.unfenced:
        return f"In the same step broker {leader} was unfenced, so it could lead again."
    return None


def _preferred(step: Step) -> str | None:
    """Explain the election of the preferred leader."""
    old, new = step.old, step.new
    moved = new.leader not in (old.leader, NO_LEADER) and old.leader in new.isr
    if moved and new.leader == new.preferred_leader and old.replicas == new.replicas:
        return "The preferred leader was elected."
    return None


def _caught_up(step: Step) -> str | None:
    """Explain an ISR expansion with an unchanged leader."""
    led = step.old.leader == step.new.leader != NO_LEADER
    if led and step.joined and not step.lost and step.old.replicas == step.new.replicas:
        return f"The leader reported that {broker_names(sorted(step.joined))} had caught up."
    return None


def _fell_behind(step: Step) -> str | None:
    """Explain an ISR shrink with an unchanged leader."""
    quiet = step.old.leader == step.new.leader != NO_LEADER and not step.joined
    if quiet and step.lost and step.old.replicas == step.new.replicas:
        return f"The leader reported that {broker_names(sorted(step.lost))} had fallen behind."
    return None


def _recovered(step: Step) -> str | None:
    """Explain the end of the recovery after an unclean election."""
    if step.old.leader_recovery_state and not step.new.leader_recovery_state:
        return "The leader that was elected uncleanly finished its recovery."
    return None


def _directories(step: Step) -> str | None:
    """Explain a change of log directories only."""
    old, new = step.old, step.new
    placed = replace(old, directories=new.directories, partition_epoch=new.partition_epoch)
    if old.directories != new.directories and placed == new:
        return "A broker placed its replica in a log directory."
    return None


RULES: tuple[Callable[[Step], str | None], ...] = (
    _unclean,
    _reassigned,
    _broker_went,
    _broker_came,
    _preferred,
    _recovered,
    _caught_up,
    _fell_behind,
    _directories,
)
"""The rules in order of precedence. The first rule that applies explains the change."""


def broker_names(brokers: Iterable[int]) -> str:
    """Return "broker 4", "brokers 4 and 5", or "brokers 4, 5 and 6"."""
    return f"broker{'s' if len(named := list(brokers)) > 1 else ''} {listed(named)}"


def listed(numbers: Iterable[int]) -> str:
    """Return the numbers as a list in words. There must be at least one."""
    *most, last = map(str, numbers)
    return f"{', '.join(most)} and {last}" if most else last
