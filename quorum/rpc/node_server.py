"""The accepting end of node-to-node links: `accept` goes into `Transport.listen` for `Wire.NODE`.

Several channels from one node may be up at a time (it restarted and the old link lingers):
telling them apart, by incarnation, is left to who listens.
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
    def on_peer_up(self, channel: Channel) -> None:
        """Before anything arrives through the channel."""

    def on_peer_down(self, channel: Channel) -> None: ...


class NodeServer:
    def __init__(self, settings: NodeSettings, events: NodeServerEvents) -> None:
        self._settings = settings
        self._events = events
        self._channels: dict[Channel, None] = {}
        self._refusals = RefusalLog()

    @property
    def channels(self) -> list[Channel]:
        """Those that are up, in order of arrival."""
        return list(self._channels)

    def accept(self, link: Link) -> LinkHandler:
        def failed(error: Exception) -> None:
            if isinstance(error, HandshakeRefused):
                self._refusals.say(f"link from {link.peer.host}", str(error))

        return ServerHandshake(link, self._settings, self._up, self._down, failed)

    def close(self) -> None:
        for channel in self.channels:
            channel.abort()

    def close_older(self, peer: Peer) -> None:
        """Close the channels that earlier processes of `peer`'s node opened, and discard what they
        still carry."""
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
