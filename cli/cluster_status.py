"""The state of a cluster for `quorate status`: the quorum, the brokers, and the problems.

Problems are found through Kafka's protocol, and thus on any cluster. Their causes come from
Quorate's nodes (`explanations.py`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from quorate.cli.client.admin import Admin
from quorate.cli.cluster import describe_cluster
from quorate.cli.explanations import Explanations, Key, get_from
from quorate.cli.metadata_quorum import Quorum, describe_quorum
from quorate.cli.topic_view import PartitionView, TopicView, describe, topic_names

MAX_SHOWN = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLine:
    """The state of one broker. `why` is the cause if it is fenced."""

    id: int
    address: str
    state: str  # "up" or "fenced"
    rack: str | None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A partition that is offline, below its min ISR or under-replicated.

    `state` is the result of `state_of`. `why` is the visible reason and, after `explain`, the
    cause. `elr` and `last_leader` say which replicas may lead when they return (KIP-966): the
    eligible ones, without data loss, and the last leader, which is None if it is not known."""

    topic: str
    partition: int
    state: str
    leader: int | None
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    why: str
    topic_id: str = ""
    elr: tuple[int, ...] = ()
    last_leader: int | None = None

    def line(self) -> str:
        """Return the line of the status."""
        leader = "none" if self.leader is None else self.leader
        eligible = f", elr {list(self.elr)}" if self.elr else ""
        last = "" if self.last_leader is None else f", last leader {self.last_leader}"
        return (
            f"{self.topic}-{self.partition} {self.state}: leader {leader}, "
            f"isr {list(self.isr)} of {list(self.replicas)}{eligible}{last}: {self.why}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The state of the cluster at one moment.

    `voter_lags` is the lag of each voter in records, and `problems` are all partitions with a
    problem."""

    cluster_id: str
    leader: int
    epoch: int
    high_watermark: int
    voter_lags: dict[int, int]
    brokers: tuple[BrokerLine, ...]
    topics: int
    partitions: int
    problems: tuple[Problem, ...]

    def lines(self) -> Iterator[str]:
        """Yield the lines of the status, with at most MAX_SHOWN problems."""
        lags = ", ".join(f"{node} ({lag} behind)" for node, lag in self.voter_lags.items())
        yield f"Cluster {self.cluster_id}"
        yield (
            f"Quorum: leader {self.leader}, epoch {self.epoch}, "
            f"high watermark {self.high_watermark}; voters {lags}"
        )
        for broker in self.brokers:
            rack = f", rack {broker.rack}" if broker.rack else ""
            because = f"; {broker.why}" if broker.why else ""
            yield f"Broker {broker.id}: {broker.state}, {broker.address}{rack}{because}"
        states = [problem.state for problem in self.problems]
        yield (
            f"Partitions: {self.partitions} in {self.topics} topics; "
            f"{states.count('offline')} offline, {states.count('under-min-isr')} under min ISR, "
            f"{states.count('under-replicated')} under-replicated"
        )
        for problem in self.problems[:MAX_SHOWN]:
            yield f"  {problem.line()}"
        if len(self.problems) > MAX_SHOWN:
            yield f"  and {len(self.problems) - MAX_SHOWN} more"

    @property
    def lasting(self) -> Status:
        """Return the status without the values that change all the time, for comparisons."""
        return replace(self, high_watermark=0, voter_lags=dict.fromkeys(self.voter_lags, 0))


def read_status(admin: Admin, explanations: Explanations) -> Status:
    """Return the state of the cluster, with the known causes.

    Raise Refused if the cluster reports an error or the quorum has no leader, and NotReachable if
    no node answers."""
    cluster = describe_cluster(admin, fenced=True)
    quorum = describe_quorum(admin)
    brokers = tuple(
        BrokerLine(
            id=broker.broker_id,
            address=f"{broker.host}:{broker.port}",
            state="fenced" if broker.is_fenced else "up",
            rack=broker.rack,
        )
        for broker in sorted(cluster.brokers, key=lambda broker: broker.broker_id)
    )
    topics = describe(admin, topic_names(admin))
    up = frozenset(broker.id for broker in brokers if broker.state == "up")
    found = Status(
        cluster_id=cluster.cluster_id,
        leader=quorum.state.leader_id,
        epoch=quorum.state.leader_epoch,
        high_watermark=quorum.state.high_watermark,
        voter_lags=voter_lags(quorum),
        brokers=brokers,
        topics=len(topics),
        partitions=sum(len(topic.partitions) for topic in topics),
        problems=tuple(problems(topics, up)),
    )
    return explain(found, quorum, explanations)


def explain(status: Status, quorum: Quorum, explanations: Explanations) -> Status:
    """Return the status with the causes that the nodes report."""
    fenced = [broker for broker in status.brokers if broker.state == "fenced"]
    wanted = [*map(broker_key, fenced), *map(problem_key, status.problems)]
    controllers = addresses_of(quorum)
    known = explanations.of(wanted, status.high_watermark, partial(get_from, controllers))

    def cause_of(key: Key) -> str:
        return str(known[key]) if key in known else "cause unknown"

    return replace(
        status,
        brokers=tuple(
            replace(broker, why=cause_of(broker_key(broker)))
            if broker.state == "fenced"
            else broker
            for broker in status.brokers
        ),
        problems=tuple(
            replace(problem, why=f"{problem.why}; {cause_of(problem_key(problem))}")
            for problem in status.problems
        ),
    )


def broker_key(broker: BrokerLine) -> Key:
    """Return the broker's key for `Explanations`."""
    return ("broker", "", broker.id)


def problem_key(problem: Problem) -> Key:
    """Return the partition's key for `Explanations`."""
    return ("partition", problem.topic_id, problem.partition)


def addresses_of(quorum: Quorum) -> list[tuple[str, int]]:
    """Return the addresses of the controllers, the leader's first."""
    nodes = sorted(quorum.nodes, key=lambda node: node.node_id != quorum.state.leader_id)
    return [(each.host, each.port) for node in nodes for each in node.listeners]


def voter_lags(quorum: Quorum) -> dict[int, int]:
    """Return the lag of each voter behind the leader, in records.

    Raise Refused if no voter leads."""
    end = quorum.leader.log_end_offset
    voters = sorted(quorum.state.current_voters, key=lambda voter: voter.replica_id)
    return {voter.replica_id: end - voter.log_end_offset for voter in voters}


def problems(topics: Sequence[TopicView], up: frozenset[int]) -> Iterator[Problem]:
    """Yield the partitions that have a problem. `up` are the ids of unfenced brokers."""
    for topic in topics:
        for partition in topic.partitions:
            state = state_of(partition, topic.min_isr)
            if state:
                yield Problem(
                    topic=topic.name,
                    partition=partition.partition,
                    state=state,
                    leader=partition.leader,
                    isr=partition.isr,
                    replicas=partition.replicas,
                    why=why(partition, up),
                    topic_id=topic.topic_id,
                    elr=partition.elr or (),
                    last_leader=next(iter(partition.last_known_elr or ()), None),
                )


def state_of(partition: PartitionView, min_isr: int) -> str:
    """Return the problem of a partition: offline, under-min-isr, under-replicated, or "" for none.

    A partition with fewer replicas than min ISR is under min ISR only if a replica is missing."""
    if partition.leader is None:
        return "offline"
    if len(partition.isr) < min(min_isr, partition.replication_factor):
        return "under-min-isr"
    return "under-replicated" if len(partition.isr) < partition.replication_factor else ""


def why(partition: PartitionView, up: frozenset[int]) -> str:
    """Return the visible reason: a replica's broker is down, or it is up and lags behind."""
    missing = [each for each in partition.replicas if each not in partition.isr]
    down = [each for each in partition.replicas if each not in up]
    behind = [each for each in missing if each in up]
    parts = [f"broker {each} is down" for each in down]
    parts += [f"replica on {each} catches up" for each in behind]
    return "; ".join(parts) or "all its replicas are up"
