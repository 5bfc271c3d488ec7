"""/healthz, /readyz and /v1/targets of a real node, over real sockets."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from quorate.quorum.node.node_core import NodeCore
from quorate.quorum.raft.control_records import VoterEndpoint
from quorate.quorum.watch.endpoints import targets
from tests.unit.watch.node import get, made, running, until

pytestmark = pytest.mark.timeout(60)


async def test_a_node_is_ready_on_both_ports_once_it_serves(tmp_path: Path) -> None:
    async with made(tmp_path / "node") as node:
        health = await get(node.node_address, "/healthz")
        assert (health.status, health.json["status"]) == (200, "ok")
        early = await node.get("/readyz")
        assert early.status == 503
        assert early.json["ready"] is False
        assert early.json["reasons"][0].startswith("no leader of the metadata quorum is known: ")
        assert "the broker is not registered yet" in early.json["reasons"]
        node.core.start()
        await until(lambda: node.broker.running)
        for address in (node.node_address, node.controller_address):
            ready = await get(address, "/readyz")
            assert (ready.status, ready.json["reasons"]) == (200, [])
            assert ready.json["roles"] == ["broker", "controller"]
            assert ready.headers["Content-Type"] == "application/json"


async def test_a_broker_that_may_be_fenced_is_not_ready(tmp_path: Path) -> None:
    async with running(tmp_path / "node") as node:
        assert node.broker.lifecycle is not None
        node.broker.lifecycle.heard_ms -= 60_001
        answer = await node.get("/readyz")
        assert answer.status == 503
        assert "it may be fenced" in answer.json["reasons"][0]


async def test_a_path_that_is_not_there_names_those_that_are(tmp_path: Path) -> None:
    async with made(tmp_path / "node") as node:
        answer = await node.get("/health")
        assert answer.status == 404
        assert b"/healthz, /readyz, /metrics, /v1/changes" in answer.body


async def test_the_nodes_are_found_as_prometheus_looks_for_them(tmp_path: Path) -> None:
    async with running(tmp_path / "node") as node:
        (found,) = (await node.get("/v1/targets")).json
        assert found["targets"] == [str(node.controller_address)]
        assert found["labels"] == {"node_id": "1", "role": "controller"}


async def test_targets_have_brackets_around_ipv6_addresses(tmp_path: Path) -> None:
    endpoint = VoterEndpoint(name="CONTROLLER", host="::1", port=9093)
    voter = SimpleNamespace(voter_id=7, endpoints=(endpoint,))
    async with made(tmp_path / "node") as node:
        core = SimpleNamespace(voters=(voter,), config=node.core.config, image=node.core.image)
        assert list(targets(cast(NodeCore, core))) == [(7, "controller", "[::1]:9093")]
