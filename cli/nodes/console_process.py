"""The console of `quorate up --console`: a process that ends with the supervisor of the cluster.

It is a process of its own, so that requests of browsers take neither memory nor file descriptors of
the supervisor. It ends when its standard input ends, which the kernel closes with the supervisor.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from pathlib import Path

from quorate.cli.nodes.cluster_dir import ClusterDir

DEFAULT_PORT = 8787
START_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 5.0


class ConsoleProcess:
    """The process of a cluster's console, owned by the event loop of the supervisor."""

    def __init__(
        self, bootstrap: str, command_config: str | None, port: int, cluster_dir: Path | None = None
    ) -> None:
        """Prepare the console of the brokers `bootstrap`, on `port` or on a free one (0). It shows
        earlier states from the logs in `cluster_dir`, and the chaos runs on this directory."""
        self._arguments = arguments_of(bootstrap, command_config, port, cluster_dir)
        self._process: Process | None = None

    async def start(self) -> str:
        """Start the console, and return the line with its address, or a line that says why it does
        not run. The process writes everything else to standard error."""
        self._process = await asyncio.create_subprocess_exec(
            *self._arguments, stdin=PIPE, stdout=PIPE, start_new_session=True
        )
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                line = await self._process.stdout.readline()
        except TimeoutError:
            return f"console: it did not start within {START_TIMEOUT_S:.0f} s"
        return line.decode().strip() or "console: it has ended, see above"

    async def stop(self) -> None:
        """End the process, if it has been started, and wait for its end."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            async with asyncio.timeout(STOP_TIMEOUT_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


def arguments_of(
    bootstrap: str, command_config: str | None, port: int, cluster_dir: Path | None = None
) -> Sequence[str]:
    """Return the command of the console's process."""
    settings = () if command_config is None else ("--command-config", command_config)
    local: tuple[str, ...] = ()
    if cluster_dir is not None:
        progress = ClusterDir(cluster_dir.absolute()).chaos_progress
        local = ("--metadata-dir", str(cluster_dir.absolute()), "--chaos-progress", str(progress))
    return (
        *(sys.executable, "-m", "quorate.cli", "console", "--until-eof"),
        *("--bootstrap-server", bootstrap, "--port", str(port), *settings, *local),
    )
