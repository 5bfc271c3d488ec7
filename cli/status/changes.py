"""`quorate status --changes`: reads the stages of all nodes, and the changes in flight.

The order of the reads matters: the changes are read before the stages and the ends of the voters,
so that no stage is older than the change that it is compared with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from quorate.cli.client.admin import Admin
from quorate.cli.client.errors import Refused
from quorate.cli.client.node_http import Address
from quorate.cli.client.quorum import Quorum, describe_quorum
from quorate.cli.cluster.description import describe_cluster
from quorate.cli.status.changes_in_flight import ChangesReport, Move, traced
from quorate.cli.status.node_stages import (
    Get,
    NodeStages,
    body_of,
    broker_addresses,
    read_stages,
)
from quorate.cli.topics.topic_view import MIN_ISR, describe, reassignments

LIMIT = 1_000
"""The most changes that are read."""
MAX_OFFSET = 2**63 - 1


def read_changes(admin: Admin, *, every: bool = False, ask: Get | None = None) -> ChangesReport:
    """Return the stages of all nodes and the changes that are in flight. With `every`, also the
    newest complete ones.

    Blocks for a few requests to each node. Raise Refused if no node serves GET /v1/stages, as those
    of Apache Kafka do not, or if the quorum has no leader. Raise NotReachable if no node answers
    requests of Kafka's protocol."""
    ask = ask or partial(body_of, admin.http)
    quorum = describe_quorum(admin)
    controllers = controller_addresses(quorum)
    nodes = {**controllers, **broker_addresses(controllers.values(), ask)}
    first = {id_: node for id_, node in read_stages(nodes, MAX_OFFSET, ask).items() if node}
    if not first:
        raise Refused("no node of this cluster answers GET /v1/stages, as those of Quorate do")
    up = frozenset(
        each.broker_id
        for each in describe_cluster(admin, fenced=True).brokers
        if not each.is_fenced
    )
    committed = max(node.offsets["committed"] for node in first.values())
    start = max(0, committed - LIMIT)
    if not every:
        start = min([committed, *(acted_end(each, first, start) for each in up)])
    lines, is_partial = recent_changes(first, nodes, start, ask)
    answering = {node_id: nodes[node_id] for node_id in first}
    stages = {**dict.fromkeys(nodes), **read_stages(answering, start, ask)}
    voters = describe_quorum(admin).state.current_voters
    ends = {voter.replica_id: voter.log_end_offset for voter in voters}
    answered = [node for node in stages.values() if node]
    leader = quorum.state.leader_id
    return ChangesReport(
        time_ms=max((node.time_ms for node in answered), default=0),
        committed=max((node.offsets["committed"] for node in answered), default=committed),
        nodes=stages,
        changes=tuple(traced(line, stages, up, ends, leader) for line in lines),
        moves=tuple(moves(admin)),
        is_partial=is_partial,
    )


def acted_end(broker: int, first: Mapping[int, NodeStages], unknown: int) -> int:
    """Return the end of the records that a broker has acted on. If it does not answer, return the
    end that it had replayed at its last heartbeat, or `unknown`."""
    node = first.get(broker)
    if node is not None:
        return node.offsets.get("acted", unknown)
    reported = (
        each["replayed"]
        for active in first.values()
        if active.controller is not None and active.is_active
        for each in active.controller["brokers"]
        if each["id"] == broker and each["replayed"] is not None
    )
    return next(reported, unknown)


def controller_addresses(quorum: Quorum) -> dict[int, Address]:
    """Return the first address of each controller by id, the leader's first."""
    nodes = sorted(quorum.nodes, key=lambda node: node.node_id != quorum.state.leader_id)
    return {
        node.node_id: (node.listeners[0].host, node.listeners[0].port)
        for node in nodes
        if node.listeners
    }


def recent_changes(
    first: Mapping[int, NodeStages], nodes: Mapping[int, Address], start: int, ask: Get
) -> tuple[list[dict[str, Any]], bool]:
    """Return the newest changes at `start` or above that the active controller keeps, and True if
    there are more than LIMIT. Empty if it does not answer."""
    active = next((id_ for id_, node in first.items() if node.is_active), None)
    if active is None:
        return [], False
    body = ask(nodes[active], f"/v1/recent-changes?from={start}&limit={LIMIT}")
    lines = [json.loads(line) for line in (body or b"").splitlines()]
    return lines, len(lines) >= LIMIT


def moves(admin: Admin) -> list[Move]:
    """Return the reassignments in progress."""
    names = sorted({name for name, _ in reassignments(admin)})
    return [
        Move(
            topic=topic.name,
            partition=each.partition,
            adding=each.adding,
            removing=each.removing,
            waits_for=tuple(broker for broker in each.adding if broker not in each.isr),
        )
        for topic in describe(admin, names, configs=(MIN_ISR,))
        for each in topic.partitions
        if each.adding or each.removing
    ]
