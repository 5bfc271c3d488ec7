"""The commands of a nodes.toml for one node whose process runs on this machine.

`python node_process.py DIRECTORY stop|kill|pause|resume|start`: the directory holds `command.json`,
the program of the node, and `pid`. `start` returns as soon as the process exists, `stop` when it
has ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

SIGNALS = {
    "stop": signal.SIGTERM,
    "kill": signal.SIGKILL,
    "pause": signal.SIGSTOP,
    "resume": signal.SIGCONT,
}


def start(directory: Path) -> None:
    """Start the program in a session of its own, unless it runs."""
    if (directory / "pid").exists() and state_of(int((directory / "pid").read_text())):
        return
    command = json.loads((directory / "command.json").read_text())
    with open(directory / "node.log", "ab") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    (directory / "pid").write_text(str(process.pid))


def state_of(pid: int) -> str:
    """Return the state letter of the process, or "" if it has ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""
    return "" if state == "Z" else state


def main(directory: Path, name: str) -> None:
    """Run one command."""
    if name == "start":
        start(directory)
        return
    pid = int((directory / "pid").read_text())
    os.kill(pid, SIGNALS[name])
    while name == "stop" and state_of(pid):
        time.sleep(0.05)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
