"""The interfaces through which clock, random numbers, network and disk are injected into a node.

A node gets one `Seams` object and uses time, chance, the network and files only through it. The
simulation, the failure scenarios and production therefore run the same node classes. The real
implementations are `clock.py`, `log/disks/disk.py` and `rpc/transport.py`. The simulated ones are
in tests/sim.

Invariants of every implementation (tests/unit checks them):

- All callbacks run on the event loop, and never inside the call that registered them.
- A `Link` delivers whole frames in order, each one once, then `on_closed` exactly once, and then
  nothing more.
- `Disk.submit` runs work in the order of submission, one piece at a time, in another thread.
  `Disk.submit_long` does the same in a third thread. The order between the two is not defined.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from quorate.quorum.principal import ANONYMOUS, Principal

Buffer = bytes | bytearray | memoryview
T = TypeVar("T")


class Timer(Protocol):
    """A scheduled callback."""

    def cancel(self) -> None:
        """Prevent the callback. Do nothing if it has run or is cancelled already."""


class Clock(Protocol):
    """The time. Sessions, lag and timeouts use monotonic time. Wall time is only written into
    records and compared with their timestamps."""

    def now_ms(self) -> int:
        """Return the monotonic time in ms, from an arbitrary start."""

    def now_us(self) -> int:
        """Return the monotonic time in us, with the same start as `now_ms`, to measure durations
        for metrics. It may be ahead of `now_ms` by the resolution of that time."""

    def wall_ms(self) -> int:
        """Return the time in ms since 1970 UTC. It may jump."""

    def cpu_ms(self) -> float:
        """Return the CPU time of the event loop's thread in ms. It only measures the cost of work,
        so a simulated clock need not advance it."""

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` on the event loop after `delay_ms`, unless the timer is cancelled."""

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call `callback` in the next iteration of the event loop."""


class Random(Protocol):
    """A source of random numbers, with the methods of `random.Random` that the project uses.

    In production, outputs must not reveal later ones: clients see topic ids, and secrets and the
    nonces of SASL come from the same source."""

    def random(self) -> float:
        """Return a number from 0, inclusive, to 1, exclusive."""

    def randrange(self, start: int, stop: int, /) -> int:
        """Return an integer from `start`, inclusive, to `stop`, exclusive."""

    def getrandbits(self, k: int, /) -> int:
        """Return an integer of `k` random bits."""

    def shuffle(self, x: list[T], /) -> None:
        """Put the elements of `x` into a random order."""


class File(Protocol):
    """One open file. All calls block, and raise OSError if the disk fails.

    Only work of `Disk.submit`, and a node that does not serve yet, call `sync`."""

    path: str

    def pread(self, size: int, offset: int) -> bytes:
        """Return `size` bytes from `offset` on, fewer only at the end of the file."""

    def pwrite(self, data: Buffer, offset: int) -> None:
        """Write all of `data` at `offset`. Nothing is durable before `sync` returns."""

    def truncate(self, size: int) -> None:
        """Cut or extend the file to `size` bytes."""

    def sync(self) -> None:
        """Make everything that was written before the call durable.

        If it raises, the state of the written bytes is unknown, so the node stops. A failed fsync
        is never repeated, because a second one can succeed without the bytes (R45 in
        tests/scenarios).
        """

    def size(self) -> int:
        """Return the size of the file in bytes."""

    def close(self) -> None:
        """Close the file."""


class DirectoryLock(Protocol):
    """A lock that this process holds."""

    def release(self) -> None:
        """Release the lock. A second call does nothing."""


class Disk(Protocol):
    """The file system. Paths are absolute strings with `/`. All methods but `submit` and
    `submit_long` block, and raise OSError if the disk refuses or fails. Any thread may call them,
    but only the thread of the event loop calls `submit` and `submit_long`.

    A new, renamed or removed name is durable only after `sync_dir` of its parent."""

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> File:
        """Open a file. Raise FileNotFoundError if it is missing and not `create`."""

    def exists(self, path: str) -> bool:
        """Return True if there is a file or directory."""

    def is_dir(self, path: str) -> bool:
        """Return True if the path is a directory."""

    def list(self, path: str) -> list[str]:
        """Return the names in a directory, sorted."""

    def make_dir(self, path: str) -> None:
        """Create one directory in an existing one, without a sync. Raise FileExistsError."""

    def make_dirs(self, path: str) -> None:
        """Create a directory and its missing parents. They are durable on return."""

    def rename(self, source: str, target: str) -> None:
        """Rename a file or directory atomically. A file at `target` is replaced."""

    def remove(self, path: str) -> None:
        """Remove a file."""

    def remove_tree(self, path: str) -> None:
        """Remove a directory with everything in it."""

    def sync_dir(self, path: str) -> None:
        """Make the names in a directory durable."""

    def restrict(self, path: str) -> bool:
        """Remove the access of the group and of other users to a directory. Return True if they had
        access. Raise PermissionError if they had and another user owns the directory."""

    def lock(self, path: str) -> DirectoryLock:
        """Lock a file exclusively. Raise BlockingIOError if another process or node holds it."""

    def submit(
        self, work: Callable[[], T], done: Callable[[T | None, BaseException | None], None]
    ) -> None:
        """Run `work` in the disk's thread, then call `done(result, error)` on the event loop.

        `error` is the exception of `work`, or None if it returned. Return immediately. Flushes run
        in this thread, so the work must be a flush or short."""

    def submit_long(
        self, work: Callable[[], T], done: Callable[[T | None, BaseException | None], None]
    ) -> None:
        """Do the same in the thread of long work, for which no flush waits.

        The work may take long in calls that release the interpreter's lock, such as decompression
        and reads. Steps of Python code must be short here, too, because the event loop waits for
        the lock. Work of many steps calls `rest` after each one."""

    def rest(self) -> bool:
        """Block the thread of long work for some time, in proportion to its last step, so that the
        event loop gets the interpreter's lock and the core for most of the time.

        Return True if the current work has run for so long that it must end. Other work of the
        thread waits for it. Only work of `submit_long` calls this."""


class Wire(enum.Enum):
    """The protocol of a link. A listening port recognizes it by the first bytes."""

    NODE = "node"  # A frame is one binary message of a WebSocket.
    KAFKA = "kafka"  # A frame is a payload after its size as int32. The size is not part of it.
    HTTP = "http"  # One GET. The received frame is its target, the sent one the whole response.


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a TCP port."""

    host: str
    port: int

    def __str__(self) -> str:
        """Return `host:port`, with brackets around an IPv6 address."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class TransportError(Exception):
    """A link could not be opened, or it is closed."""


class PeerRefused(TransportError):
    """The host refused the connection: it runs, and no process listens on the port. The process at
    this address is dead, or does not listen yet or any more."""


class PeerUnreachable(TransportError):
    """A timeout, no route, or a reset during the handshake. It proves nothing about the peer."""


class TlsFailed(PeerUnreachable):
    """The TLS handshake with the peer failed. The message has the reason, for the operator."""


@dataclass(frozen=True, slots=True)
class PeerIdentity:
    """The identity that the peer of a link has proved with a certificate.

    `uris` are the URIs among the subject alternative names. Without a certificate, `verified` is
    False and the principal is ANONYMOUS."""

    principal: Principal = ANONYMOUS
    uris: tuple[str, ...] = ()
    verified: bool = False


ANONYMOUS_PEER = PeerIdentity()


class Link(Protocol):
    """One open connection, seen from one end.

    If the listener does TLS, a Kafka link exists before its handshake. If its handler has a method
    `on_identified(identity)`, the link calls it after the handshake, before the first frame. Links
    of nodes and of HTTP begin after the handshake."""

    peer: Address
    identity: PeerIdentity | None
    """The proved identity of the peer. None without TLS, and before the end of a TLS handshake."""

    def send(self, *parts: Buffer) -> None:
        """Queue one frame made of `parts`, without blocking. Drop it if the link is closed.

        The caller must not change the parts until they are written. They count in `pending_bytes`
        until then."""

    @property
    def pending_bytes(self) -> int:
        """Return the number of queued bytes that are not written yet."""

    @property
    def closed(self) -> bool:
        """Return True if the link is closed."""

    def pause_reading(self) -> None:
        """Deliver no more frames until `resume_reading`."""

    def resume_reading(self) -> None:
        """Deliver frames again."""

    def close(self) -> None:
        """Write the queued frames, then close."""

    def abort(self) -> None:
        """Close immediately. Queued frames are lost."""


class LinkHandler(Protocol):
    """The receiver of one link's events."""

    def on_frame(self, frame: memoryview) -> None:
        """Handle a frame. The handler owns its buffer from now on.

        An exception closes the link with a log line. ProtocolError is the expected one."""

    def on_closed(self, error: Exception | None) -> None:
        """Handle the end of the link. `error` is None if one of the two ends closed it."""


