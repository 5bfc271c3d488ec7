"""Connections that take places and do nothing (item 7)."""

from __future__ import annotations

import asyncio
import resource
import time
from contextlib import suppress

from quorate.quorum.seams import Address
from tests.attacks.newcomers import Unserved, hello, told
from tests.attacks.raw import Raw, framed
from tests.attacks.registry import attack
from tests.attacks.target import Succeeded, Target

SILENT, QUICK_SILENT = 16_384, 1_500
SPARE_FILES = 200
AT_ONCE = 200
HOLD_S, QUICK_HOLD_S = 15.0, 2.0
NEWCOMERS = 20
NEWCOMER_TIMEOUT_S = 10.0


def affordable(wanted: int) -> int:
    """Raise the limit of open files as far as it goes; return how many connections fit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return min(wanted, hard - SPARE_FILES)


async def opened(address: Address, count: int, first: bytes) -> list[Raw]:
    held: list[Raw] = []

    async def one() -> None:
        with suppress(OSError, TimeoutError):
            connection = await Raw.open(address, tls=False)
            held.append(connection)
            if first:
                await connection.send(first)

    for start in range(0, count, AT_ONCE):
        await asyncio.gather(*(one() for _ in range(min(AT_ONCE, count - start))))
    return held


async def newcomers(target: Target, address: Address, phase: str) -> None:
    """Note the new clients that are not served while the silent connections are there."""
    for _ in range(NEWCOMERS):
        began_s = time.monotonic()
        what = await target.fire_frames(address, hello(), timeout_s=NEWCOMER_TIMEOUT_S)
        if what:
            ended_s = time.monotonic()
            target.unserved.append(Unserved(str(address), phase, what, began_s, ended_s))


async def crowd_out(target: Target, address: Address, first: bytes) -> None:
    count = affordable(QUICK_SILENT if target.quick else SILENT)
    held = await opened(address, count, first)
    try:
        target.outcome["connections"] += len(held)
        await newcomers(target, address, "before the hold")
        await asyncio.sleep(QUICK_HOLD_S if target.quick else HOLD_S)
        await newcomers(target, address, "after the hold")
        target.outcome["let go"] += sum(each.reader.at_eof() for each in held)
    finally:
        for each in held:
            each.close()
    if target.unserved:
        raise Succeeded(told(target.unserved))


@attack(7)
async def silent_connections(target: Target) -> None:
    """Open thousands of connections to a broker that send nothing, then let newcomers try."""
    await crowd_out(target, target.brokers[0], b"")


@attack(7)
async def silent_connections_to_a_controller(target: Target) -> None:
    """Open thousands of silent connections to a controller, whose port the nodes need."""
    await crowd_out(target, target.controllers[0], b"")


@attack(7)
async def half_requests(target: Target) -> None:
    """Open thousands of connections that each send the size of a request and no more."""
    await crowd_out(target, target.brokers[-1], framed(bytes(100))[:6])


@attack(7)
async def half_http_heads(target: Target) -> None:
    """Open thousands of connections that each send the beginning of an HTTP head."""
    await crowd_out(target, target.controllers[-1], b"GET /healthz HTTP/1.1\r\nHost: ")
