"""The parts that brokers and controllers share, in a real node."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from quorate.quorum.ids import ReplicaKey, Uuid
from quorate.quorum.raft.messages import FetchRequest
from quorate.quorum.rpc.budget import LEAST_READ_BYTES, MAX_NODES_BYTES
from quorate.quorum.rpc.hello import Hello, Peer
from quorate.quorum.rpc.messages import VERSIONS
from quorate.quorum.seams import Address
from tests.unit.rpc.test_budget import Peer as Holder
from tests.unit.watch.node import made

ASKED_BYTES = 8 << 20
DIRECTORY = Uuid(b"d" * 16)
PEER = Peer(
    Hello(
        versions=VERSIONS,
        cluster_id="c",
        node_id=7,
        directory_id=DIRECTORY,
        roles=("broker",),
        incarnation_id=DIRECTORY,
    ),
    Address("10.0.0.7", 1234),
)
FETCH = FetchRequest(
    cluster_id="c",
    replica=ReplicaKey(7, DIRECTORY),
    epoch=1,
    offset=0,
    last_fetched_epoch=0,
    max_wait_ms=0,
    max_bytes=ASKED_BYTES,
    high_watermark=0,
)


def test_fetches_get_less_while_responses_to_other_nodes_take_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The responses to 200 starting brokers are together larger than the budget of one node."""

    async def scenario() -> None:
        async with made(tmp_path) as node:
            core = node.core
            taken: list[FetchRequest] = []
            monkeypatch.setattr(
                core.replica, "request", lambda message, reply: taken.append(message)
            )
            budget = core.resources.memory.nodes
            handle = core.raft_handlers()[FetchRequest]
            holders: list[Holder] = []
            for number in range(200):
                handle(PEER, FETCH, lambda _: None)
                holders.append(Holder(budget, number))
                holders[-1].holds(taken[-1].max_bytes)
            assert taken[0] is FETCH
            assert taken[-1].max_bytes >= LEAST_READ_BYTES
            assert budget.used_bytes <= MAX_NODES_BYTES
            assert not any(each.closed for each in holders)
            for each in holders:
                each.holds(0)

    asyncio.run(scenario())
