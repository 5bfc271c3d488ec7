"""Newcomers that are not served: what is noted of them, and which of them a fault excuses."""

from __future__ import annotations

import asyncio

import pytest

from quorate.quorum.seams import Address
from tests.attacks.connections import NEWCOMERS, newcomers
from tests.attacks.newcomers import (
    NEVER_S,
    RECOVERY_S,
    Disturbance,
    Disturbances,
    Unserved,
    is_served,
    told,
)
from tests.attacks.target import NOT_CONNECTED, Target

HERE, THERE = Address("127.0.0.1", 1001), Address("127.0.0.1", 1002)


def unserved(began_s: float, ended_s: float, address: Address = HERE) -> Unserved:
    return Unserved(str(address), "after the hold", "silent", began_s, ended_s)


@pytest.mark.parametrize(
    ("began_s", "ended_s", "address", "excused"),
    [
        pytest.param(1.0, 4.9, HERE, False, id="before the fault"),
        pytest.param(4.0, 5.0, HERE, True, id="the fault began meanwhile"),
        pytest.param(6.0, 7.0, HERE, True, id="during the fault"),
        pytest.param(9.0, 19.0, HERE, True, id="the fault ended meanwhile"),
        pytest.param(9.1, 19.1, HERE, False, id="after the fault"),
        pytest.param(6.0, 7.0, THERE, False, id="the fault of another node"),
    ],
)
def test_a_fault_of_the_same_node_at_the_same_time_excuses(
    began_s: float, ended_s: float, address: Address, excused: bool
) -> None:
    disturbances = Disturbances(all=[Disturbance(str(HERE), 5.0, 8.0, 9.0)])
    newcomer = unserved(began_s, ended_s, address)
    assert disturbances.starved([newcomer]) == ([] if excused else [newcomer])


class Faults:
    """Disturbances whose clock and nodes the test controls."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.serving = False
        self.noted = Disturbances(lambda _: self.serving, lambda: self.now_s)


def test_a_disturbance_lasts_until_the_node_serves_again() -> None:
    faults = Faults()
    faults.noted.begin(HERE)
    faults.now_s, faults.serving = 5.0, True
    assert faults.noted.look() == []
    assert faults.noted.all[0].end_s == NEVER_S, "it is still hurt, whatever answers there"
    faults.now_s, faults.serving = 6.0, False
    faults.noted.mended(HERE)
    assert faults.noted.look() == []
    faults.now_s, faults.serving = 7.5, True
    assert faults.noted.look() == []
    assert faults.noted.all == [Disturbance(str(HERE), 0.0, 6.0, 7.5)]


def test_a_node_that_is_hurt_again_before_it_serves() -> None:
    faults = Faults()
    faults.noted.begin(HERE)
    faults.noted.mended(HERE)
    faults.now_s = RECOVERY_S
    faults.noted.begin(HERE)
    faults.now_s = RECOVERY_S * 2
    assert faults.noted.look() == []
    faults.noted.mended(HERE)
    faults.serving = True
    assert faults.noted.look() == []
    assert [each.end_s for each in faults.noted.all] == [RECOVERY_S * 2]


def test_a_node_that_does_not_serve_in_time_is_wrong_and_excuses_no_more() -> None:
    """Otherwise a node that an attack starves after a fault would be excused to the end."""
    faults = Faults()
    faults.noted.begin(HERE)
    faults.noted.mended(HERE)
    faults.now_s = RECOVERY_S + 1.0
    (late,) = faults.noted.look()
    assert str(HERE) in late
    assert faults.noted.look() == []
    newcomer = unserved(RECOVERY_S + 2.0, RECOVERY_S + 3.0)
    assert faults.noted.starved([newcomer]) == [newcomer]


async def test_a_newcomer_that_nobody_serves_is_noted_with_its_error() -> None:
    closing = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    address = Address("127.0.0.1", closing.sockets[0].getsockname()[1])
    target = Target([], [])
    await newcomers(target, address, "before the hold")
    closing.close()
    await closing.wait_closed()
    await newcomers(target, address, "after the hold")
    whats = [each.what.partition(":")[0] for each in target.unserved]
    assert whats == ["closed"] * NEWCOMERS + [NOT_CONNECTED] * NEWCOMERS
    assert {each.phase for each in target.unserved} == {"before the hold", "after the hold"}
    assert {each.address for each in target.unserved} == {str(address)}
    assert f"{2 * NEWCOMERS} newcomers" in told(target.unserved)
    assert "ConnectionRefusedError" in told(target.unserved[NEWCOMERS:])
    assert not await asyncio.to_thread(is_served, address)


async def test_a_newcomer_that_is_served_is_not_noted() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
        writer.write(b"\0\0\0\1x")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        address = Address("127.0.0.1", server.sockets[0].getsockname()[1])
        target = Target([], [])
        await newcomers(target, address, "before the hold")
        assert await asyncio.to_thread(is_served, address)
    assert target.unserved == [] and target.outcome == {"answered": NEWCOMERS}
