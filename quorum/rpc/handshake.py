"""The handshake over a new link between two nodes, at both ends. Afterwards the link belongs to a
Channel.

The client sends its Hello, and the server answers with a HelloReply. Exactly one of `on_channel`
and `on_failure` is called. If the handshake is not complete after `handshake_timeout_ms`, the link
is aborted. `on_failure` gets a HandshakeRefused, a TimeoutError, or the error that ended the link.
"""

from __future__ import annotations

import abc
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from quorate.quorum.clipped import shown
from quorate.quorum.ids import NO_NODE
from quorate.quorum.log_limit import LogLimit
from quorate.quorum.rpc.budget import Memory
from quorate.quorum.rpc.channel import Channel, ChannelSettings, Handlers
from quorate.quorum.rpc.hello import Hello, HelloReply, Peer, is_newer, refusal_of
from quorate.quorum.rpc.link_reading import LinkReading
from quorate.quorum.rpc.messages import Message, frame_header, packed, sole_message
from quorate.quorum.rpc.node_identity import UNPROVED, NodeProof
from quorate.quorum.rpc.node_link_memory import NodeLinkMemory
from quorate.quorum.seams import Address, Clock, Link, LinkHandler

logger = logging.getLogger(__name__)
REPEATED_AFTER_MS = 300_000
"""The time after which an equal refusal is logged again."""
MAX_REASON_CHARS = 1000
"""The longest reason of a refusal in the log. A longer one is cut."""


class HandshakeRefused(Exception):
    """One end refused the other. The message gives the reason."""


@dataclass(frozen=True, slots=True)
class LinkCounts:
    """The numbers of links of one node that were refused or closed.

    `refused` counts those that one end has refused in their handshake: `accepted` or `opened` by
    this node. `displaced` counts those that were closed to make room for others (`node_links.py`):
    `silent`, or `useful` after a valid request."""

    refused: Counter[str] = field(default_factory=Counter)
    displaced: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """The common settings of all links between nodes that one node opens or accepts."""

    clock: Clock
    hello: Callable[[], Hello]  # called for each link, because the generation may have changed
    handlers: Handlers
    on_newer: Callable[[Hello, Address], None] = lambda hello, address: None
    """Called with the Hello of a later generation of the quorum, and the address that this node
    connected to. A Hello of an accepted link does not count, because any program can send one."""
    proof: NodeProof = UNPROVED
    """The rule by which a peer proves the node id of its Hello."""
    counts: LinkCounts = field(default_factory=LinkCounts)
    channel: ChannelSettings = ChannelSettings()
    handshake_timeout_ms: int = 2000
    memory: Memory | None = None
    """The node's budgets. None counts nothing; tests and tools use it."""


class RefusalLog:
    """Logs each refusal once in REPEATED_AFTER_MS, with the number of equal ones since the last
    line, however often the peer tries again.

    A caller of the port chooses the ids in a refusal. The lines about one place are therefore
    limited too."""

    def __init__(self, clock: Clock) -> None:
        self._places = LogLimit(clock)
        self._lines = LogLimit(clock, REPEATED_AFTER_MS)

    def log(self, where: str, reason: str) -> None:
        """Log that the handshake at `where` was refused for `reason`, unless the same line was
        logged lately, or another one about `where` a moment ago."""
        line = f"{where}: {shown(reason, MAX_REASON_CHARS)}"
        if not self._lines.is_due(line):
            self._lines.passes(line)
            return
        left_out = self._places.passes(where)
        if left_out is not None:
            repeated = self._lines.passes(line)
            logger.warning("handshake refused: %s%s", line, repeated or left_out)


