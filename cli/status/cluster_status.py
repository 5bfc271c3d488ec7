"""The state of a cluster for `quorate status`: the quorum, the brokers, and the problems.

Problems are found through Kafka's protocol, and thus on any cluster (`partition_problems.py`).
Their causes, and elections that may have lost data, come from Quorate's nodes (`explanations.py`,
`unclean_elections.py`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from quorate.cli.client.admin import Admin
from quorate.cli.client.node_http import NodeHttp
from quorate.cli.client.quorum import Quorum, QuorumLost, describe_quorum
from quorate.cli.cluster.description import describe_cluster
from quorate.cli.status.certificates import certificate_texts
from quorate.cli.status.explanations import Explanations, Key, get_from
from quorate.cli.status.node_answers import READY, NodeAnswer
from quorate.cli.status.partition_problems import (
    UNDER_REPLICATED,
    Group,
    Problem,
    count_states,
    counted,
    groups,
    problems,
    selected,
)
from quorate.cli.status.quorum_health import QuorumHealth, health_of
from quorate.cli.status.unclean_elections import UncleanElection, UncleanElections, election_groups
from quorate.cli.topics.topic_view import MIN_ISR, TopicView, describe, matching, topic_names
from quorate.quorum.ids import NO_NODE
from quorate.quorum.seams import Address

MAX_SHOWN = 20
"""The most problems that the text lists, unless all are requested."""
MAX_GROUPS = 20
"""The most groups of problems that the text lists."""
MAX_ELECTIONS = 5
"""The most unclean elections with a known loss that the text lists one by one, unless all are
requested."""
QUORUM_WAIT_S = 5.0
"""The time, in s, after which a quorum without an active controller counts as lost. An election
takes less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The problems to show: those of topics that match the pattern `topic`, those that concern
    `broker`, and those in the states `only`. None and () select all. If not `every`, the text lists
    the first ones only, and only their causes are searched."""

    topic: str | None = None
    broker: int | None = None
    only: tuple[str, ...] = ()
    every: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLine:
    """The state of one broker. `why` is the cause if it is fenced, and `cause` its name.

    `certificate` says how long the certificate is valid that the broker shows to clients. It is
    empty without TLS."""

    id: int
    address: str
    state: str  # "up", "fenced", or a state of node_answers.py
    rack: str | None
    why: str = ""
    cause: str = ""
    certificate: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The state of the cluster at one moment.

    `voter_lags` is the lag of each voter in records, `silent_voters` those that do not answer, and
    `replaced_voters` those of them that run with another disk (`quorum_health.py`). If
    `quorum_lost` names a reason, the quorum does not answer: the values of the quorum are not
    known, and the rest is the last that the brokers know. `topics` and `partitions` count those of
    the selected topics. `problems` are all selected partitions with a problem, the worst first, and
    `groups` counts them by reason. `unclean_elections` are the newest ones, the newest first.

    If `brokers_silent` names a reason, no broker answers: topics and partitions are not known. In
    such an outage and without a quorum, `nodes` are the controllers as their /readyz shows them."""

    cluster_id: str
    leader: int
    epoch: int
    high_watermark: int
    voter_lags: dict[int, int]
    brokers: tuple[BrokerLine, ...]
    topics: int
    partitions: int
    problems: tuple[Problem, ...]
    counts: dict[str, int] = field(default_factory=dict)
    groups: tuple[Group, ...] = ()
    unclean_elections: tuple[UncleanElection, ...] = ()
    silent_voters: dict[int, int | None] = field(default_factory=dict)
    replaced_voters: tuple[int, ...] = ()
    quorum_lost: str = ""
    brokers_silent: str = ""
    nodes: tuple[NodeAnswer, ...] = ()

    def lines(self, *, every: bool = False) -> Iterator[str]:
        """Yield the lines of the status, with at most MAX_SHOWN problems unless `every`."""
        yield f"Cluster {self.cluster_id}"
        yield f"Quorum: {self.quorum_text()}"
        yield from (each.line() for each in self.nodes)
        for broker in self.brokers:
            rack = f", rack {broker.rack}" if broker.rack else ""
            because = f"; {broker.why}" if broker.why else ""
            tls = f", {broker.certificate}" if broker.certificate else ""
            yield f"Broker {broker.id}: {broker.state}, {broker.address}{rack}{tls}{because}"
        yield self.partitions_text()
        shown = len(self.problems) if every else MAX_SHOWN
        if len(self.problems) > 1:
            most = len(self.groups) if every else MAX_GROUPS
            yield from listed("  by cause: ", [each.line() for each in self.groups], most)
        yield from listed(
            "  ", [problem.line() for problem in self.problems[:shown]], shown, len(self.problems)
        )
        if self.unclean_elections:
            elections = self.unclean_elections
            yield f"Unclean elections: {len(elections)}; records may be lost"
            yield from (f"  {each.line()}" for each in election_groups(elections))
            alone = shown_elections(elections, every=every)
            yield from listed("  ", [each.line() for each in alone], len(alone), len(elections))

    def partitions_text(self) -> str:
        """Return the line with the counts of partitions."""
        if self.brokers_silent:
            return f"Partitions: not known, because no broker answers: {self.brokers_silent}"
        states = counted(count_states(self.problems))
        return f"Partitions: {self.partitions} in {self.topics} topics; {states}"

    def quorum_text(self) -> str:
        """Return the text about the quorum and its voters."""
        if self.quorum_lost and self.brokers_silent:
            return f"LOST: {self.quorum_lost}"
        if self.quorum_lost:
            return f"LOST: {self.quorum_lost}. The state below is the last that the brokers know"
        if self.leader == NO_NODE:
            ready = sum(each.state == READY for each in self.nodes)
            return f"{ready} of {len(self.nodes)} controllers are ready"
        health = QuorumHealth(
            lags=self.voter_lags,
            silent_ms=self.silent_voters,
            replaced=frozenset(self.replaced_voters),
        )
        return (
            f"leader {self.leader}, epoch {self.epoch}, high watermark {self.high_watermark}; "
            f"{health.summary()}; voters {health.voters()}"
        )

    @property
    def is_outage(self) -> bool:
        """Return True if the quorum is lost, no broker answers, or a partition is offline or below
        its min ISR."""
        worst = any(problem.state != UNDER_REPLICATED for problem in self.problems)
        return worst or bool(self.quorum_lost or self.brokers_silent)

    def as_json(self) -> dict[str, Any]:
        """Return the status as JSON values, with every selected problem."""
        found = asdict(replace(self, problems=()))
        return {**found, "problems": [problem.as_json() for problem in self.problems]}

    @property
    def lasting(self) -> Status:
        """Return the status without the values that change all the time, for comparisons."""
        return replace(
            self,
            high_watermark=0,
            voter_lags=dict.fromkeys(self.voter_lags, 0),
            silent_voters=dict.fromkeys(self.silent_voters, None),
            nodes=tuple(replace(each, reasons=()) for each in self.nodes),
        )


