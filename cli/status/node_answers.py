"""The answers of nodes to GET /readyz, for the minutes in which Kafka's protocol says nothing: no
broker answers, or the quorum is lost.

All nodes are asked at the same time, because each that is paused costs a timeout."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from quorate.cli.client.node_http import Answer, NodeHttp
from quorate.quorum.seams import Address

MAX_AT_ONCE = 16
"""The most nodes that are asked at the same time."""
MAX_REASONS = 3
"""The most reasons of one node that are shown."""
READY, NOT_READY, SILENT = "ready", "not ready", "does not answer"


@dataclass(frozen=True, slots=True)
class Place:
    """The HTTP address of a node, its role, and its id if it is known."""

    role: str
    host: str
    port: int
    id: int | None = None

    @property
    def address(self) -> str:
        """Return HOST:PORT, with brackets around an IPv6 address."""
        return str(Address(self.host, self.port))


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAnswer:
    """The state of one node: READY, NOT_READY or SILENT. `reasons` say why it is not ready, or why
    the request failed. `id` is None if the node does not answer and its id is not known."""

    role: str
    id: int | None
    address: str
    state: str
    reasons: tuple[str, ...] = ()
    cluster_id: str = ""

    def line(self) -> str:
        """Return the line of the status."""
        name = self.role.capitalize() + ("" if self.id is None else f" {self.id}")
        return f"{name}: {self.state}, {self.address}{self.why(': ')}"

    def why(self, prefix: str = "") -> str:
        """Return the reasons after the prefix, or an empty string without reasons."""
        return prefix + "; ".join(self.reasons[:MAX_REASONS]) if self.reasons else ""


def ask_nodes(http: NodeHttp, places: Sequence[Place]) -> list[NodeAnswer]:
    """Return the answer of each node, in the order of `places`. Blocks for a few seconds at most,
    and longer for more than MAX_AT_ONCE nodes that do not answer."""
    if not places:
        return []
    with ThreadPoolExecutor(min(len(places), MAX_AT_ONCE)) as pool:
        found = pool.map(lambda each: http.ask((each.host, each.port), "/readyz"), places)
        return [answer_of(*each) for each in zip(places, found, strict=True)]


def answer_of(place: Place, answer: Answer | str) -> NodeAnswer:
    """Return the state that an answer means. A text is the reason why there is none."""
    silent = NodeAnswer(role=place.role, id=place.id, address=place.address, state=SILENT)
    if isinstance(answer, str):
        return replace(silent, reasons=(answer,))
    found = readiness_in(answer.body)
    if found is None:
        return replace(silent, reasons=(f"HTTP {answer.status}; is it a node of Quorate?",))
    if place.id not in (None, found["node_id"]):
        return replace(silent, reasons=(f"node {found['node_id']} answers there",))
    return NodeAnswer(
        role=place.role,
        id=found["node_id"],
        address=place.address,
        state=READY if found["ready"] else NOT_READY,
        reasons=tuple(map(str, found["reasons"])),
        cluster_id=str(found["cluster_id"]),
    )


def readiness_in(body: bytes) -> dict[str, Any] | None:
    """Return the content of an answer to GET /readyz, or None if it is something else."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    types = {"ready": bool, "reasons": list, "node_id": int, "cluster_id": str}
    if not isinstance(found, dict):
        return None
    return found if all(type(found.get(key)) is each for key, each in types.items()) else None
