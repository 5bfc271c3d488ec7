"""The changes in flight: their stages, and the nodes that delay each. All functions are pure.

A change of a leader, an ISR or replicas passes five stages: it is requested, appended by the active
controller, committed by a majority of the voters, replayed by each broker that hosts the partition,
and acted on there. A change is in flight until every host that is not fenced has acted on it. A
fenced broker delays nothing, because it leads nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from quorate.cli.status.node_stages import NodeStages

MAX_SHOWN = 20
"""The most changes, and the most reassignments, that the text lists unless all are requested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """A node that delays a change. `what` completes the sentence "the change waits for"."""

    node_id: int
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change with the times of its stages, in ms since 1970, and the nodes that delay it.

    `replayed_ms` and `acted_ms` are by host. A time is None, or a host is missing, if the stage is
    not reached or its time is not known any more. `delays` is empty if the change is complete."""

    offset: int
    topic: str
    partition: int
    change: dict[str, Any]
    cause: str
    hosts: tuple[int, ...]
    requested_ms: int
    appended_ms: int
    committed_ms: int | None
    replayed_ms: dict[int, int] = field(default_factory=dict)
    acted_ms: dict[int, int] = field(default_factory=dict)
    delays: tuple[Delay, ...] = ()

    def line(self, now_ms: int) -> str:
        """Return the line of the status."""
        what = ", ".join(f"{name} {value}" for name, value in self.change.items())
        cause = f" ({self.cause})" if self.cause else ""
        times = [f"appended {span(self.requested_ms, self.appended_ms)} after its request"]
        if self.committed_ms is not None:
            times.append(f"committed after {span(self.requested_ms, self.committed_ms)}")
        times += [
            f"broker {host} acted after {span(self.requested_ms, self.acted_ms[host])}"
            for host in self.hosts
            if host in self.acted_ms
        ]
        age = span(self.requested_ms, now_ms)
        waits = f"; for {age} it waits for " + ", ".join(
            f"node {each.node_id} {each.what}" for each in self.delays
        )
        return (
            f"offset {self.offset} {self.topic}-{self.partition} {what}{cause}: {', '.join(times)}"
            f"{waits if self.delays else ''}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A reassignment in progress. `waits_for` are the added replicas outside of the ISR."""

    topic: str
    partition: int
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    waits_for: tuple[int, ...]

    def line(self) -> str:
        """Return the line of the status."""
        waits = ", ".join(f"replica on {each}" for each in self.waits_for)
        return (
            f"{self.topic}-{self.partition} adds {list(self.adding)}, removes "
            f"{list(self.removing)}: waits for {waits or 'the controller'}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesReport:
    """The stages of all nodes, and the changes that were decided recently.

    `nodes` has None for a node that does not answer. `changes` are in the order of the log.
    `is_partial` is True if the active controller keeps more changes than it was asked for."""

    time_ms: int
    committed: int
    nodes: dict[int, NodeStages | None]
    changes: tuple[Change, ...]
    moves: tuple[Move, ...]
    is_partial: bool = False

    @property
    def in_flight(self) -> list[Change]:
        """Return the changes that a node delays."""
        return [change for change in self.changes if change.delays]

    def lines(self, *, every: bool = False) -> Iterator[str]:
        """Yield the lines of the status. With `every`, complete changes are listed, too."""
        yield f"Metadata: committed up to offset {self.committed}"
        for node_id, node in sorted(self.nodes.items()):
            yield f"Node {node_id}: {node_text(node, self.committed)}"
        delayed = self.in_flight
        more = " at least" if self.is_partial else ""
        yield f"Changes in flight:{more} {len(delayed)}; reassignments: {len(self.moves)}"
        shown: tuple[Change, ...] | list[Change] = self.changes if every else delayed[:MAX_SHOWN]
        yield from (f"  {change.line(self.time_ms)}" for change in shown)
        if len(delayed) > len(shown):
            yield f"  and {len(delayed) - len(shown)} more (--all lists them)"
        moves = self.moves if every else self.moves[:MAX_SHOWN]
        yield from (f"  {move.line()}" for move in moves)
        if len(self.moves) > len(moves):
            yield f"  and {len(self.moves) - len(moves)} more (--all lists them)"

    @property
    def lasting(self) -> tuple[Any, ...]:
        """Return the changes in flight and the reassignments, for comparisons."""
        changes = tuple((change.offset, change.delays) for change in self.in_flight)
        return (changes, self.moves, frozenset(id_ for id_, each in self.nodes.items() if each))

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON values. The marks of the nodes are left out, because the
        changes have their times."""
        return {
            "time_ms": self.time_ms,
            "committed": self.committed,
            "is_partial": self.is_partial,
            "nodes": [
                {"node_id": node_id, "answers": False}
                if node is None
                else {"answers": True, **asdict(replace(node, marks={}))}
                for node_id, node in sorted(self.nodes.items())
            ],
            "changes": [asdict(change) for change in self.changes],
            "reassignments": [asdict(move) for move in self.moves],
        }


def node_text(node: NodeStages | None, committed: int) -> str:
    """Return the stages of a node, its queue and its ISR proposals as text."""
    if node is None:
        return "does not answer"
    roles = ",".join(node.roles) + (", active" if node.is_active else "")
    parts = [f"{stage} {end}{behind(end, committed)}" for stage, end in node.offsets.items()]
    if node.is_active and node.controller is not None:
        queue = node.controller
        oldest = f" (the oldest for {queue['oldest_ms']} ms)" if queue["queued"] else ""
        parts.append(f"waiting requests: {queue['queued']}{oldest}")
        parts.append(f"uncommitted answers: {queue['uncommitted']}")
    if node.proposals is not None and node.proposals["waiting"]:
        parts.append(
            f"ISR proposals without an answer: {node.proposals['waiting']} (the oldest for "
            f"{node.proposals['oldest_ms']} ms)"
        )
    return f"{roles}; {', '.join(parts)}"


def behind(end: int, committed: int) -> str:
    """Return the number of records between an end and the high watermark, in brackets."""
    return f" ({committed - end} behind)" if end < committed else ""


def span(start_ms: int, end_ms: int) -> str:
    """Return a duration. Clocks of two nodes may differ, so it may come out negative: then 0."""
    return f"{max(0, end_ms - start_ms)} ms"


def traced(
    line: Mapping[str, Any],
    nodes: Mapping[int, NodeStages | None],
    up: frozenset[int],
    voter_ends: Mapping[int, int],
    leader: int,
) -> Change:
    """Return the change in a line of /v1/recent-changes, with its stages on each host.

    `up` are the ids of unfenced brokers, `voter_ends` the log end offsets of the voters, and
    `leader` is the id of the quorum's leader. An uncommitted change waits for the voters that lack
    it, or for the leader if none does."""
    offset = line["offset"]
    hosts = tuple(line["hosts"])
    times: dict[str, dict[int, int]] = {"replayed": {}, "acted": {}}
    for host in hosts:
        node = nodes.get(host)
        for stage, found in times.items():
            at_ms = None if node is None else node.time_of(stage, offset)
            if at_ms is not None:
                found[host] = at_ms
    committed = any(node and node.offsets["committed"] > offset for node in nodes.values())
    if committed:
        delays = tuple(host_delays(offset, [each for each in hosts if each in up], nodes))
    else:
        delays = tuple(
            Delay(node_id=voter, what="to append it")
            for voter, end in voter_ends.items()
            if end <= offset
        ) or (Delay(node_id=leader, what="to commit it"),)
    return Change(
        offset=offset,
        topic=line["topic"] or line["topic_id"],
        partition=line["partition"],
        change=dict(line["change"]),
        cause=line["cause"] or "",
        hosts=hosts,
        requested_ms=line["requested_ms"],
        appended_ms=line["appended_ms"],
        committed_ms=line["committed_ms"],
        replayed_ms=times["replayed"],
        acted_ms=times["acted"],
        delays=delays,
    )


def host_delays(
    offset: int, hosts: Iterable[int], nodes: Mapping[int, NodeStages | None]
) -> Iterator[Delay]:
    """Yield the hosts that have not replayed, or not acted on, a committed change."""
    for host in hosts:
        node = nodes.get(host)
        if node is None:
            yield Delay(node_id=host, what="to answer")
        elif node.offsets["replayed"] <= offset:
            yield Delay(node_id=host, what="to replay it")
        elif node.offsets.get("acted", 0) <= offset:
            yield Delay(node_id=host, what="to act on it")
