"""The process of the console that belongs to a local cluster. It needs no cluster to start."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from quorate.cli.nodes.console_process import ConsoleProcess, arguments_of

NOTHING = "127.0.0.1:1"
pytestmark = pytest.mark.timeout(60)


def test_the_console_of_a_secure_cluster_gets_the_file_of_its_clients() -> None:
    found = arguments_of("b1:9092", "client.properties", 0)
    assert found[-2:] == ("--command-config", "client.properties")
    assert "--command-config" not in arguments_of("b1:9092", None, 0)


def test_the_console_of_a_cluster_reads_the_logs_and_the_runs_in_its_directory(
    tmp_path: Path,
) -> None:
    found = " ".join(arguments_of("b1:9092", None, 0, tmp_path))
    assert f"--metadata-dir {tmp_path}" in found
    assert f"--chaos-progress {tmp_path / 'chaos-progress.json'}" in found
    assert "--chaos-progress" not in arguments_of("b1:9092", None, 0)


async def test_it_ends_with_its_owner() -> None:
    console = ConsoleProcess(NOTHING, None, 0)
    line = await console.start()
    assert line.startswith("console at http://127.0.0.1:")
    process = console._process
    assert process is not None
    assert process.stdin is not None
    process.stdin.close()  # as the kernel does if the supervisor is killed
    async with asyncio.timeout(30):
        assert await process.wait() == 0
    await console.stop()


async def test_it_ends_on_request_and_says_why_it_does_not_start() -> None:
    await ConsoleProcess(NOTHING, None, 0).stop()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused = ConsoleProcess(NOTHING, None, taken.getsockname()[1])
        assert await refused.start() == "console: it has ended, see above"
        await refused.stop()
    console = ConsoleProcess(NOTHING, None, 0)
    await console.start()
    await console.stop()
    assert console._process is not None
    assert console._process.returncode == 0
