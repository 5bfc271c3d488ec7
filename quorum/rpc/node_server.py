"""The accepting end of links between nodes. `NodeServer.accept` is passed to `Transport.listen` for
`Wire.NODE`.

Several channels of one node may exist at the same time, for example if the node restarted while its
old link remains. The owner tells them apart by the incarnation id. `node_links.py` bounds the
number of links.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Protocol

from quorate.quorum.rpc.channel import Channel
from quorate.quorum.rpc.handshake import HandshakeRefused, NodeSettings, RefusalLog, ServerHandshake
from quorate.quorum.rpc.hello import Peer
from quorate.quorum.rpc.node_links import NodeLinks, most_node_links
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

    def __init__(
        self,
        settings: NodeSettings,
        events: NodeServerEvents,
        *,
        most_links: int | None = None,
        known: Callable[[], Collection[int]] = frozenset,
    ) -> None:
        """Create a server without channels. `settings` apply to all of its links.

        At most `most_links` are open, by default a part of RLIMIT_NOFILE. `known` returns the ids
        of the voters and of the registered brokers, whose links are closed last."""
        self._settings = settings
        self._events = events
        self._channels: dict[Channel, None] = {}
        most = most_node_links() if most_links is None else most_links
        self.links = NodeLinks(settings.clock, most, known, settings.counts.displaced)
        self._refusals = RefusalLog(settings.clock)

    @property
    def channels(self) -> list[Channel]:
        """Return the open channels, in the order in which their handshakes were completed."""
        return list(self._channels)

    def accept(self, link: Link) -> LinkHandler:
        """Return the handler of a new link: the server's end of the handshake. This may close an
        older link."""
        accepted = self.links.add(link)

        def up(channel: Channel) -> None:
            self.links.greeted(accepted, channel)
            channel.on_first_request = lambda: self.links.useful(accepted)
            self._up(channel)

        def down(channel: Channel) -> None:
            self.links.remove(accepted)
            self._down(channel)

        def failed(error: Exception) -> None:
            self.links.remove(accepted)
            if isinstance(error, HandshakeRefused):
                self._refusals.log(f"link from {link.peer.host}", str(error))

        return ServerHandshake(link, self._settings, up, down, failed)

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
