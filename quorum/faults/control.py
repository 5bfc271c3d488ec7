"""The way to a node's faults from another process: a Unix socket, which no fault can cut.

One JSON object per line, one answer per line. `{"rules": {"drop": ["BrokerHeartbeatRequest"]}}`
puts these rules, and no others, in force; `{}` only asks. The answer holds the rules in force and
when each type of message last left the node: `{"rules": {...}, "last_sent_ms": {...}}`; or
`{"error": TEXT}`. Only the user who runs the node may connect (mode 0600).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import socket
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict, replace
from pathlib import Path

from quorate.quorum.clipped import clipped
from quorate.quorum.faults.faults import Faults
from quorate.quorum.faults.rules import Rules, RulesError, rules_from
from quorate.quorum.faults.witness import WitnessTransport
from quorate.quorum.faults.wrappers import with_faults
from quorate.quorum.seams import Address, Seams

MAX_LINE_BYTES = 1 << 16
MAX_BRACKETS = 100
MAX_ERROR_CHARS = 4000
MAX_CONNECTIONS = 8
MODE = 0o600
MAX_NAME_BYTES = 100
SHORT_DIRECTORY = "/tmp"


logger = logging.getLogger("quorate.faults")


class ControlRefused(Exception):
    """The socket cannot be made."""

    for_operator = True


@contextlib.asynccontextmanager
async def controlled(seams: Seams, path: Path, voters: dict[Address, int]) -> AsyncIterator[Seams]:
    """Seams whose faults are governed through a socket at `path`."""
    witness = WitnessTransport(seams.transport, seams.clock)
    faults = Faults()
    faults.peer_of = voters.get
    control = FaultControl(faults, witness, path)
    server = await asyncio.start_unix_server(
        control.serve, sock=bound(path), limit=MAX_LINE_BYTES, start_serving=True
    )
    try:
        yield with_faults(replace(seams, transport=witness), faults)
    finally:
        server.close()
        control.close()


def bound(path: Path) -> socket.socket:
    """A node that was killed leaves its socket's name behind."""
    path.unlink(missing_ok=True)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o777 & ~MODE)
    try:
        with short_enough(path) as name:
            made.bind(name)
    except OSError as error:
        made.close()
        raise ControlRefused(f"{path}: no socket for fault control: {error}") from None
    finally:
        os.umask(before)
    return made


@contextlib.contextmanager
def short_enough(path: Path) -> Iterator[str]:
    """A name of `path` for bind or connect, which take about a hundred bytes: through a link to its
    directory where that is needed."""
    if len(os.fsencode(path)) <= MAX_NAME_BYTES:
        yield str(path)
        return
    with tempfile.TemporaryDirectory(prefix="q", dir=SHORT_DIRECTORY) as directory:
        link = Path(directory) / "d"
        link.symlink_to(path.parent.absolute())
        yield str(link / path.name)


def check_depth(line: bytes) -> None:
    """Raise RulesError for a line of more than MAX_BRACKETS brackets: rules nest three deep, and
    the parser's stack is bounded. Brackets in strings count, too; rules have none."""
    if line.count(b"[") + line.count(b"{") > MAX_BRACKETS:
        raise RulesError(f"fault control: a line has {MAX_BRACKETS} brackets at most")


class FaultControl:
    def __init__(self, faults: Faults, witness: WitnessTransport, path: Path) -> None:
        self._path = path
        self._faults = faults
        self._witness = witness
        self._open: dict[asyncio.StreamWriter, None] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._open) >= MAX_CONNECTIONS:
            writer.close()
            return
        self._open[writer] = None
        try:
            while line := await reader.readline():
                writer.write(json.dumps(self.answer(line)).encode() + b"\n")
                await writer.drain()
        except (ValueError, OSError):  # a line over the limit; a client that went away
            return
        finally:
            del self._open[writer]
            writer.close()

    def close(self) -> None:
        for writer in list(self._open):
            writer.close()
        self._path.unlink(missing_ok=True)

    def answer(self, line: bytes) -> dict[str, object]:
        """Apply what the line asks for. An error of any kind is an answer: what only disturbs the
        node must not stop it."""
        try:
            check_depth(line)
            asked = json.loads(line)
            if not isinstance(asked, dict) or not asked.keys() <= {"rules"}:
                raise RulesError('fault control: must be {} or {"rules": {...}}')
            if "rules" in asked:
                self._faults.apply(rules_from(asked["rules"]))
        except ValueError as error:
            return {"error": clipped(str(error), MAX_ERROR_CHARS)}
        except Exception as error:
            logger.exception("a line on the fault socket failed")
            return {"error": clipped(f"failed: {error!r}", MAX_ERROR_CHARS)}
        rules: Rules = self._faults.rules
        return {"rules": asdict(rules), "last_sent_ms": self._witness.last_sent_ms}
