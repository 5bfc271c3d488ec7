"""A process that stops another process (SIGSTOP), and lets it continue when nobody wants the pause.

`python -m quorate.cli.chaos.control.pause_guard PID LEASE_MS` stops the process PID and prints a
line. Each byte on its standard input renews the lease. The guard lets PID continue (SIGCONT) and
ends when its standard input ends, or when the lease expires. A stopped process cannot end its own
pause. Thus a run that is killed leaves no stopped process behind."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

STOPPED = "stopped"
START_S = 20.0
"""Time, in s, within which the guard must have stopped the process."""
STATE_POLL_S = 0.01


def guard(pid: int, lease_ms: int) -> None:
    """Stop the process until standard input ends or the lease expires."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    try:
        try:
            os.kill(pid, signal.SIGSTOP)
        except ProcessLookupError:
            return
        print(STOPPED, flush=True)
        while select.select([0], [], [], lease_ms / 1000)[0]:
            if not os.read(0, 4096):
                return
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


@dataclass(slots=True)
class Pauses:
    """The paused nodes of a run, with their guards. The calls block for a short time.

    Bound: one guard per node of the cluster."""

    lease_ms: int
    _guards: dict[int, tuple[int, subprocess.Popen[str]]] = field(default_factory=dict)

    def pause(self, node_id: int, pid: int) -> bool:
        """Pause the process of a node. Return True if the kernel says that it is stopped."""
        if node_id in self._guards:
            return True
        command = (sys.executable, "-m", __name__, str(pid), str(self.lease_ms))
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._guards[node_id] = pid, process
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], START_S)
        return bool(ready) and process.stdout.readline().strip() == STOPPED and is_stopped(pid)

    def renew(self) -> None:
        """Renew the leases of all pauses."""
        for _, process in list(self._guards.values()):
            assert process.stdin is not None
            with contextlib.suppress(OSError):
                process.stdin.write(".")
                process.stdin.flush()

    def resume(self, node_id: int) -> bool:
        """End the pause of a node. Return True if it lasted until now."""
        found = self._guards.pop(node_id, None)
        if found is None:
            return False
        pid, process = found
        lasted = is_stopped(pid)
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGCONT)
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()
        process.wait()
        return lasted

    @property
    def nodes(self) -> list[int]:
        """Return the ids of the paused nodes."""
        return sorted(self._guards)


def is_stopped(pid: int) -> bool:
    """Return True if the process is stopped by a signal. The kernel needs a moment for it."""
    deadline_s = time.monotonic() + 1.0
    while time.monotonic() < deadline_s:
        state = process_state(pid)
        if state in ("T", ""):
            return state == "T"
        time.sleep(STATE_POLL_S)
    return False


def process_state(pid: int) -> str:
    """Return the state letter of a process, such as T for stopped, or "" if there is none."""
    if Path("/proc/self/stat").exists():
        try:
            content = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        except OSError:
            return ""
        return content.rpartition(")")[2].strip()[:1]
    ended = subprocess.run(
        ("ps", "-o", "stat=", "-p", str(pid)), capture_output=True, text=True, check=False
    )
    return ended.stdout.strip()[:1]


if __name__ == "__main__":
    guard(int(sys.argv[1]), int(sys.argv[2]))
