"""Runs the commands of a page as they are printed, and compares their output with the page.

A page has blocks of the language `sh`. A block of the language `text` directly below one is the
output that a reader sees. Three dots stand for any text in a line, and a line of three dots for any
lines. A comment `<!-- not run: REASON -->` above a block excludes it.

All blocks of a page run in one shell, in a directory of their own. The shell differs from that of a
reader in two ways: the ports 9092 to 9099 are replaced by free ones, also in the sample configs,
and `quorate` is the one of this repository. A block that only looks at the cluster is repeated
until its output is the expected one, because a reader looks later than a test. A chaos run has a
cluster of its own. It is repeated, too, because a busy machine can exceed its bounds.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.docs.site.pages import ROOT

BLOCK = re.compile(
    r"^(?P<excluded><!-- not run: (?P<reason>[^\n]+) -->\n+)?```sh\n(?P<commands>.*?)^```$"
    r"(?:\n\n```text\n(?P<shown>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
PROGRESS = re.compile(r"[a-z ]+: \d+ s(, .*)?")
"""The lines about work that takes long, which a slow machine prints."""
LOOKS = re.compile(
    r"quorate (status|history (explain|at)|topics .*--describe|metadata-quorum .* describe"
    r"|chaos run)\b.*"
    r"|curl -s .*"
)
FIRST_PORT = 9092
PORTS = 8
PORT = re.compile(r"(?<=:)909([2-9])\b")
LOOK_TIMEOUT_S = 30.0
POLL_S = 0.2
DONE = "block-is-done"


@dataclass(frozen=True, slots=True)
class Block:
    """The commands of one block, the output that the page shows, or None, and the reason for which
    they are not run, or None."""

    commands: str
    shown: str | None
    not_run: str | None

    @property
    def only_looks(self) -> bool:
        """Return True if no command of the block changes anything."""
        return all(LOOKS.fullmatch(line) for line in self.commands.splitlines())


def blocks(page: str) -> list[Block]:
    """Return the blocks of a page."""
    return [
        Block(found["commands"], found["shown"], found["reason"]) for found in BLOCK.finditer(page)
    ]


def matches(shown: str, output: str) -> bool:
    """Return True if the output contains the lines that a page shows."""
    lines = []
    for line in shown.rstrip("\n").split("\n"):
        if line.strip() == "...":
            lines.append(r"(?:[^\n]*\n)*?")
        else:
            parts = (re.escape(" ".join(part.split())) for part in line.split("..."))
            lines.append(r"[^\n]*?".join(parts) + r"\n")
    said = (line for line in output.splitlines() if not PROGRESS.fullmatch(line))
    plain = "".join(" ".join(line.split()) + "\n" for line in said)
    return re.search(r"(?:^|(?<=\n))" + "".join(lines), plain) is not None


class Shell:
    """One shell, in which the blocks of a page run one after another."""

    def __init__(self, directory: Path, first_port: int) -> None:
        self._directory = directory
        self._first_port = first_port
        tools = directory / ".tools"
        tools.mkdir()
        shim = tools / "quorate"
        up = f'if [ "$1" = up ]; then shift; set -- up --port {first_port} "$@"; fi'
        shim.write_text(f'#!/bin/bash\n{up}\nexec {sys.executable} -m quorate.cli "$@"\n')
        shim.chmod(0o755)
        path = f"{tools}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        self._bash = subprocess.Popen(
            ["bash"],
            cwd=directory,
            env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, block: Block) -> None:
        """Run a block. Raise AssertionError if a command fails or the output is another one."""
        deadline = time.monotonic() + LOOK_TIMEOUT_S
        while True:
            output, failed = self._output(self.with_ports(block.commands))
            good = not failed and matches(self.with_ports(block.shown or "..."), output)
            if good or not block.only_looks or time.monotonic() > deadline:
                break
            time.sleep(POLL_S)
        assert good, f"{block.commands}\nexpected:\n{block.shown}\nbut got:\n{output}"

    def with_ports(self, text: str) -> str:
        """Return a text with the ports of this shell."""
        return PORT.sub(lambda found: str(self._first_port + int(found[1]) - 2), text)

    def _output(self, commands: str) -> tuple[str, bool]:
        """Run commands, and return their output and True if one of them failed. Block until they
        end; pytest's timeout bounds the test."""
        script = self._directory / ".tools" / "block.sh"
        script.write_text(commands)
        stdin, stdout = self._bash.stdin, self._bash.stdout
        assert stdin is not None and stdout is not None
        trap = "failed=0; trap failed=1 ERR"
        stdin.write(f'{trap}; . {script} < /dev/null; trap - ERR; echo; echo "{DONE} $failed"\n')
        stdin.flush()
        lines: list[str] = []
        while not (lines and lines[-1].startswith(DONE)):
            line = stdout.readline()
            assert line, f"the shell ended\n{commands}\n{''.join(lines)}"
            lines.append(line)
        return "".join(lines[:-1]), lines[-1].split() != [DONE, "0"]

    def close(self) -> None:
        """Stop the clusters of the page, and then every process that the shell has started."""
        for entry in self._directory.glob("*/cluster.json"):
            command = [sys.executable, "-m", "quorate.cli", "down", "--dir", str(entry.parent)]
            subprocess.run(command, capture_output=True, timeout=60, check=False)
        os.killpg(self._bash.pid, signal.SIGKILL)
        self._bash.communicate()


@contextmanager
def shell(directory: Path) -> Iterator[Shell]:
    """Give a shell in a directory with the sample configs, whose ports are free ones, and with the
    fixtures of tests."""
    found = Shell(directory, free_ports())
    shutil.copytree(ROOT / "config" / "deployment", directory / "config" / "deployment")
    for path in (directory / "config" / "deployment").glob("*.properties"):
        path.write_text(found.with_ports(path.read_text()))
    (directory / "tests").symlink_to(ROOT / "tests")
    try:
        yield found
    finally:
        found.close()


def free_ports() -> int:
    """Return the first of PORTS successive ports that are free."""
    start = 12_000 + os.getpid() % 1_000 * PORTS
    for first in range(start, start + 100 * PORTS, PORTS):
        with ExitStack() as opened:
            try:
                for port in range(first, first + PORTS):
                    opened.enter_context(socket.create_server(("127.0.0.1", port)))
            except OSError:
                continue
            return first
    raise AssertionError("there are no free ports")


def run_page(page: Path, directory: Path) -> int:
    """Run the blocks of a page, and return their number. Raise AssertionError at the first block
    whose commands or output differ from the page."""
    run = [block for block in blocks(page.read_text()) if block.not_run is None]
    with shell(directory) as bash:
        for block in run:
            bash.run(block)
    return len(run)