class Handshake(abc.ABC):
    """The LinkHandler of a link from its first frame on. It passes later frames to the channel.

    The event loop owns it. Invariant: `_channel` and `_failure` are never both set."""

    direction: str

    def __init__(
        self,
        link: Link,
        settings: NodeSettings,
        on_channel: Callable[[Channel], None],
        on_closed: Callable[[Channel], None],
        on_failure: Callable[[Exception], None],
    ) -> None:
        """Start the timeout. `on_closed` is called when an established channel ends."""
        self._link = link
        self._settings = settings
        self._on_channel = on_channel
        self._on_channel_closed = on_closed
        self._on_failure = on_failure
        self._channel: LinkHandler | None = None
        self._failure: Exception | None = None
        self._timer = settings.clock.call_later(settings.handshake_timeout_ms, self._too_late)
        self._reading = LinkReading(link)
        self._holding: NodeLinkMemory | None = None
        if settings.memory is not None:
            self._holding = NodeLinkMemory(link, settings.memory, self._reading)

    def on_buffered(self, held_bytes: int) -> None:
        """Count the bytes of an unfinished frame in the budget of links between nodes."""
        if self._holding is not None:
            self._holding.buffered(held_bytes)

    def on_drained(self, drained: bool) -> None:
        """Count the bytes that the peer does not take in the budget of links between nodes."""
        if self._holding is not None:
            self._holding.drained(drained)

    def on_frame(self, frame: memoryview) -> None:
        """Handle the first frame as the handshake, and pass later frames to the channel.

        After a refusal, ignore frames. Raise ProtocolError if the first frame is not the expected
        message, or if the channel raises it."""
        if self._channel is not None:
            self._channel.on_frame(frame)
        elif self._failure is None:
            self._on_first_frame(frame)

    def on_closed(self, error: Exception | None) -> None:
        """Report the end of the channel, or the failure of the handshake."""
        if self._holding is not None:
            self._holding.release()
        if self._channel is not None:
            self._channel.on_closed(error)
            return
        self._timer.cancel()
        reason = f"the link to {self._link.peer} closed during the handshake"
        self._on_failure(self._failure or error or ConnectionResetError(reason))

    @abc.abstractmethod
    def _on_first_frame(self, frame: memoryview) -> None:
        """Handle the peer's message of the handshake."""

    def _unproved(self, hello: Hello) -> str:
        """Return the reason why the peer is not believed, or an empty string."""
        return self._settings.proof.refusal(self._link.identity, hello.node_id)

    def _established(self, hello: Hello) -> None:
        self._timer.cancel()
        settings = self._settings
        channel = Channel(
            self._link,
            Peer(hello, self._link.peer),
            settings.clock,
            settings.handlers,
            settings.channel,
            self._on_channel_closed,
            on_sent=None if self._holding is None else self._holding.sent,
            on_held=self._hold,
            reading=self._reading,
        )
        self._channel = channel
        self._on_channel(channel)

    def _hold(self, held_bytes: int) -> None:
        if self._holding is not None:
            self._holding.handling(held_bytes)

    def _refused(self, reason: str) -> None:
        self._failure = HandshakeRefused(reason)
        self._settings.counts.refused[self.direction] += 1
        self._link.close()

    def _too_late(self) -> None:
        timeout_ms = self._settings.handshake_timeout_ms
        self._failure = TimeoutError(
            f"{self._link.peer} did not complete the handshake within {timeout_ms} ms"
        )
        self._link.abort()

    def _send(self, message: Message) -> None:
        self._link.send(frame_header(1), packed(message, 0))


class ServerHandshake(Handshake):
    """The accepting end: checks the Hello of the client and answers it."""

    direction = "accepted"

    def _on_first_frame(self, frame: memoryview) -> None:
        theirs: Hello = sole_message(frame, Hello)
        mine = self._settings.hello()
        if reason := self._unproved(theirs):
            self._send(HelloReply(hello=None, refusal=reason))
            self._refused(reason)
        elif reason := refusal_of(mine, theirs):
            hello = mine if is_newer(theirs, mine) else None
            self._send(HelloReply(hello=hello, refusal=reason))
            self._refused(reason)
        else:
            self._send(HelloReply(hello=mine))
            self._established(theirs)


class ClientHandshake(Handshake):
    """The connecting end: sends a Hello and checks the reply of the server."""

    direction = "opened"
    expected_id = NO_NODE
    address: Address

    def start(self, address: Address, expected_id: int) -> None:
        """Send Hello to the node at `address`, the address that this node connected to."""
        self.address = address
        self.expected_id = expected_id
        self._send(self._settings.hello())

    def _on_first_frame(self, frame: memoryview) -> None:
        reply: HelloReply = sole_message(frame, HelloReply)
        mine = self._settings.hello()
        if reply.hello is not None and (reason := self._unproved(reply.hello)):
            return self._refused(reason)
        if reply.hello is not None and is_newer(mine, reply.hello):
            self._settings.on_newer(reply.hello, self.address)
        if reply.hello is None or reply.refusal:
            return self._refused(f"{self._link.peer} refuses: {reply.refusal}")
        if reason := refusal_of(mine, reply.hello, expected_id=self.expected_id):
            return self._refused(reason)
        return self._established(reply.hello)
