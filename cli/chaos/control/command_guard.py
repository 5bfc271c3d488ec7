"""A process that undoes the commands of a run that is gone.

`python -m quorate.cli.chaos.control.command_guard LEASE_MS TIMEOUT_MS` reads lines from its
standard input. `{"owed": NODE, "command": [...]}` names the command that ends the fault of a node,
`{"settled": NODE}` says that the fault has ended, and an empty line renews the lease.
`{"began": PID}` and `{"ended": PID}` tell of the processes of commands. When its standard input
ends, or the lease expires, the guard waits for these processes, because a command outlives a run
that is killed. Then it runs all owed commands and ends. Thus a run that is killed leaves no node
killed or paused, as long as this machine runs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from quorate.cli.chaos.control.pause_guard import process_state
from quorate.cli.client.errors import Refused

POLL_S = 0.05
READY = "ready"
ZOMBIE = "Z"
"""The state of a process that has ended and whose parent has not asked for its status."""
START_S = 20.0
"""Time, in s, within which the guard must be ready."""
END_S = 5.0
"""Time, in s, within which a guard without owed commands must have ended."""


def guard(lease_ms: int, timeout_ms: int) -> None:
    """Run the owed commands as soon as standard input ends or the lease expires.

    Wait for running commands first, for `timeout_ms` at most."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    print(READY, flush=True)
    owed: dict[int, Sequence[str]] = {}
    running: set[int] = set()
    left = b""
    deadline_s = time.monotonic() + lease_ms / 1000
    while select.select([0], [], [], max(0.0, deadline_s - time.monotonic()))[0]:
        read = os.read(0, 65536)
        if not read:
            break
        deadline_s = time.monotonic() + lease_ms / 1000
        *lines, left = (left + read).split(b"\n")
        for line in filter(None, lines):
            take(owed, running, json.loads(line))
    wait_for_end(running, timeout_ms / 1000)
    for command in owed.values():
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(
                command,
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=timeout_ms / 1000,
            )


def take(owed: dict[int, Sequence[str]], running: set[int], said: dict[str, Any]) -> None:
    """Apply one line to the owed commands and the processes of running ones."""
    if "owed" in said:
        owed[said["owed"]] = said["command"]
    elif "began" in said:
        running.add(said["began"])
    elif "ended" in said:
        running.discard(said["ended"])
    else:
        owed.pop(said["settled"], None)


def wait_for_end(running: set[int], limit_s: float) -> None:
    """Block until all processes have ended, for `limit_s` at most."""
    deadline_s = time.monotonic() + limit_s
    while any(process_state(pid) not in ("", ZOMBIE) for pid in running):
        if time.monotonic() > deadline_s:
            return
        time.sleep(POLL_S)


@dataclass(slots=True)
class CommandGuard:
    """The guard process of one run. `start` blocks until it is ready."""

    lease_ms: int
    timeout_ms: int
    _process: subprocess.Popen[str] | None = field(default=None)

    def start(self) -> None:
        """Start the process. Raise Refused if it is not ready within START_S."""
        command = (sys.executable, "-m", __name__, str(self.lease_ms), str(self.timeout_ms))
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], START_S)
        if not ready or self._process.stdout.readline().strip() != READY:
            raise Refused("the process that ends the faults of an abandoned run did not start")

    def owe(self, node_id: int, command: Sequence[str]) -> None:
        """Let the guard run this command for the node if the run is gone.

        Raise Refused if the guard is gone, because a fault would then have no lease."""
        if not self._tell({"owed": node_id, "command": list(command)}):
            raise Refused("the process that ends the faults of an abandoned run has ended")

    def settle(self, node_id: int) -> None:
        """Let the guard run nothing for the node."""
        self._tell({"settled": node_id})

    def began(self, pid: int) -> None:
        """Let the guard wait for this process of a command before it undoes anything."""
        self._tell({"began": pid})

    def ended(self, pid: int) -> None:
        """Say that this process has ended."""
        self._tell({"ended": pid})

    def renew(self) -> None:
        """Renew the lease."""
        self._tell(None)

    async def close(self) -> None:
        """End the guard. It first runs the commands that it still owes."""
        process, self._process = self._process, None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(process.wait, END_S)

    def _tell(self, said: dict[str, Any] | None) -> bool:
        if self._process is None or self._process.stdin is None:
            return False
        try:
            self._process.stdin.write("\n" if said is None else json.dumps(said) + "\n")
            self._process.stdin.flush()
        except OSError:
            return False
        return True


if __name__ == "__main__":
    guard(int(sys.argv[1]), int(sys.argv[2]))
