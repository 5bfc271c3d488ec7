"""The HTTP endpoints of a node: /healthz, /readyz, /metrics, /v1/changes, /v1/targets, and those
of `life_cycle.py`.

/v1/targets lists the voters and the registered brokers in the form of Prometheus' HTTP service
discovery. /healthz shows that the process runs, /readyz that its roles can serve.

Every node has one `HttpEndpoints` behind the port that nodes use. Each role of the node adds its
readiness checks and metrics. Values are read from the node's objects when a request arrives, except
that the text of /metrics is reused for a short time (metrics.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from quorate.config.listeners import REPLICATION
from quorate.quorum.ids import NO_NODE
from quorate.quorum.rpc.http import HttpResponse
from quorate.quorum.seams import Address
from quorate.quorum.watch.changes import Changes
from quorate.quorum.watch.http_access import http_access
from quorate.quorum.watch.http_dispatch import HttpDispatch, Query, json_response
from quorate.quorum.watch.http_tokens import HttpTokens
from quorate.quorum.watch.life_cycle import LifeCycle
from quorate.quorum.watch.measures import QuorumMeasures
from quorate.quorum.watch.node_view import NodeView
from quorate.quorum.watch.quorum_reach import quorum_reasons
from quorate.quorum.watch.voting import voting_notes, voting_reasons

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

    from quorate.quorum.watch.metrics import Exposition

Reasons = Callable[[], Iterator[str]]


class HttpEndpoints:
    """The HTTP handlers of one node, run on its event loop.

    `not_ready` holds functions that yield reasons why the node is not ready. `collectors` holds
    functions that yield metric families. The roles of the node add theirs to both when they are
    created."""

    def __init__(self, node: NodeView) -> None:
        self.not_ready: list[Reasons] = [lambda: metadata_reasons(node)]
        self.collectors: list[Callable[[], Iterator[Metric]]] = []
        self.measures = QuorumMeasures(node.clock, node.log.end_offset)
        self._node = node
        self._exposition: Exposition | None = None
        changes = Changes(node.clock, node.log, lambda: node.raft.high_watermark)
        self.life_cycle = LifeCycle(node)
        self.on_image = self.life_cycle.on_image
        self.on_committed = (
            self.measures.on_committed,
            self.life_cycle.on_committed,
            changes.committed,
        )
        """The node calls these functions when the high watermark rises."""
        self.tokens = HttpTokens(node.config)
        self._dispatch = HttpDispatch(
            node.clock,
            {
                "/metrics": self._metrics,
                "/v1/changes": changes.get,
                "/v1/recent-changes": self.life_cycle.recent_changes,
                "/v1/stages": self.life_cycle.stages,
                "/v1/targets": self._targets,
            },
            always={"/healthz": self._healthz, "/readyz": self._readyz},
            access=http_access(node, self.tokens),
        )
        self.accept = self._dispatch.accept

    def reasons(self) -> list[str]:
        """Return the reasons why the node is not ready, those of all its roles."""
        return [reason for reasons in self.not_ready for reason in reasons()]

    async def _healthz(self, query: Query) -> HttpResponse:
        """Return 200 with the delay of the event loop, or 503 if the node has failed.

        The response itself shows that the process is alive and that its loop runs.
        """
        clock = self._node.clock
        asked_ms = clock.now_ms()
        await asyncio.sleep(0)
        found = {**self._who(), "loop_ms": clock.now_ms() - asked_ms}
        if self._node.failed:
            return json_response({"status": "failed", **found}, 503)
        return json_response({"status": "ok", **found})

    async def _readyz(self, query: Query) -> HttpResponse:
        """Return 200 if the node is ready, or 503 with the reasons. The notes change nothing."""
        reasons = self.reasons()
        notes = [*voting_notes(self._node)]
        found = {"ready": not reasons, **self._who(), "reasons": reasons, "notes": notes}
        return json_response(found, 503 if reasons else 200)

    async def _metrics(self, query: Query) -> HttpResponse:
        """Return the metrics. The first request imports prometheus_client."""
        if self._exposition is None:
            from quorate.quorum.watch.metrics import Exposition

            self._exposition = Exposition(
                self._node, self.measures, self.life_cycle, self.collectors
            )
        return await self._exposition.response()

    async def _targets(self, query: Query) -> HttpResponse:
        """Return all known nodes for Prometheus' HTTP service discovery."""
        https = {"__scheme__": "https"} if self._node.config.node_listeners_do_tls else {}
        found = [
            {"targets": [address], "labels": {"node_id": str(node_id), "role": role, **https}}
            for node_id, role, address in sorted(targets(self._node))
        ]
        return json_response(found)

    def _who(self) -> dict[str, object]:
        """Return the identity of the node."""
        node = self._node
        return {
            "node_id": node.me.id,
            "roles": list(node.config.roles),
            "cluster_id": node.cluster_id,
        }


def targets(node: NodeView) -> Iterator[tuple[int, str, str]]:
    """Yield (node id, role, address) of each voter and of each registered broker, fenced or not.

    A node with both roles is reported as a controller. A controller that is not a voter, and a
    broker without an endpoint for other nodes, are left out."""
    controllers = {
        voter.voter_id: str(Address(each.host, each.port))
        for voter in node.voters
        for each in voter.endpoints[:1]
    }
    for node_id, address in controllers.items():
        yield node_id, "controller", address
    name = node.config.inter_broker_listener
    for broker in node.image.brokers.values():
        endpoint = broker.endpoint(REPLICATION) or broker.endpoint(name)
        if endpoint is not None and broker.id not in controllers:
            yield broker.id, "broker", str(Address(endpoint.host, endpoint.port))


def metadata_reasons(node: NodeView) -> Iterator[str]:
    """Yield the reasons why the metadata of a node is not ready.

    The node must reach a majority of the voters, know their leader and a committed record, and have
    replayed all records that it knows to be committed. If its log had lost records, it must have
    caught up again. A controller that is meant to vote must vote (voting.py)."""
    if node.failed:
        yield "the node has failed"
    yield from quorum_reasons(node, knows_leader=node.raft.leader_id != NO_NODE)
    if node.raft.catching_up:
        yield node.lost
    yield from voting_reasons(node)
    high_watermark = node.raft.high_watermark
    if high_watermark <= node.log.start_offset:
        yield "no metadata record is known to be committed yet"
    behind = high_watermark - node.replayed_offset
    if behind > 0:
        yield f"{behind} committed metadata records are not replayed yet"
