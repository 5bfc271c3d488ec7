"""Control of a node's faults from another process, over a Unix socket that no fault can cut.

Each request and each response is one line with a JSON object. The request `{"rules": {"drop":
["BrokerHeartbeatRequest"]}, "lease_ms": 5000}` replaces all rules in force. The request `{}`
changes nothing. The response holds the rules in force, the rest of their lease, the number of
frames and connects that each kind of rule has affected since the start of the node, and the time
at which each message type was last sent: `{"rules": {...}, "lease_ms": 4200, "affected": {"drop":
3, ...}, "last_sent_ms": {...}}`. The times are Unix times in ms, and a type that was never sent is
absent (see witness.py). An invalid request gets `{"error": TEXT}` and changes nothing. The socket
has mode 0600, so only the node's own user may connect.

Rules with a fault are a lease: they end by themselves `lease_ms` after the last request with a
`lease_ms`. The request `{"lease_ms": 5000}` renews the lease. Thus no fault outlives the tool that
wanted it, even if the tool is killed. The lease is measured by the node's own clock below the
faults, so that a pause does not stop it.
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
from quorate.quorum.seams import Address, Clock, Seams, Timer

MAX_LINE_BYTES = 1 << 16
"""The maximum length of a request. A longer one closes the connection."""
MAX_BRACKETS = 100
MAX_ERROR_CHARS = 4000
"""The maximum length of an error in a response, in characters, without the mark of the cut."""
MAX_CONNECTIONS = 8
"""The maximum number of connected clients. Further connections are closed immediately."""
MAX_LEASE_MS = 600_000
"""The longest lease of rules."""
MODE = 0o600
"""The permissions of the socket file."""
MAX_NAME_BYTES = 100
"""The longest path, in bytes, that is bound directly. Linux allows 107 bytes."""
SHORT_DIRECTORY = "/tmp"


logger = logging.getLogger("quorate.faults")


class ControlRefused(Exception):
    """The control socket cannot be made. The text is for the operator."""

    for_operator = True


@contextlib.asynccontextmanager
async def controlled(seams: Seams, path: Path, voters: dict[Address, int]) -> AsyncIterator[Seams]:
    """Yield seams whose faults are controlled through a socket at `path`, and remove the socket at
    the end.

    `voters` maps node-to-node addresses to node ids. Raise ControlRefused if the socket cannot be
    made.
    """
    witness = WitnessTransport(seams.transport, seams.clock)
    faults = Faults()
    faults.peer_of = voters.get
    control = FaultControl(faults, witness, path, seams.clock)
    server = await asyncio.start_unix_server(
        control.serve, sock=bound(path), limit=MAX_LINE_BYTES, start_serving=True
    )
    try:
        yield with_faults(replace(seams, transport=witness), faults)
    finally:
        server.close()
        control.close()


def bound(path: Path) -> socket.socket:
    """Return a socket that is bound to `path`, with mode 0600. Raise ControlRefused if that fails.

    A node that was killed leaves its socket file, so an existing file of any kind is removed first.
    OSError is raised if that fails.
    """
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
    """Yield a name for `path` that fits into bind or connect, which accept about a hundred bytes. A
    longer path is reached through a temporary symbolic link to its directory."""
    if len(os.fsencode(path)) <= MAX_NAME_BYTES:
        yield str(path)
        return
    with tempfile.TemporaryDirectory(prefix="q", dir=SHORT_DIRECTORY) as directory:
        link = Path(directory) / "d"
        link.symlink_to(path.parent.absolute())
        yield str(link / path.name)


def check_depth(line: bytes) -> None:
    """Raise RulesError for a line with more than MAX_BRACKETS brackets.

    Valid rules nest three deep, and the JSON parser's stack is bounded. Brackets in strings count,
    too, because rules contain none.
    """
    if line.count(b"[") + line.count(b"{") > MAX_BRACKETS:
        raise RulesError(f"fault control: a line has {MAX_BRACKETS} brackets at most")


class FaultControl:
    """The server of one control socket. At most MAX_CONNECTIONS clients are connected.

    The thread of the event loop owns it. No request can stop the node.
    """

    def __init__(self, faults: Faults, witness: WitnessTransport, path: Path, clock: Clock) -> None:
        """Create the server. `clock` measures leases, so no rule may affect it."""
        self._path = path
        self._clock = clock
        self._lease: Timer | None = None
        self._expires_ms = 0
        self._faults = faults
        self._witness = witness
        self._open: dict[asyncio.StreamWriter, None] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the lines of one client until it disconnects or sends more than MAX_LINE_BYTES in
        one line."""
        if len(self._open) >= MAX_CONNECTIONS:
            writer.close()
            return
        self._open[writer] = None
        try:
            while line := await reader.readline():
                writer.write(json.dumps(self.answer(line)).encode() + b"\n")
                await writer.drain()
        except (ValueError, OSError):  # a line over the limit, or a client that disconnected
            return
        finally:
            del self._open[writer]
            writer.close()

    def close(self) -> None:
        """Close all connections and remove the socket file. The rules stay in force."""
        self._end_lease()
        for writer in list(self._open):
            writer.close()
        self._path.unlink(missing_ok=True)

    def answer(self, line: bytes) -> dict[str, object]:
        """Apply the request in the line and return the response, with the rules then in force. An
        error of any kind becomes an error response, because fault control must not stop the
        node."""
        try:
            check_depth(line)
            asked = json.loads(line)
            if not isinstance(asked, dict) or not asked.keys() <= {"rules", "lease_ms"}:
                raise RulesError(
                    'fault control: must be {} or {"rules": {...}, "lease_ms": N}, with either key'
                )
            self._obey(asked)
        except ValueError as error:
            return {"error": clipped(str(error), MAX_ERROR_CHARS)}
        except Exception as error:
            logger.exception("a line on the fault socket failed")
            return {"error": clipped(f"failed: {error!r}", MAX_ERROR_CHARS)}
        lasts = None if self._lease is None else max(0, self._expires_ms - self._clock.now_ms())
        return {
            "rules": asdict(self._faults.rules),
            "lease_ms": lasts,
            "affected": self._faults.affected,
            "last_sent_ms": self._witness.last_sent_ms,
        }

    def _obey(self, asked: dict[str, object]) -> None:
        """Apply the rules, and begin or renew their lease. Raise RulesError if one is wrong."""
        rules = rules_from(asked["rules"]) if "rules" in asked else self._faults.rules
        lease_ms = asked.get("lease_ms")
        if "lease_ms" in asked and not is_lease(lease_ms):
            raise RulesError(
                f"fault control: lease_ms: value {clipped(repr(lease_ms))} must be a whole number "
                f"from 1 to {MAX_LEASE_MS}"
            )
        if "rules" in asked and rules != Rules() and lease_ms is None:
            raise RulesError("fault control: rules with a fault need a lease_ms")
        if "rules" in asked:
            self._end_lease()
            self._faults.apply(rules)
        if isinstance(lease_ms, int) and rules != Rules():
            self._begin_lease(lease_ms)

    def _begin_lease(self, lease_ms: int) -> None:
        self._end_lease()
        self._expires_ms = self._clock.now_ms() + lease_ms
        self._lease = self._clock.call_later(lease_ms, self._expired)

    def _end_lease(self) -> None:
        if self._lease is not None:
            self._lease.cancel()
            self._lease = None

    def _expired(self) -> None:
        """End all faults, because nothing has renewed their lease."""
        self._lease = None
        logger.warning("the fault rules end: their lease expired without a renewal")
        self._faults.apply(Rules())


def is_lease(value: object) -> bool:
    """Return True if the value is a valid length of a lease, in ms."""
    return type(value) is int and 1 <= value <= MAX_LEASE_MS
