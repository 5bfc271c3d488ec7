"""The connecting end of a channel: connects to one peer, and reconnects after each loss.

If a stable channel is lost, the next attempt is made immediately. A channel is stable if it was up
for more than `max_backoff_ms`, or if the connector's first attempt made it. If the next attempt is
refused, the peer's process is dead rather than silent, which is a hint for Raft and the controller
(`docs/protocol/broker-sessions-and-hints.md`). All other attempts back off exponentially, with
jitter.
"""

from __future__ import annotations

import asyncio
import enum
from dataclasses import dataclass
from typing import Protocol

from quorate.quorum.clipped import shown
from quorate.quorum.ids import NO_NODE
from quorate.quorum.rpc.channel import Channel
from quorate.quorum.rpc.delivery import raise_failure
from quorate.quorum.rpc.handshake import ClientHandshake, HandshakeRefused, NodeSettings, RefusalLog
from quorate.quorum.seams import (
    Address,
    Link,
    PeerRefused,
    Random,
    Timer,
    TlsFailed,
    Transport,
    TransportError,
    Wire,
)

MAX_FAILURE_CHARS = 300
"""The most characters of `Connector.failure`, which a peer may choose."""


class ConnectorEvents(Protocol):
    """The callbacks of a connector, on the event loop."""

    def on_up(self, channel: Channel) -> None:
        """React to a new channel. Nothing has arrived through it yet."""

    def on_down(self, channel: Channel) -> None:
        """React to the end of the channel of the last `on_up`. All its requests have failed by
        now."""

    def on_refused(self) -> None:
        """React to a refused attempt: the peer's host is up, and nothing listens on the port.
        Called after every such attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorSettings:
    """The timeouts of a connector, in milliseconds, and the settings of its links."""

    node: NodeSettings
    connect_timeout_ms: int = 2000
    backoff_ms: int = 20
    """The first backoff. It doubles with each failure, up to `max_backoff_ms`."""
    max_backoff_ms: int = 1000
    jitter: float = 0.2
    """The part by which a backoff is randomly shortened or lengthened."""


class Connector:
    """Keeps a channel to one peer from `start` to `close`. `channel` is None while there is none.

    The event loop owns it. At most one attempt, one timer or one link exists at a time."""

    def __init__(
        self,
        address: Address,
        transport: Transport,
        random: Random,
        settings: ConnectorSettings,
        events: ConnectorEvents,
        *,
        expected_id: int = NO_NODE,
    ) -> None:
        """Create a connector to `address`. The handshake is refused if the node there is not
        `expected_id`. With NO_NODE, any node of the cluster is accepted."""
        self.address = address
        self.channel: Channel | None = None
        self.failure = ""
        """The reason why the last attempt failed, clipped. Empty while there is a channel, and
        before the first failure."""
        self._transport = transport
        self._random = random
        self._settings = settings
        self._events = events
        self._expected_id = expected_id
        self._refusals = RefusalLog(settings.node.clock)
        self._closed = False
        self._failures = 0
        self._up_since_ms = 0
        self._timer: Timer | None = None
        self._task: asyncio.Task[None] | None = None
        self._link: Link | None = None

    def start(self) -> None:
        """Begin the first attempt and return. It runs in a task that the connector owns. Call this
        once."""
        self._attempt()

    def retry_now(self) -> None:
        """If a backoff runs, end it and connect now, because the peer has shown that it is alive.
        Otherwise do nothing."""
        if self._timer is not None:
            self._timer.cancel()
            self._attempt()

    def close(self) -> None:
        """Stop. If there is a channel, abort its link. Its requests fail and `on_down` is called
        when the end of the link is reported, which is later with TCP."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
        if self._link is not None:
            self._link.abort()

    def _attempt(self) -> None:
        self._timer = None
        if not self._closed:
            self._task = asyncio.get_running_loop().create_task(self._connect())
            self._task.add_done_callback(raise_failure)

    async def _connect(self) -> None:
        try:
            await self._transport.connect(
                self.address,
                Wire.NODE,
                self._accept,
                max_frame_bytes=self._settings.node.channel.max_frame_bytes,
                timeout_ms=self._settings.connect_timeout_ms,
            )
        except PeerRefused:
            self._failed("connection refused")
            self._events.on_refused()
        except TlsFailed as error:
            self._refusals.log(str(self.address), str(error))
            self._failed(str(error))
        except TransportError as error:
            self._failed(str(error).removeprefix(f"cannot reach {self.address}: "))

    def _accept(self, link: Link) -> ClientHandshake:
        self._link = link
        handshake = ClientHandshake(
            link, self._settings.node, self._up, self._down, self._handshake_failed
        )
        handshake.start(self.address, self._expected_id)
        return handshake

    def _up(self, channel: Channel) -> None:
        self.channel, self.failure = channel, ""
        self._up_since_ms = self._settings.node.clock.now_ms()
        self._events.on_up(channel)

    def _down(self, channel: Channel) -> None:
        self.channel = self._link = None
        up_ms = self._settings.node.clock.now_ms() - self._up_since_ms
        if self._failures == 0 or up_ms > self._settings.max_backoff_ms:
            self._failures = 1  # the channel was stable, so the next attempt needs no backoff
            self._attempt()
        else:
            self._back_off()
        self._events.on_down(channel)

    def _handshake_failed(self, error: Exception) -> None:
        self._link = None
        if isinstance(error, HandshakeRefused):
            self._refusals.log(str(self.address), str(error))
        self._failed(str(error))

    def _failed(self, reason: str) -> None:
        self.failure = shown(reason, MAX_FAILURE_CHARS)
        self._back_off()

    def _back_off(self) -> None:
        if self._closed:
            return
        settings = self._settings
        backoff_ms = min(settings.max_backoff_ms, settings.backoff_ms << min(self._failures, 16))
        delay_ms = backoff_ms * (1 + settings.jitter * (2 * self._random.random() - 1))
        self._failures += 1
        self._timer = settings.node.clock.call_later(delay_ms, self._attempt)


class ProbeResult(enum.Enum):
    """The result of a probe of a peer's port."""

    ALIVE = "alive"
    REFUSED = "refused"  # the host is up, and no process listens
    UNREACHABLE = "unreachable"  # the process may be alive or dead


async def probe(transport: Transport, address: Address, timeout_ms: int) -> ProbeResult:
    """Connect to the node port at `address`, and close the link without a message.

    Over TCP, ALIVE means that the process has completed the WebSocket handshake. Return the result
    within `timeout_ms`. Any error other than a refused connection means UNREACHABLE."""
    try:
        link = await transport.connect(
            address, Wire.NODE, _Mute, max_frame_bytes=1024, timeout_ms=timeout_ms
        )
    except PeerRefused:
        return ProbeResult.REFUSED
    except TransportError:
        return ProbeResult.UNREACHABLE
    link.close()
    return ProbeResult.ALIVE


class _Mute:
    def __init__(self, link: Link) -> None: ...

    def on_frame(self, frame: memoryview) -> None: ...

    def on_closed(self, error: Exception | None) -> None: ...
