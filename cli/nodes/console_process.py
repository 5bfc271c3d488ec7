"""The console of `quorate up --console`: a process that ends with the supervisor of the cluster.

It is a process of its own, so that requests of browsers take neither memory nor file descriptors of
the supervisor. It ends when its standard input ends, which the kernel closes with the supervisor.
"""

from __future__ import annotations

import asyncio
import shlex
import sys
from asyncio import Task
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from pathlib import Path

from quorate.cli.nodes.cluster_dir import ClusterDir

DEFAULT_PORT = 8787
START_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 5.0
ENDED = "it has ended; the reason is on standard error, or in up.log with --detach"


class ConsoleProcess:
    """The process of a cluster's console, owned by the event loop of the supervisor."""

    def __init__(
        self,
        bootstrap: str,
        command_config: str | None,
        port: int,
        cluster_dir: Path | None = None,
        say: Callable[[str], None] = lambda line: None,
        *,
        actions: bool = False,
    ) -> None:
        """Prepare the console of the brokers `bootstrap`, on `port` or on a free one (0). It shows
        earlier states from the logs in `cluster_dir`, and the chaos runs on this directory. With
        `actions` it can change the cluster. If the process ends by itself later, `say` is called
        with a line about it."""
        options = options_of(bootstrap, command_config, port, cluster_dir)
        self._options = (*options, "--allow-actions") if actions else options
        self._say = say
        self._process: Process | None = None
        self._watching: Task[None] | None = None

    async def start(self) -> str:
        """Start the console, and return the line with its address, or a line that says why it does
        not run. The process writes everything else to standard error."""
        command = (sys.executable, "-m", "quorate.cli", "console", "--until-eof", *self._options)
        self._process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, start_new_session=True
        )
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                line = await self._process.stdout.readline()
        except TimeoutError:
            return f"console: it did not start within {START_TIMEOUT_S:.0f} s"
        if not line:
            return f"console: {ENDED}"
        self._watching = asyncio.create_task(self._report_end(self._process))
        return line.decode().strip()

    async def _report_end(self, process: Process) -> None:
        status = await process.wait()
        self._say(
            f"the console has ended with status {status}, and the cluster runs. To start another "
            f"one: quorate console {shlex.join(self._options)}"
        )

    async def stop(self) -> None:
        """End the process, if it has been started, and wait for its end."""
        process = self._process
        if self._watching is not None:
            self._watching.cancel()
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            async with asyncio.timeout(STOP_TIMEOUT_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


def options_of(
    bootstrap: str, command_config: str | None, port: int, cluster_dir: Path | None = None
) -> Sequence[str]:
    """Return the options of `quorate console`."""
    settings = () if command_config is None else ("--command-config", command_config)
    local: tuple[str, ...] = ()
    if cluster_dir is not None:
        progress = ClusterDir(cluster_dir.absolute()).chaos_progress
        local = ("--metadata-dir", str(cluster_dir.absolute()), "--chaos-progress", str(progress))
    return ("--bootstrap-server", bootstrap, "--port", str(port), *settings, *local)
