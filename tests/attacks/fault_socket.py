"""Lines to the fault socket of a node, which only the node's own user may write (item 9)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

from quorate.quorum.faults.control import short_enough
from tests.attacks.registry import attack
from tests.attacks.target import NOT_CONNECTED, Target

NESTED = 5_000
LINES = (
    b"[" * NESTED,
    b'{"rules":' * NESTED,
    b"[" * NESTED + b"]" * NESTED,
    b'"' * NESTED,
    b"9" * NESTED,
    b"x" * (1 << 17),
)
ANSWER_TIMEOUT_S = 10.0


@attack(9, needs_faults=True)
async def nested_fault_rules(target: Target) -> None:
    """Send thousands of opening brackets to the fault socket of every node that has one."""
    if not target.fault_sockets:
        target.outcome["no fault socket"] += 1
    for path in target.fault_sockets:
        for line in LINES:
            await say(target, path, line)


async def say(target: Target, path: Path, line: bytes) -> None:
    """Send one line and count what happened: an answer, or a closed connection."""
    try:
        with short_enough(path) as name:
            reader, writer = await asyncio.open_unix_connection(name)
    except OSError:
        target.outcome[NOT_CONNECTED] += 1
        return
    answer = b""
    with suppress(OSError, TimeoutError, ValueError):
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            writer.write(line + b"\n")
            answer = await reader.readline()
    target.outcome["answered" if answer else "closed"] += 1
    writer.close()
