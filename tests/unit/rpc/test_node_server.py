"""Links of a node's earlier process, which may remain after the node has restarted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from quorate.quorum.ids import Uuid
from quorate.quorum.node.controller.controller_node import ControllerNode
from quorate.quorum.rpc.channel import Channel
from quorate.quorum.rpc.handshake import NodeSettings
from quorate.quorum.rpc.messages import frame_header, packed
from quorate.quorum.rpc.node_server import NodeServer
from tests.unit.rpc.kafka.fakes import FakeClock, FakeLink
from tests.unit.rpc.test_connector import hello_of


class Server:
    """A server whose events are recorded."""

    def __init__(self) -> None:
        self.up: list[Channel] = []
        settings = NodeSettings(clock=FakeClock(), hello=lambda: hello_of(1), handlers={})
        self.server = NodeServer(settings, self)

    def on_peer_up(self, channel: Channel) -> None:
        self.up.append(channel)

    def on_peer_down(self, channel: Channel) -> None: ...

    def met(self, node_id: int, incarnation: int) -> FakeLink:
        link = FakeLink()
        hello = hello_of(node_id, incarnation_id=Uuid(bytes([incarnation]) * 16))
        handler = self.server.accept(link)
        handler.on_frame(memoryview(frame_header(1) + packed(hello, 0)))
        return link


def test_only_links_of_earlier_processes_of_that_node_are_closed() -> None:
    server = Server()
    older = [server.met(2, 1), server.met(2, 1)]
    others = [server.met(3, 1), server.met(2, 2)]
    newer = server.met(2, 3)
    server.server.close_older(server.up[3].peer)
    assert [link.aborted for link in older] == [True, True]
    assert not any(link.aborted for link in (*others, newer))


@pytest.mark.parametrize("catching_up", [False, True])
def test_a_fetch_of_a_replica_that_lost_its_log_discards_earlier_ones(catching_up: bool) -> None:
    """An old fetch acknowledges records that the replica has lost. If it counted, it would commit
    them."""
    server = Server()
    old = server.met(2, 1)
    server.met(2, 2)
    handled: list[Any] = []
    node = cast(ControllerNode, SimpleNamespace(_server=server.server))
    handle = ControllerNode._discarding_old_fetches(
        node, lambda peer, message, reply: handled.append(message)
    )
    message = SimpleNamespace(catching_up=catching_up)
    handle(server.up[1].peer, message, lambda response: None)
    assert handled == [message]
    assert old.aborted is catching_up
