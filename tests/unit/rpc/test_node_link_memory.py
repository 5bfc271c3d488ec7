"""The memory of links between nodes: unfinished frames, and responses that a peer does not read."""

from __future__ import annotations

import pytest

from quorate.quorum.rpc import budget
from quorate.quorum.rpc.budget import SHARE, Memory
from quorate.quorum.rpc.handshake import NodeSettings, ServerHandshake
from quorate.quorum.rpc.messages import frame_header, packed
from tests.unit.rpc.kafka.fakes import FakeClock, FakeLink
from tests.unit.rpc.test_connector import hello_of

LIMIT_BYTES = 64 << 20
SHARE_BYTES = int(LIMIT_BYTES * SHARE)


class LinkServer:
    """A node with its budgets, which accepts links."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.memory = Memory(self.clock)

    def linked(self, node_id: int = 7) -> tuple[FakeLink, ServerHandshake]:
        """Return a link whose handshake is complete, with its handler."""
        link = FakeLink()
        settings = NodeSettings(
            clock=self.clock, hello=lambda: hello_of(1), handlers={}, memory=self.memory
        )
        handshake = ServerHandshake(
            link, settings, lambda channel: None, lambda channel: None, lambda error: None
        )
        handshake.on_frame(memoryview(frame_header(1) + packed(hello_of(node_id), 0)))
        return link, handshake


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> LinkServer:
    monkeypatch.setattr(budget, "MAX_NODES_BYTES", LIMIT_BYTES)
    return LinkServer()


def test_unfinished_frames_of_all_links_together_are_bounded(node: LinkServer) -> None:
    """Without the budget, 4,096 links with 32 MiB each are allowed."""
    links = [node.linked() for _ in range(40)]
    for link, handshake in links:
        handshake.on_buffered(4 * SHARE_BYTES)
        if link.aborted:
            handshake.on_closed(None)
    assert node.memory.nodes.used_bytes <= LIMIT_BYTES
    assert sum(link.aborted for link, _ in links) > 20
    assert node.memory.requests.used_bytes == 0, "clients have budgets of their own"


def test_a_peer_that_does_not_read_is_counted_until_it_reads(node: LinkServer) -> None:
    link, handshake = node.linked()
    link.pending_bytes = 10 << 20
    handshake.on_drained(False)
    assert node.memory.nodes.used_bytes == 10 << 20
    link.pending_bytes = 0
    handshake.on_drained(True)
    assert node.memory.nodes.used_bytes == 0


def test_frames_that_follow_are_counted_too(node: LinkServer) -> None:
    link, handshake = node.linked()
    handshake.on_drained(False)
    link.pending_bytes = 5 << 20
    assert handshake._channel is not None
    unknown = bytes.fromhex("dd00000001") + bytes.fromhex("92cd270e01")  # a request of no kind
    handshake.on_frame(memoryview(unknown))
    node.clock.advance(0)
    assert node.memory.nodes.used_bytes == 5 << 20


def test_under_pressure_a_link_over_its_share_is_not_read(node: LinkServer) -> None:
    first, one = node.linked()
    second, other = node.linked()
    one.on_buffered(20 * SHARE_BYTES)
    assert not first.paused, "a link may use what no other one needs"
    other.on_buffered(20 * SHARE_BYTES)
    assert second.paused
    one.on_closed(None)
    assert not second.paused, "there is room again"


def test_a_closed_link_holds_nothing(node: LinkServer) -> None:
    _, handshake = node.linked()
    handshake.on_buffered(4 * SHARE_BYTES)
    handshake.on_closed(None)
    assert (len(node.memory.nodes), node.memory.nodes.used_bytes) == (0, 0)
