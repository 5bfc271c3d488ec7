"""The partitions with a problem: their states, their order, and their counts by cause.

A broker that is down can give a problem to every partition of a cluster. The status therefore
counts the problems by cause and broker, worst state first, and lists only the first ones. All
functions are pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quorate.cli.topics.topic_view import PartitionView, TopicView
from quorate.quorum.metadata.internal_topics import INTERNAL_TOPICS

OFFLINE, UNDER_MIN_ISR, UNDER_REPLICATED = "offline", "under-min-isr", "under-replicated"
STATES = (OFFLINE, UNDER_MIN_ISR, UNDER_REPLICATED)
"""The states of a partition with a problem, the worst first. An offline partition has no leader."""
TEXTS = {OFFLINE: "offline", UNDER_MIN_ISR: "under min ISR", UNDER_REPLICATED: "under-replicated"}
RANKS = {state: rank for rank, state in enumerate(STATES)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """The visible reason why a replica is not in sync: its broker is down, or the replica lags.
    `broker` is None if all replicas are up."""

    broker: int | None
    down: bool = False

    def __str__(self) -> str:
        if self.broker is None:
            return "all its replicas are up"
        if self.down:
            return f"broker {self.broker} is down"
        return f"replica on {self.broker} catches up"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A partition that is offline, below its min ISR or under-replicated.

    `state` is one of STATES, and `reasons` are visible through Kafka's protocol. `why` is the
    cause that the metadata log gives for the newest change of the partition, or empty. `elr` and
    `last_leader` say which replicas may lead when they return (KIP-966): the eligible ones, without
    data loss, and the last leader, which is None if it is not known."""

    topic: str
    partition: int
    state: str
    leader: int | None
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    reasons: tuple[Reason, ...]
    why: str = ""
    topic_id: str = ""
    elr: tuple[int, ...] = ()
    last_leader: int | None = None

    def line(self) -> str:
        """Return the line of the status."""
        leader = "none" if self.leader is None else self.leader
        eligible = f", elr {list(self.elr)}" if self.elr else ""
        last = "" if self.last_leader is None else f", last leader {self.last_leader}"
        reasons = "; ".join([*map(str, self.reasons), *([self.why] if self.why else [])])
        return (
            f"{self.topic}-{self.partition} {self.state}: leader {leader}, "
            f"isr {list(self.isr)} of {list(self.replicas)}{eligible}{last}: {reasons}"
        )

    def as_json(self) -> dict[str, Any]:
        """Return the fields as JSON values. `asdict` would take ten times as long."""
        found = {name: getattr(self, name) for name in self.__slots__}
        found["reasons"] = [{"broker": each.broker, "down": each.down} for each in self.reasons]
        return found

    @property
    def order(self) -> tuple[int, bool, str, int]:
        """Return the key of the order: the worst state first, and internal topics last in it."""
        return (RANKS[self.state], self.topic in INTERNAL_TOPICS, self.topic, self.partition)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The number of problems with one reason, by state. A partition that misses two replicas is
    counted in two groups. `why` is the cause of the broker's fencing, or empty."""

    reason: Reason
    counts: Mapping[str, int]
    why: str = ""

    @property
    def total(self) -> int:
        """Return the number of partitions in all states."""
        return sum(self.counts.values())

    def line(self) -> str:
        """Return the line of the status."""
        why = f" ({self.why})" if self.why else ""
        return f"{self.reason}{why}: {counted(self.counts)}"


def problems(topics: Sequence[TopicView], up: frozenset[int]) -> list[Problem]:
    """Return the partitions that have a problem, the worst first. `up` are the ids of unfenced
    brokers."""
    found = [
        Problem(
            topic=topic.name,
            partition=partition.partition,
            state=state,
            leader=partition.leader,
            isr=partition.isr,
            replicas=partition.replicas,
            reasons=tuple(reasons(partition, up)),
            topic_id=topic.topic_id,
            elr=partition.elr or (),
            last_leader=next(iter(partition.last_known_elr or ()), None),
        )
        for topic in topics
        for partition in topic.partitions
        if (state := state_of(partition, topic.min_isr))
    ]
    return sorted(found, key=lambda problem: problem.order)


def selected(
    found: Iterable[Problem], *, broker: int | None = None, only: Sequence[str] = ()
) -> list[Problem]:
    """Return the problems in the states `only`, if it names any, whose reasons name `broker`, if it
    is given. The order stays."""
    return [
        problem
        for problem in found
        if (not only or problem.state in only)
        and (broker is None or any(reason.broker == broker for reason in problem.reasons))
    ]


def groups(found: Iterable[Problem], causes: Mapping[int, str]) -> list[Group]:
    """Return the counts of the problems by reason: those with the worst states first, and then the
    largest. `causes` are the names of the causes of fenced brokers, by broker id."""
    counts: dict[Reason, Counter[str]] = {}
    for problem in found:
        for reason in problem.reasons:
            counts.setdefault(reason, Counter())[problem.state] += 1
    made = [
        Group(
            reason=reason,
            counts={state: each[state] for state in STATES if each[state]},
            why=causes.get(reason.broker, "") if reason.down and reason.broker is not None else "",
        )
        for reason, each in counts.items()
    ]
    return sorted(
        made,
        key=lambda group: (
            [-group.counts.get(state, 0) for state in STATES],
            -1 if group.reason.broker is None else group.reason.broker,
        ),
    )


def counted(counts: Mapping[str, int]) -> str:
    """Return the counts of states as text, such as "2 offline, 7 under-replicated"."""
    return ", ".join(f"{counts[state]} {TEXTS[state]}" for state in STATES if state in counts)


def count_states(found: Iterable[Problem]) -> dict[str, int]:
    """Return the number of problems in each state, also 0."""
    counts = Counter(problem.state for problem in found)
    return {state: counts[state] for state in STATES}


def state_of(partition: PartitionView, min_isr: int) -> str:
    """Return the problem of a partition, one of STATES, or "" for none.

    A partition with fewer replicas than min ISR is under min ISR only if a replica is missing."""
    if partition.leader is None:
        return OFFLINE
    if len(partition.isr) < min(min_isr, partition.replication_factor):
        return UNDER_MIN_ISR
    return UNDER_REPLICATED if len(partition.isr) < partition.replication_factor else ""


def reasons(partition: PartitionView, up: frozenset[int]) -> Iterator[Reason]:
    """Yield the visible reasons: a replica's broker is down, or it is up and lags behind."""
    down = [each for each in partition.replicas if each not in up]
    behind = [each for each in partition.replicas if each in up and each not in partition.isr]
    yield from (Reason(broker=each, down=True) for each in down)
    yield from (Reason(broker=each) for each in behind)
    if not down and not behind:
        yield Reason(broker=None)
