"""The stages of changes on every node, read over HTTP from all nodes at the same time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from quorate.cli.client.node_http import Address, NodeHttp

MAX_THREADS = 16
"""The most nodes that are asked at the same time."""
Marks = list[tuple[int, int]]
"""(end offset, time in ms since 1970) of each movement of a stage, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStages:
    """The answer of one node to GET /v1/stages.

    `offsets` are the ends that its stages have reached, by the names `appended`, `committed`,
    `replayed` and, on a broker, `acted`. `proposals` is None without the broker role, and
    `controller` without the controller role."""

    node_id: int
    roles: tuple[str, ...]
    time_ms: int
    offsets: dict[str, int]
    marks: dict[str, Marks]
    proposals: dict[str, Any] | None
    controller: dict[str, Any] | None

    @property
    def is_active(self) -> bool:
        """Return True if this is the active controller."""
        return self.controller is not None and self.controller["active"] is True

    def time_of(self, stage: str, offset: int) -> int | None:
        """Return the time at which the record at `offset` passed the stage, or None if it has not
        passed or the mark is not known."""
        return next((at_ms for end, at_ms in self.marks.get(stage, ()) if end > offset), None)


Get = Callable[[Address, str], bytes | None]
"""A function that gets a path with its query from one node, or None if it does not answer."""


def body_of(nodes: NodeHttp, address: Address, target: str) -> bytes | None:
    """Return the body of a response with status 200, or None."""
    answer = nodes.get(address, target)
    return answer.body if answer is not None and answer.status == 200 else None


def read_stages(nodes: Mapping[int, Address], start: int, ask: Get) -> dict[int, NodeStages | None]:
    """Return the stages of each node by id, with the marks above `start`, or None for a node that
    does not answer. Blocks for some seconds, or longer with more than MAX_THREADS nodes."""
    with ThreadPoolExecutor(min(MAX_THREADS, len(nodes) or 1)) as threads:
        bodies = threads.map(lambda each: ask(each, f"/v1/stages?from={start}"), nodes.values())
        return {
            node_id: None if body is None else parsed(body)
            for node_id, body in zip(nodes, bodies, strict=True)
        }


def parsed(body: bytes) -> NodeStages | None:
    """Return the stages in a body, or None if no node of Quorate wrote it."""
    try:
        found = json.loads(body)
        return NodeStages(
            node_id=found["node_id"],
            roles=tuple(found["roles"]),
            time_ms=found["time_ms"],
            offsets=dict(found["offsets"]),
            marks={
                name: [(end, at_ms) for end, at_ms in marks]
                for name, marks in found["marks"].items()
            },
            proposals=found.get("proposals"),
            controller=found.get("controller"),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def broker_addresses(controllers: Iterable[Address], ask: Get) -> dict[int, Address]:
    """Return the HTTP addresses of the brokers that are no controllers, from the first controller
    that answers GET /v1/targets. Empty if none does."""
    for address in controllers:
        body = ask(address, "/v1/targets")
        if body is None:
            continue
        try:
            found = {}
            for each in json.loads(body):
                host, _, port = each["targets"][0].rpartition(":")
                if each["labels"]["role"] == "broker":
                    found[int(each["labels"]["node_id"])] = (host.strip("[]"), int(port))
        except (ValueError, KeyError, TypeError, IndexError, RecursionError):
            continue
        return found
    return {}
