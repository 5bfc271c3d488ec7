"""The metadata of the run's clients while a broker stands still."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from quorate.cli import chaos
from quorate.cli.chaos.loading.loader import load
from quorate.cli.chaos.run.setup import Plan, client_maker
from quorate.cli.chaos.workload import brokers as brokers_module
from quorate.cli.chaos.workload.brokers import Brokers
from quorate.cli.client.client_file import ClientFile
from quorate.cli.client.secured_client import SecuredClient
from quorate.quorum.protocol.schemas.metadata import MetadataResponse
from quorate.quorum.rpc.kafka.client import ClientError
from quorate.quorum.seams import Address

PAUSED, WORKING = Address("paused", 1), Address("works", 1)


@asynccontextmanager
async def paused_broker() -> AsyncIterator[tuple[str, int]]:
    """Yield the address of a server that accepts connections and answers nothing."""
    writers: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(
        lambda reader, writer: writers.append(writer), "127.0.0.1", 0
    )
    try:
        yield server.sockets[0].getsockname()
    finally:
        server.close()
        for writer in writers:
            writer.close()
            await writer.wait_closed()


async def test_a_paused_broker_does_not_hold_up_a_client() -> None:
    scenario = load("leader-kill")
    quick = replace(scenario, workload=replace(scenario.workload, request_timeout_ms=100))
    async with paused_broker() as address:
        cluster = cast(Any, type("C", (), {"servers": (address,), "client_file": ClientFile()}))
        client = client_maker(Plan(quick, quick.variants, "t"), cluster)()
        async with asyncio.timeout(10):
            await client.refresh()
        client.close()


class Client:
    """A client of one server, which answers if it works."""

    def __init__(self, address: Address, asked: list[Address]) -> None:
        self.address, self.asked = address, asked

    async def call(self, request: object, timeout_ms: int) -> MetadataResponse:
        """Answer without any broker or topic, or raise ClientError."""
        self.asked.append(self.address)
        if self.address == PAUSED:
            raise ClientError("no answer")
        return MetadataResponse(brokers=(), topics=())


async def test_a_server_that_did_not_answer_is_asked_last() -> None:
    unused = cast(Any, None)
    asked: list[Address] = []
    brokers = Brokers(unused, unused, [PAUSED, WORKING], "t", unused)

    async def connected(address: Address) -> Client:
        return Client(address, asked)

    brokers._connected = cast(Any, connected)  # type: ignore[method-assign]
    while PAUSED not in asked:
        await brokers.refresh()
    asked.clear()
    for _ in range(20):
        await brokers.refresh()
    assert asked == [WORKING] * 20


class Connected:
    """A connection with some requests in flight."""

    closed = False
    in_flight = 1

    async def call(self, request: object, **options: object) -> MetadataResponse:
        """Answer without any broker or topic."""
        return MetadataResponse(brokers=(), topics=())

    def close(self) -> None:
        """Record the call."""
        self.closed = True


async def test_a_connection_is_replaced_before_its_session_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The old connection stays open as long as requests are in flight on it."""
    now_ms, made = 0, list[Connected]()

    async def connected(*_: object) -> SecuredClient:
        made.append(Connected())
        return SecuredClient(cast(Any, made[-1]), now_ms + 100)

    monkeypatch.setattr(brokers_module, "connected", connected)
    clock = cast(Any, type("C", (), {"now_ms": lambda self: now_ms})())
    unused = cast(Any, None)
    brokers = Brokers(unused, clock, [WORKING], "t", unused)
    for now_ms, connections in ((0, 1), (99, 1), (100, 2), (199, 2)):
        await brokers.refresh()
        assert len(made) == connections, now_ms
    assert not made[0].closed
    made[0].in_flight = 0
    now_ms = 200
    await brokers.refresh()
    assert [each.closed for each in made] == [True, False, False]
    brokers.close()
    assert all(each.closed for each in made)


def clients_of(seed: int) -> list[list[int]]:
    """Return the order in which each of four clients of a run with this seed asks nine brokers."""
    scenario = load("leader-kill")
    cluster = cast(Any, type("C", (), {"servers": (), "client_file": ClientFile()}))
    make = client_maker(Plan(scenario, scenario.variants, "t", seed), cluster)
    found = [make() for _ in range(4)]
    for each in found:
        each._addresses = {number: Address("b", number) for number in range(9)}
    return [each.shuffled() for each in found]


async def test_the_seed_repeats_the_order_in_which_clients_ask_brokers() -> None:
    assert clients_of(1) == clients_of(1)
    assert clients_of(1) != clients_of(2)
    assert len({tuple(each) for each in clients_of(1)}) == 4, "each client draws its own order"


def test_nothing_in_a_run_draws_without_the_seed() -> None:
    """The command draws the seed itself."""
    root = Path(chaos.__file__).parent
    draws = re.compile(r"\brandom\.(?!Random\b)|\b(secrets|uuid4|urandom|SystemRandom)\b")
    found = [
        str(file.relative_to(root))
        for file in sorted(root.rglob("*.py"))
        if draws.search(file.read_text())
    ]
    assert found == ["command.py"]
