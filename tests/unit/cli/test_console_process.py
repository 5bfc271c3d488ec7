"""The process of the console that belongs to a local cluster. It needs no cluster to start."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from quorate.cli.nodes.console_process import ENDED, ConsoleProcess, options_of

NOTHING = "127.0.0.1:1"
pytestmark = pytest.mark.timeout(60)


def test_the_console_of_a_secure_cluster_gets_the_file_of_its_clients() -> None:
    found = options_of("b1:9092", "client.properties", 0)
    assert found[-2:] == ("--command-config", "client.properties")
    assert "--command-config" not in options_of("b1:9092", None, 0)


def test_the_console_of_a_cluster_reads_the_logs_and_the_runs_in_its_directory(
    tmp_path: Path,
) -> None:
    found = " ".join(options_of("b1:9092", None, 0, tmp_path))
    assert f"--metadata-dir {tmp_path}" in found
    assert f"--chaos-progress {tmp_path / 'chaos-progress.json'}" in found
    assert "--chaos-progress" not in options_of("b1:9092", None, 0)


async def test_it_ends_with_its_owner() -> None:
    console = ConsoleProcess(NOTHING, None, 0, actions=True)
    assert console._options[-1] == "--allow-actions"
    line = await console.start()
    assert line.startswith("console at http://127.0.0.1:")
    process = console._process
    assert process is not None
    assert process.stdin is not None
    process.stdin.close()  # as the kernel does if the supervisor is killed
    async with asyncio.timeout(30):
        assert await process.wait() == 0
    await console.stop()


async def test_its_end_is_reported_unless_it_was_requested() -> None:
    said: list[str] = []
    ended = asyncio.Event()

    def say(line: str) -> None:
        said.append(line)
        ended.set()

    requested = ConsoleProcess(NOTHING, None, 0, say=said.append)
    killed = ConsoleProcess(NOTHING, None, 0, say=say)
    await asyncio.gather(requested.start(), killed.start())
    await requested.stop()
    assert said == []
    assert killed._process is not None
    killed._process.kill()
    async with asyncio.timeout(30):
        await ended.wait()
    assert f"quorate console --bootstrap-server {NOTHING} --port 0" in said[0]
    assert "status -9" in said[0]
    await killed.stop()


async def test_it_ends_on_request_and_says_why_it_does_not_start() -> None:
    await ConsoleProcess(NOTHING, None, 0).stop()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused = ConsoleProcess(NOTHING, None, taken.getsockname()[1])
        assert await refused.start() == f"console: {ENDED}"
        await refused.stop()
    console = ConsoleProcess(NOTHING, None, 0)
    await console.start()
    await console.stop()
    assert console._process is not None
    assert console._process.returncode == 0
