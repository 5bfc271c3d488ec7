"""The error boundary of a Kafka port: an exception of a request ends here, and the node continues.

A request enters through `Connection.on_frame`, and its response leaves through a RequestContext.
Each exception in between is the fault of the request. The client receives an error, or its
connection is closed if the response of that API and version has no field for one. Only exceptions
about the node's own state pass the boundary and stop the node (`is_node_failure`).

A malformed request, or one that a port does not serve, closes its connection here, too.

The log of a boundary is bounded (`quorum/log_limit.py`). One line of a kind (API, type of
exception, line of code; or API and host of a refused request) passes in each interval. The first
line about an exception has a traceback.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import traceback
from collections import Counter
from typing import Protocol

from quorate.quorum.clipped import shown
from quorate.quorum.log.files.errors import CorruptBatch, CorruptLog
from quorate.quorum.log_limit import MAX_KINDS, LogLimit
from quorate.quorum.principal import Principal
from quorate.quorum.protocol.apis import APIS
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.rpc.tracebacks import drop_stack_frames
from quorate.quorum.seams import Address, Buffer, Clock
from quorate.quorum.state_in_doubt import StateInDoubt

logger = logging.getLogger("quorate.kafka")

MAX_FRAMES = 20  # of a logged traceback
HASH_DIGITS = 12
HASHED_BYTES = 1 << 20
"""Only these first bytes of a request are hashed. To hash a request of 100 MiB takes 0.2 s."""
DISK_ERRORS = frozenset(
    getattr(errno, name)
    for name in ("EIO", "ENOSPC", "EROFS", "EDQUOT", "ENXIO", "ENODEV", "EUCLEAN")
    if hasattr(errno, name)
)
"""The errors of an OSError that show that a disk failed, is full, or is read-only."""

UNKNOWN_API = "unknown"
"""The name in place of that of an API that is not known or not served."""
REFUSED = "refused"

Kind = tuple[str, type[BaseException], str, int]


def is_node_failure(error: Exception) -> bool:
    """Return True if `error` shows that the node's own state or disk is at fault.

    CorruptLog means damaged stored data. `broker/replication/partitions/damage.py` raises it only
    if the node must stop. An OSError for lack of file descriptors or memory is not a failure of the
    disk."""
    if isinstance(error, OSError):
        return error.errno in DISK_ERRORS
    return isinstance(error, (StateInDoubt, CorruptLog))


def error_code_of(error: Exception) -> ErrorCode:
    """Return the error code that a client receives for an exception that no handler expected."""
    corrupt = isinstance(error, CorruptBatch)
    return ErrorCode.CORRUPT_MESSAGE if corrupt else ErrorCode.UNKNOWN_SERVER_ERROR


class Client(Protocol):
    """A connection, as its boundary uses it."""

    @property
    def peer(self) -> Address:
        """Return the address of the client."""

    principal: Principal


class Refused(Protocol):
    """A refused request whose header was read."""

    api_key: int
    version: int

    @property
    def principal(self) -> Principal:
        """Return the principal of the client."""


class Boundary:
    """The bounded log of failed and refused requests of one port. The event loop owns it."""

    def __init__(self, clock: Clock, refusals: Counter[str] | None = None) -> None:
        """Create a log without lines. `clock` measures its intervals. `refusals` counts the
        requests of the node that were refused, by the name of the API."""
        self._lines = LogLimit(clock)
        self._seen: set[Kind] = set()
        self._refusals: Counter[str] = Counter() if refusals is None else refusals

    def refused(self, reason: str, client: Client, request: Refused | None, frame: Buffer) -> None:
        """Count a request that closes its connection for `reason`: it is malformed, for example.

        Log a warning, unless one about this API and host was logged in this interval. `request` is
        None if its header was not read. The line contains a hash of `frame`, if there is one."""
        name = UNKNOWN_API if request is None else APIS[request.api_key].name
        self._refusals[name] += 1
        left_out = self._lines.passes((REFUSED, name, client.peer.host))
        if left_out is None:
            return
        version = "" if request is None else f" v{request.version}"
        principal = client.principal if request is None else request.principal
        described = f" ({name}{version}, {_described(frame)})" if len(frame) else ""
        logger.warning(
            "closing the connection from %s of %s: %s%s%s",
            client.peer,
            shown(str(principal)),
            reason,
            described,
            left_out,
        )

    def report(self, error: Exception, name: str, version: int, client: str, frame: Buffer) -> None:
        """Log that a request failed with `error`, and remove the stack frames from `error`.

        Log nothing if a line of the same kind was logged in this interval. The first line of a kind
        is an ERROR, and later ones are warnings.

        `name` and `version` are those of the API. `client` is its principal and address. `frame` is
        the whole request; the log line contains a hash of it."""
        kind = _kind(name, error)
        left_out = self._lines.passes(kind)
        if left_out is None:
            drop_stack_frames(error)
            return
        first = kind not in self._seen and len(self._seen) < MAX_KINDS
        if first:
            self._seen.add(kind)
        detail = "".join(traceback.format_tb(error.__traceback__, -MAX_FRAMES)) if first else ""
        logger.log(
            logging.ERROR if first else logging.WARNING,
            "%s v%d of %s failed: %s (%s)%s%s",
            name,
            version,
            client,
            _summary(error),
            _described(frame),
            left_out,
            f"\n{detail}" if detail else "",
        )
        drop_stack_frames(error)


def _described(frame: Buffer) -> str:
    digest = hashlib.sha256(memoryview(frame)[:HASHED_BYTES]).hexdigest()[:HASH_DIGITS]
    return f"frame of {len(frame)} bytes, sha256 {digest}"


def _summary(error: Exception) -> str:
    text = f"{type(error).__name__}: {error}"
    return text if len(text) <= 200 else f"{text[:200]}..."


def _kind(name: str, error: Exception) -> Kind:
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None:
        return name, type(error), "", 0
    return name, type(error), last.tb_frame.f_code.co_filename, last.tb_lineno
