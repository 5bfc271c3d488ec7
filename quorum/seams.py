"""The four seams through which everything nondeterministic is handed in: Clock, Random, Transport,
Disk.

A node is given one `Seams` and reaches time, chance, the network and files through nothing else, so
the simulator, chaos runs and production run the very same node classes. The implementations stand
beside what they serve: `log/disk.py`, `rpc/transport.py`, `clock.py`; the simulated ones in
`tests/sim`.

Invariants that every implementation keeps (each has a conformance suite in `tests/unit`):

- All callbacks run on the event loop, never inside the call that registered them.
- A `Link` delivers whole frames, in order, each once, then `on_closed` exactly once, then nothing.
- `Disk.submit` runs work in order of submission, one piece at a time, off the loop.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

Buffer = bytes | bytearray | memoryview
T = TypeVar("T")


class Timer(Protocol):
    def cancel(self) -> None:
        """Idempotent; also harmless after the callback has run."""


class Clock(Protocol):
    """Monotonic time decides (sessions, lag, timeouts); wall time is only written into records."""

    def now_ms(self) -> int: ...

    def wall_ms(self) -> int: ...

    def cpu_ms(self) -> float:
        """Return the CPU time that the loop's thread has used. It only measures how long work
        took, so a simulated clock may stand still."""

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer: ...

    def call_soon(self, callback: Callable[[], None]) -> None: ...


class Random(Protocol):
    """What `random.Random` offers and the project uses; cores take it, never the module."""

    def random(self) -> float: ...

    def randrange(self, start: int, stop: int, /) -> int: ...

    def getrandbits(self, k: int, /) -> int: ...

    def shuffle(self, x: list[T], /) -> None: ...


class File(Protocol):
    """One open file. Calls block; `sync` is only ever made from `Disk.submit` or before serving."""

    path: str

    def pread(self, size: int, offset: int) -> bytes:
        """Up to `size` bytes; fewer only at the end of the file."""

    def pwrite(self, data: Buffer, offset: int) -> None:
        """All of `data` or an OSError; nothing is durable before `sync` returns."""

    def truncate(self, size: int) -> None: ...

    def sync(self) -> None:
        """When it returns, all that was written before is durable. When it raises, nothing is
        known: the node stops (fsync is never retried; see style-and-testing R45)."""

    def size(self) -> int: ...

    def close(self) -> None: ...


class DirectoryLock(Protocol):
    def release(self) -> None: ...


class Disk(Protocol):
    """Paths are absolute strings with `/`. Names are durable only after `sync_dir` of the
    parent."""

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> File:
        """FileNotFoundError when absent and not `create`."""

    def exists(self, path: str) -> bool: ...

    def is_dir(self, path: str) -> bool: ...

    def list(self, path: str) -> list[str]:
        """Names in the directory, sorted."""

    def make_dir(self, path: str) -> None:
        """One directory in an existing one; FileExistsError when it is there. Costs no sync."""

    def make_dirs(self, path: str) -> None:
        """Makes missing parents too; durable when it returns."""

    def rename(self, source: str, target: str) -> None:
        """Atomic replace, for files and directories; durable after `sync_dir` of the parent(s)."""

    def remove(self, path: str) -> None: ...

    def remove_tree(self, path: str) -> None: ...

    def sync_dir(self, path: str) -> None: ...

    def restrict(self, path: str) -> bool:
        """Take all access to the directory `path` from group and others. Return True if they had
        some. Raise PermissionError if another user owns it."""

    def lock(self, path: str) -> DirectoryLock:
        """An exclusive lock file; BlockingIOError when another process (or node) holds it."""

    def submit(
        self, work: Callable[[], T], done: Callable[[T | None, BaseException | None], None]
    ) -> None:
        """Run `work` in the disk's own thread, then `done(result, error)` on the event loop."""


class Wire(enum.Enum):
    """What travels in the frames of a link: told apart on a listening port by the first bytes."""

    NODE = "node"  # one WebSocket binary message = one frame
    KAFKA = "kafka"  # int32 size + payload = one frame (the size is not part of the frame)
    HTTP = "http"  # one GET: the frame in is its target, the frame back the whole response


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int

    def __str__(self) -> str:
        """Return `host:port`, with brackets around an IPv6 address."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class TransportError(Exception):
    """No link could be made, or the link is gone."""


class PeerRefused(TransportError):
    """Evidence: the host is up and nothing listens on that port (idea 9)."""


class PeerUnreachable(TransportError):
    """No evidence of anything: timed out, no route, reset during the handshake."""


class Link(Protocol):
    """One open connection, seen from one end."""

    peer: Address

    def send(self, *parts: Buffer) -> None:
        """Queue one frame made of `parts`; never blocks; dropped silently once the link is closed.

        The parts must not change until they are written. `pending_bytes` grows until then."""

    @property
    def pending_bytes(self) -> int: ...

    @property
    def closed(self) -> bool: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def close(self) -> None:
        """Write what is queued, then close."""

    def abort(self) -> None:
        """Close now; what is queued is lost."""


class LinkHandler(Protocol):
    def on_frame(self, frame: memoryview) -> None:
        """The handler owns the frame's buffer from now on. An exception closes the link, with a log
        line; `ProtocolError` is the expected one."""

    def on_closed(self, error: Exception | None) -> None: ...


class ProtocolError(Exception):
    """The other end sent what the protocol does not allow: its link is closed, nobody else
    notices."""


Accept = Callable[[Link], LinkHandler]


class Listener(Protocol):
    address: Address

    async def close(self) -> None:
        """Stop listening and abort every accepted link."""


class Transport(Protocol):
    async def listen(
        self, address: Address, accept: Mapping[Wire, Accept], *, max_frame_bytes: int
    ) -> Listener:
        """Port 0 picks a free port. A wire that is not in `accept` is closed with a log line; a
        frame over `max_frame_bytes` closes its link before anything is allocated for it."""

    async def connect(
        self, address: Address, wire: Wire, accept: Accept, *, max_frame_bytes: int, timeout_ms: int
    ) -> Link:
        """Raises PeerRefused or PeerUnreachable."""


@dataclass(frozen=True, slots=True)
class Seams:
    clock: Clock
    random: Random
    transport: Transport
    disk: Disk


def joined(parts: Sequence[Buffer]) -> bytes:
    return b"".join(parts)