def shown_elections(
    elections: Sequence[UncleanElection], *, every: bool
) -> Sequence[UncleanElection]:
    """Return the elections to list one by one: all, or the first ones with a known loss."""
    return elections if every else [each for each in elections if each.lost][:MAX_ELECTIONS]


def listed(prefix: str, lines: Sequence[str], most: int, total: int | None = None) -> Iterator[str]:
    """Yield the first `most` lines, and the number of the others. `total` is the number of all, if
    `lines` are not all."""
    total = len(lines) if total is None else total
    yield from (f"{prefix}{line}" for line in lines[:most])
    if total > most:
        yield f"{prefix}and {total - most} more (--all lists them)"


def read_status(
    admin: Admin,
    explanations: Explanations,
    selection: Selection | None = None,
    elections: UncleanElections | None = None,
    topics: Sequence[TopicView] | None = None,
) -> Status:
    """Return the state of the cluster, with the known causes. `topics` are the selected topics, if
    the caller has read them with `read_topics`.

    If a broker reports that the quorum is lost, or no active controller answers for QUORUM_WAIT_S,
    return what the brokers know. Raise Refused if the
    cluster reports another error, the quorum has no leader, or the pattern of topics is invalid,
    and NotReachable if no node answers."""
    selection = selection or Selection()
    cluster = describe_cluster(admin, fenced=True)
    try:
        quorum, lost = describe_quorum(admin, QUORUM_WAIT_S), ""
    except QuorumLost as error:
        quorum, lost = None, error.reason
    up = frozenset(each.broker_id for each in cluster.brokers if not each.is_fenced)
    certificates = certificate_texts(admin, sorted(up))
    brokers = tuple(
        BrokerLine(
            id=broker.broker_id,
            address=str(Address(broker.host, broker.port)),
            state="fenced" if broker.is_fenced else "up",
            rack=broker.rack,
            certificate=certificates.get(broker.broker_id, ""),
        )
        for broker in sorted(cluster.brokers, key=lambda broker: broker.broker_id)
    )
    if topics is None:
        topics = topics_of(admin, selection.topic, moving=quorum is not None)
    chosen = selected(problems(topics, up), broker=selection.broker, only=selection.only)
    found = Status(
        cluster_id=cluster.cluster_id,
        **quorum_fields(quorum),
        quorum_lost=lost,
        brokers=brokers,
        topics=len(topics),
        partitions=sum(len(topic.partitions) for topic in topics),
        problems=tuple(chosen),
        counts=count_states(chosen),
    )
    if quorum is None:
        return replace(found, groups=tuple(groups(chosen, {})))
    explained = explain(found, quorum, explanations, admin.http, every=selection.every)
    if elections is None:
        return explained
    found_elections = elections.of(
        {topic.topic_id: topic.name for topic in topics},
        found.high_watermark,
        partial(get_from, admin.http, addresses_of(quorum)),
    )
    return replace(explained, unclean_elections=tuple(found_elections))


