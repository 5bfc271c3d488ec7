"""The accepting end of links between nodes. `NodeServer.accept` is passed to `Transport.listen` for
`Wire.NODE`.

Several channels of one node may exist at the same time, for example if the node restarted while its
old link remains. The owner tells them apart by the incarnation id.
"""

from __future__ import annotations

import logging
from typing import Protocol

from quorate.quorum.rpc.channel import Channel
from quorate.quorum.rpc.handshake import HandshakeRefused, NodeSettings, RefusalLog, ServerHandshake
from quorate.quorum.rpc.hello import Peer
from quorate.quorum.seams import Link, LinkHandler

logger = logging.getLogger(__name__)


class NodeServerEvents(Protocol):
    """The callbacks of a node server, on the event loop."""

    def on_peer_up(self, channel: Channel) -> None:
        """React to a new channel. Nothing has arrived through it yet."""

    def on_peer_down(self, channel: Channel) -> None:
        """React to the end of a channel. All its requests have failed by now."""


class NodeServer:
    """The accepted channels of one node. The event loop owns it."""

    def __init__(self, settings: NodeSettings, events: NodeServerEvents) -> None:
        """Create a server without channels. `settings` apply to all of its links."""
        self._settings = settings
        self._events = events
        self._channels: dict[Channel, None] = {}
        self._refusals = RefusalLog(settings.clock)

    @property
    def channels(self) -> list[Channel]:
        """Return the open channels, in the order in which their handshakes were completed."""
        return list(self._channels)

    def accept(self, link: Link) -> LinkHandler:
        """Return the handler of a new link: the server's end of the handshake."""

        def failed(error: Exception) -> None:
            if isinstance(error, HandshakeRefused):
                self._refusals.log(f"link from {link.peer.host}", str(error))

        return ServerHandshake(link, self._settings, self._up, self._down, failed)

    def close(self) -> None:
        """Abort all channels. `on_peer_down` is called for each when the end of its link is
        reported.

        The owner of the listener closes it, and thus also the links in the middle of a
        handshake."""
        for channel in self.channels:
            channel.abort()

    def close_older(self, peer: Peer) -> None:
        """Abort the channels of the same node id that are older than the channel of `peer` and
        belong to another incarnation. Their requests fail.

        `peer` must be the `Channel.peer` of an open channel, not a copy."""
        for channel in self.channels:
            if channel.peer is peer:
                return
            older = channel.peer.hello
            is_same_node = older.node_id == peer.node_id
            if is_same_node and older.incarnation_id != peer.hello.incarnation_id:
                channel.abort()

    def _up(self, channel: Channel) -> None:
        self._channels[channel] = None
        self._events.on_peer_up(channel)

    def _down(self, channel: Channel) -> None:
        del self._channels[channel]
        self._events.on_peer_down(channel)