class ProtocolError(Exception):
    """The peer has violated the protocol. Its link is closed, and no other link is affected."""


Accept = Callable[[Link], LinkHandler]
"""Creates the handler of a new link."""


class Tls(Protocol):
    """The TLS of a listener (`rpc/tls/listener_tls.py`)."""

    optional: bool
    """True if connections may also begin without TLS."""

    def above(self, protocol: Any) -> Any:
        """Return the asyncio protocol of a new connection, which does TLS for `protocol`."""


class DialTls(Protocol):
    """The TLS of connections to other nodes (`rpc/tls/listener_tls.py`)."""

    @property
    def dial_context(self) -> Any:
        """Return the SSLContext of a new connection, with the certificate of this node."""

    def dialed_identity(self, transport: Any) -> PeerIdentity:
        """Return the identity that the peer of an asyncio transport has proved in its handshake.
        A certificate that cannot be read proves nothing."""


class Listener(Protocol):
    """An open port."""

    address: Address

    async def close(self) -> None:
        """Stop listening, and abort every accepted link."""


class Transport(Protocol):
    """The network."""

    async def listen(
        self,
        address: Address,
        accept: Mapping[Wire, Accept],
        *,
        max_frame_bytes: int,
        tls: Tls | None = None,
    ) -> Listener:
        """Listen at `address`. Port 0 means any free port, which `Listener.address` then names.
        Raise OSError if the address cannot be used, after some seconds if its port is taken.
        With `tls`, each connection begins with a TLS handshake.

        A connection with a protocol that `accept` does not name is closed with a log line. A frame
        above `max_frame_bytes` closes its link before memory is allocated for it."""

    async def connect(
        self,
        address: Address,
        wire: Wire,
        accept: Accept,
        *,
        max_frame_bytes: int,
        timeout_ms: int,
        tls: DialTls | None = None,
    ) -> Link:
        """Open a link. Raise PeerRefused or PeerUnreachable within `timeout_ms`.

        `wire` is NODE or KAFKA. `accept` creates the handler of the link. With `tls`, the
        connection begins with a TLS handshake, which proves the peer's identity."""


@dataclass(frozen=True, slots=True)
class Seams:
    """The four injected interfaces of one node."""

    clock: Clock
    random: Random
    transport: Transport
    disk: Disk


def joined(parts: Sequence[Buffer]) -> bytes:
    """Return the parts of a frame as one byte string."""
    return b"".join(parts)