def quorum_fields(quorum: Quorum | None) -> dict[str, Any]:
    """Return the fields of a status about the quorum, without values if it does not answer."""
    state = None if quorum is None else quorum.state
    health = QuorumHealth(lags={}, silent_ms={}) if quorum is None else health_of(quorum)
    return {
        "leader": NO_NODE if state is None else state.leader_id,
        "epoch": NO_NODE if state is None else state.leader_epoch,
        "high_watermark": NO_NODE if state is None else state.high_watermark,
        "voter_lags": dict(health.lags),
        "silent_voters": dict(health.silent_ms),
        "replaced_voters": tuple(sorted(health.replaced)),
    }


def read_topics(admin: Admin) -> list[TopicView]:
    """Return all topics with their min ISR. Raise as `read_status` does."""
    try:
        describe_quorum(admin, QUORUM_WAIT_S)
    except QuorumLost:
        return topics_of(admin, None, moving=False)
    return topics_of(admin, None, moving=True)


def topics_of(admin: Admin, pattern: str | None, *, moving: bool) -> list[TopicView]:
    """Return the topics that match the pattern, with their min ISR, and with their reassignments if
    `moving`. Raise as `read_status` does."""
    names = matching(topic_names(admin), pattern, exclude_internal=False)
    return describe(admin, names, configs=(MIN_ISR,), moving=moving)


def explain(
    status: Status,
    quorum: Quorum,
    explanations: Explanations,
    nodes: NodeHttp,
    *,
    every: bool = True,
) -> Status:
    """Return the status with the causes that the nodes report, and the groups of the problems. If
    not `every`, only the first MAX_SHOWN problems are explained."""
    fenced = [broker for broker in status.brokers if broker.state == "fenced"]
    shown = status.problems if every else status.problems[:MAX_SHOWN]
    wanted = [*map(broker_key, fenced), *map(problem_key, shown)]
    controllers = addresses_of(quorum)
    known = explanations.of(wanted, status.high_watermark, partial(get_from, nodes, controllers))

    def cause_of(key: Key) -> str:
        return str(known[key]) if key in known else "cause unknown"

    names = {
        broker.id: found.name
        for broker in fenced
        if (found := known.get(broker_key(broker))) is not None
    }
    return replace(
        status,
        brokers=tuple(
            replace(broker, why=cause_of(broker_key(broker)), cause=names.get(broker.id, ""))
            if broker.state == "fenced"
            else broker
            for broker in status.brokers
        ),
        problems=(
            *(replace(problem, why=cause_of(problem_key(problem))) for problem in shown),
            *status.problems[len(shown) :],
        ),
        groups=tuple(groups(status.problems, names)),
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
