"""The process of a node returns freed memory while the node runs."""

from __future__ import annotations

import asyncio

import pytest

from quorate.cli.nodes import node_process


async def test_freed_memory_is_returned_again_and_again_until_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop, third = asyncio.get_running_loop(), asyncio.Event()
    calls: list[None] = []

    def called() -> None:
        calls.append(None)
        if len(calls) == 3:
            loop.call_soon_threadsafe(third.set)

    monkeypatch.setattr(node_process, "RETURN_INTERVAL_S", 0.0)
    monkeypatch.setattr(node_process, "return_freed_pages", called)
    async with node_process.returning_memory():
        async with asyncio.timeout(30):
            await third.wait()
    assert len(asyncio.all_tasks()) == 1, "only the task of this test is left"
