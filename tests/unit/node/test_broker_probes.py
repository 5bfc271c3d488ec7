"""Probes of brokers: bounded, and none of them outlives its node."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from quorate.quorum.controller.state.result import ProbeBroker
from quorate.quorum.node.controller import broker_probes
from quorate.quorum.node.controller.broker_probes import MAX_PROBES, BrokerProbes
from quorate.quorum.rpc.connector import ProbeResult
from quorate.quorum.seams import Address, PeerRefused, Seams
from tests.unit.rpc.kafka.fakes import FakeClock


class Transport:
    """Refuses each connection when `refuse` is set, and leaves it open until then."""

    def __init__(self) -> None:
        self.refuse = asyncio.Event()
        self.connects = 0

    async def connect(self, *arguments: object, **options: object) -> Any:
        self.connects += 1
        await self.refuse.wait()
        raise PeerRefused("refused")


class Host:
    def __init__(self) -> None:
        self.clock, self.transport = FakeClock(), Transport()
        self.results: list[tuple[int, ProbeResult]] = []
        seams = Seams(self.clock, cast(Any, None), cast(Any, self.transport), cast(Any, None))
        self.probes = BrokerProbes(
            seams, lambda effect, result: self.results.append((effect.number, result))
        )

    def start(self, number: int, delay_ms: int = 0) -> None:
        address = Address("b1", 9092)
        self.probes.start(
            ProbeBroker(
                broker_id=1, broker_epoch=7, number=number, address=address, delay_ms=delay_ms
            )
        )


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_probe_reports_its_result_after_its_delay() -> None:
    host = Host()
    host.transport.refuse.set()
    host.start(1, delay_ms=50)
    host.clock.advance(49)
    await settle()
    assert host.transport.connects == 0
    host.clock.advance(1)
    await settle()
    assert host.results == [(1, ProbeResult.REFUSED)]


async def test_no_probe_outlives_its_node() -> None:
    host = Host()
    host.start(1)
    host.start(2, delay_ms=50)
    await settle()
    assert host.transport.connects == 1 and host.clock.waiting == 1
    host.probes.close()
    assert host.clock.waiting == 0, "the timer of the delayed probe is cancelled"
    host.start(3)
    host.start(4, delay_ms=50)
    assert host.clock.waiting == 0
    host.transport.refuse.set()
    await settle()
    assert host.transport.connects == 1 and host.results == []
    assert len(asyncio.all_tasks()) == 1, "only this test runs"


async def test_the_number_of_probes_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    host = Host()
    for number in range(MAX_PROBES + 10):
        host.start(number)
        host.start(number, delay_ms=50)
    await settle()
    assert host.transport.connects == broker_probes.MAX_PROBES
    assert host.clock.waiting == MAX_PROBES
    (line,) = caplog.messages
    assert line.startswith("broker 1 is not probed because 1000 probes are in flight")
    host.probes.close()
    await settle()
