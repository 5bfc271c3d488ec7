"""The start of a run: the connections of its clients, and the leases of its faults."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from quorate.cli.chaos.loading.loader import load
from quorate.cli.chaos.results.view import View
from quorate.cli.chaos.run import setup
from quorate.cli.chaos.run.setup import Clients, Plan, clients, started_run
from quorate.cli.chaos.workload.brokers import Brokers
from quorate.cli.client.client_file import ClientFile
from quorate.cli.client.errors import Refused
from quorate.quorum.ids import Uuid


class NoBroker:
    """A client's metadata of a cluster that does not answer."""

    topic = "t"
    made: list[NoBroker]

    def __init__(self) -> None:
        self.leaders: dict[int, Any] = {}
        self.known: list[int] = []
        self.refreshed = self.closed = False
        self.made.append(self)

    async def refresh(self) -> None:
        """Record the call."""
        self.refreshed = True

    def close(self) -> None:
        """Record the call."""
        self.closed = True


async def test_each_client_has_connections_of_its_own() -> None:
    NoBroker.made = []
    with pytest.raises(Refused, match="no broker knows the leaders of all partitions"):
        async with clients(lambda: cast(Brokers, NoBroker()), load("leader-kill").workload):
            raise AssertionError("the clients cannot start")
    assert len(NoBroker.made) == 3
    assert all(each.refreshed and each.closed for each in NoBroker.made)


class Leases:
    """The control of nodes whose leases must be renewed."""

    def __init__(self) -> None:
        self.renewed = asyncio.Event()

    @asynccontextmanager
    async def leases(self) -> AsyncIterator[None]:
        """Begin the leases."""
        yield

    def renew(self) -> None:
        """Record the call."""
        self.renewed.set()


@asynccontextmanager
async def nothing(*arguments: object) -> AsyncIterator[None]:
    """Do nothing."""
    yield


async def test_leases_are_renewed_while_the_group_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the guard of a nodes.toml ends before the first fault, if the group is slow."""
    control, scenario = Leases(), load("leader-kill")
    brokers = SimpleNamespace(topic_id=Uuid(bytes(16)), known=[4, 5, 6])
    writer = SimpleNamespace(brokers=brokers, ledger=None)

    @asynccontextmanager
    async def ready(*arguments: object) -> AsyncIterator[Clients]:
        yield cast(Clients, (writer, None, None))

    @asynccontextmanager
    async def slow_group(run: object) -> AsyncIterator[None]:
        async with asyncio.timeout(10):
            await control.renewed.wait()
        yield

    monkeypatch.setattr(setup, "LEASE_MS", 40)
    monkeypatch.setattr(setup, "create_topic", lambda *arguments: None)
    monkeypatch.setattr(setup, "clients", ready)
    monkeypatch.setattr(setup, "other_clients", slow_group)
    monkeypatch.setattr(setup, "background_tasks", nothing)
    facts = SimpleNamespace(following=nothing, new_events=lambda states: ())
    cluster = SimpleNamespace(
        servers=(("127.0.0.1", 1),),
        client_file=ClientFile(),
        active_controller=lambda: 1,
        facts=lambda *arguments: facts,
        control=lambda lease_ms: control,
        session_timeout_ms=lambda: 9_000,
        racks=dict,
    )
    plan = Plan(scenario, scenario.variants, "t")
    async with started_run(plan, cast(Any, cluster), View(None)) as run:
        assert run.problems == []
