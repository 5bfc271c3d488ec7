"""Connections that take places and do nothing (item 7)."""

from __future__ import annotations

import asyncio
import resource
from contextlib import suppress

from quorate.quorum.protocol.schemas.api_versions import ApiVersionsRequest
from quorate.quorum.seams import Address
from tests.attacks.raw import Raw, framed, request
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
            connection = await Raw.open(address)
            held.append(connection)
            if first:
                await connection.send(first)

    for start in range(0, count, AT_ONCE):
        await asyncio.gather(*(one() for _ in range(min(AT_ONCE, count - start))))
    return held


async def newcomers(target: Target, address: Address) -> None:
    """Count how many new clients are served while the silent connections are there."""
    hello = ApiVersionsRequest(client_software_name="new", client_software_version="1")
    frame = framed(request(hello, 3))
    for _ in range(NEWCOMERS):
        await target.fire_frames(address, frame, timeout_s=NEWCOMER_TIMEOUT_S)


async def crowd_out(target: Target, address: Address, first: bytes) -> None:
    count = affordable(QUICK_SILENT if target.quick else SILENT)
    held = await opened(address, count, first)
    try:
        target.outcome["connections"] += len(held)
        await newcomers(target, address)
        await asyncio.sleep(QUICK_HOLD_S if target.quick else HOLD_S)
        await newcomers(target, address)
        target.outcome["let go"] += sum(each.reader.at_eof() for each in held)
    finally:
        for each in held:
            each.close()
    if target.outcome["answered"] < 2 * NEWCOMERS:
        raise Succeeded(
            f"only {target.outcome['answered']} of {2 * NEWCOMERS} newcomers are served"
        )


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
