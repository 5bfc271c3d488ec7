"""A link, a clock and a transport in memory, for one end at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from quorate.quorum.seams import (
    Accept,
    Address,
    Buffer,
    DialTls,
    Link,
    Listener,
    PeerIdentity,
    Timer,
    Tls,
    Wire,
    joined,
)


@dataclass
class FakeTimer:
    """A timer of FakeClock."""

    due_ms: float
    callback: Callable[[], None]
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True


@dataclass
class FakeClock:
    """A clock that advances only in `advance`. `used_cpu_ms` is the CPU time."""

    time_ms: int = 1000
    timers: list[FakeTimer] = field(default_factory=list)
    used_cpu_ms: float = 0.0

    def now_ms(self) -> int:
        return self.time_ms

    def now_us(self) -> int:
        return self.now_ms() * 1000

    def wall_ms(self) -> int:
        return self.time_ms

    def cpu_ms(self) -> float:
        return self.used_cpu_ms

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        timer = FakeTimer(self.time_ms + delay_ms, callback)
        self.timers.append(timer)
        return timer

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.call_later(0, callback)

    def advance(self, delay_ms: int) -> None:
        self.time_ms += delay_ms
        due = [each for each in self.timers if each.due_ms <= self.time_ms]
        self.timers = [each for each in self.timers if each.due_ms > self.time_ms]
        for timer in due:
            if not timer.cancelled:
                timer.callback()

    @property
    def waiting(self) -> int:
        return sum(not each.cancelled for each in self.timers)


@dataclass
class FakeLink:
    """A link that records the frames that were sent. `undrained` bytes are pending, as if the peer
    did not read."""

    peer: Address = Address("10.0.0.1", 5000)
    sent: list[bytes] = field(default_factory=list)
    closed: bool = False
    aborted: bool = False
    paused: bool = False
    pending_bytes: int = 0
    identity: PeerIdentity | None = None

    def send(self, *parts: Buffer) -> None:
        if not self.closed:
            self.sent.append(joined(parts))

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = self.aborted = True


@dataclass
class FakeTransport:
    """A transport whose connections are `link`."""

    link: FakeLink

    async def listen(
        self,
        address: Address,
        accept: Mapping[Wire, Accept],
        *,
        max_frame_bytes: int,
        tls: Tls | None = None,
    ) -> Listener:
        raise AssertionError("clients do not listen")

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
        assert wire is Wire.KAFKA
        self.link.peer = address
        accept(self.link)
        return self.link
