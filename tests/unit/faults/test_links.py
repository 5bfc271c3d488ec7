"""Faults of links over real sockets: cut, held, delayed, dropped frames, paused, crashed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from quorate.quorum.controller.state.messages import BrokerHeartbeatRequest
from quorate.quorum.faults.faults import Faults
from quorate.quorum.faults.rules import Rules
from quorate.quorum.faults.transport import FaultTransport
from quorate.quorum.ids import ZERO_UUID
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.raft.messages import EndQuorumEpochResponse
from quorate.quorum.rpc.hello import Hello
from quorate.quorum.rpc.messages import VERSIONS, frame_header, packed, rows_of
from quorate.quorum.rpc.transport import AioTransport
from quorate.quorum.seams import Address, PeerRefused, PeerUnreachable, ProtocolError, Wire
from tests.unit.rpc.nets import MAX_FRAME_BYTES, Net, Recorder

HEARTBEAT = packed(
    BrokerHeartbeatRequest(
        broker_id=7, broker_epoch=1, metadata_offset=1, want_fence=False, want_shut_down=False
    ),
    5,
)
OTHER = packed(EndQuorumEpochResponse(error=ErrorCode.NONE, epoch=1, leader_id=1), 6)
HELLO = frame_header(1) + packed(
    Hello(
        versions=VERSIONS,
        cluster_id="c",
        node_id=7,
        directory_id=ZERO_UUID,
        roles=("broker",),
        incarnation_id=ZERO_UUID,
    ),
    0,
)


class Pair:
    """A node with faults, and its link to node 3, a peer without faults."""

    def __init__(self) -> None:
        self.failures: list[BaseException] = []
        self.faults = Faults(self.failures.append)
        self.net = Net(AioTransport(), FaultTransport(AioTransport(), self.faults), "127.0.0.1")
        self.node, self.peer = Recorder(), Recorder()
        self.address = Address("", 0)

    async def open(self, wire: Wire) -> None:
        self.address = (await self.net.listen(self.peer)).address
        self.faults.peer_of = lambda address: 3 if address == self.address else None
        await self.net.connect(self.address, wire, self.node)
        self.node.link.send(b"hello")
        await self.peer.received(1)
        self.peer.frames.clear()


@pytest_asyncio.fixture(params=[Wire.NODE, Wire.KAFKA], ids=["node", "kafka"])
async def pair(request: pytest.FixtureRequest) -> AsyncIterator[Pair]:
    pair = Pair()
    await pair.open(request.param)
    yield pair
    pair.faults.apply(Rules())
    pair.node.link.abort()
    await pair.net.close()
    assert not pair.failures


async def nothing_more() -> None:
    """Wait long enough for a frame that must not arrive."""
    await asyncio.sleep(0.03)


async def test_a_cut_resets_links_and_refuses_new_ones_as_unreachable(pair: Pair) -> None:
    pair.faults.cut(3)
    await pair.node.ended()
    await pair.peer.ended()
    with pytest.raises(PeerUnreachable, match="cut"):
        await pair.net.connect(pair.address, Wire.KAFKA, Recorder())
    pair.faults.heal(3)
    (await pair.net.connect(pair.address, Wire.KAFKA, Recorder())).close()


async def test_a_peer_is_named_by_address_too(pair: Pair) -> None:
    pair.faults.cut("127.0.0.1:1", 4)
    pair.node.link.send(b"still here")
    await pair.peer.received(1)
    pair.faults.cut(str(pair.address))
    await pair.node.ended()


async def test_a_held_link_is_silent_and_loses_nothing(pair: Pair) -> None:
    pair.faults.hold(3)
    for frame in (b"one", b"two"):
        pair.node.link.send(frame)
        pair.peer.link.send(frame)
    assert pair.node.link.pending_bytes == 6
    await nothing_more()
    assert pair.node.frames == pair.peer.frames == []
    assert not pair.node.link.closed and not pair.peer.ends
    pair.faults.release(3)
    pair.node.link.send(b"three")
    pair.peer.link.send(b"three")
    assert await pair.node.received(3) == [b"one", b"two", b"three"]
    assert await pair.peer.received(3) == [b"one", b"two", b"three"]
    assert pair.node.link.pending_bytes == 0


async def test_links_and_frames_that_a_rule_affects_are_counted(pair: Pair) -> None:
    affected = pair.faults.affected
    pair.faults.hold(4)
    pair.node.link.send(b"not held")
    assert affected["hold"] == 0
    pair.faults.hold(3)
    assert affected["hold"] == 1, "a link that waits for an answer sends nothing"
    pair.node.link.send(b"held")
    assert affected["hold"] == 2
    pair.faults.release()
    pair.faults.delay(1)
    pair.node.link.send(b"late")
    assert (affected["hold"], affected["delay_ms"]) == (2, 1)
    pair.faults.delay(0)
    pair.faults.cut(3)
    assert affected["cut"] == 1
    await pair.node.ended()


async def test_ends_do_not_pass_a_held_link(pair: Pair) -> None:
    pair.faults.hold(3)
    pair.node.link.abort()
    await pair.node.ended()
    await nothing_more()
    assert not pair.peer.ends
    pair.faults.release()
    await pair.peer.ended()


async def test_the_peers_end_is_seen_when_the_link_is_released(pair: Pair) -> None:
    pair.faults.hold(3)
    pair.peer.link.close()
    await nothing_more()
    assert not pair.node.ends
    pair.faults.release()
    await pair.node.ended()


async def test_connecting_over_a_held_link_hangs(pair: Pair) -> None:
    pair.faults.hold(3)
    with pytest.raises(PeerUnreachable, match="held"):
        await pair.net.client.connect(
            pair.address, Wire.NODE, Recorder(), max_frame_bytes=MAX_FRAME_BYTES, timeout_ms=10
        )
    connecting = asyncio.create_task(pair.net.connect(pair.address, Wire.NODE, Recorder()))
    await nothing_more()
    assert not connecting.done()
    pair.faults.release()
    (await connecting).abort()


async def test_delayed_frames_keep_their_order(pair: Pair) -> None:
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    pair.faults.delay(40)
    pair.node.link.send(b"one")
    pair.faults.delay(0)
    pair.node.link.send(b"two")
    assert await pair.peer.received(2) == [b"one", b"two"]
    assert loop.time() - began_s >= 0.04


async def test_a_paused_node_hears_everything_afterwards_in_order(pair: Pair) -> None:
    pair.faults.pause()
    for frame in (b"one", b"two"):
        pair.peer.link.send(frame)
    pair.peer.link.close()
    await nothing_more()
    assert not pair.node.frames and not pair.node.ends
    pair.faults.resume()
    await pair.node.ended()
    assert pair.node.frames == [b"one", b"two"]


async def test_the_peers_bytes_queue_while_a_node_is_paused(pair: Pair) -> None:
    pair.peer.link.send(b"a handshake")  # the first frame of a node link is small
    await pair.node.received(1)
    pair.faults.pause()
    for _ in range(200):
        pair.peer.link.send(bytes(100_000))
    await nothing_more()
    assert pair.peer.link.pending_bytes > MAX_FRAME_BYTES
    pair.faults.resume()
    await pair.node.received(201)


async def test_a_crash_resets_links_and_tells_the_node_nothing(pair: Pair) -> None:
    pair.faults.crash()
    await pair.peer.ended()
    await nothing_more()
    assert not pair.node.ends
    pair.node.link.send(b"a ghost")
    assert pair.node.link.closed


async def test_a_handler_that_objects_or_fails_while_frames_are_held() -> None:
    def refuse(link: object, frame: bytes) -> None:
        raise ProtocolError("no") if frame == b"bad" else ZeroDivisionError

    for frame, failures in ((b"bad", 0), (b"worse", 1)):
        pair = Pair()
        pair.node = Recorder(refuse)
        await pair.open(Wire.NODE)
        pair.faults.pause()
        pair.peer.link.send(frame)
        await nothing_more()
        pair.faults.resume()
        await pair.peer.ended()
        await pair.node.ended()
        assert len(pair.failures) == failures
        await pair.net.close()


async def test_reading_that_the_node_paused_itself_stays_paused(pair: Pair) -> None:
    pair.faults.pause()
    pair.peer.link.send(b"one")
    pair.peer.link.send(b"two")
    await nothing_more()
    pair.node.link.pause_reading()
    pair.faults.resume()
    await nothing_more()
    assert not pair.node.frames
    pair.node.link.resume_reading()
    await pair.node.received(2)


async def test_messages_of_one_type_vanish_and_the_others_pass() -> None:
    pair = Pair()
    await pair.open(Wire.NODE)
    pair.faults.drop("BrokerHeartbeatRequest")
    for link in (pair.node.link, pair.peer.link):
        link.send(frame_header(2), HEARTBEAT, OTHER)
        link.send(frame_header(1), HEARTBEAT)
    assert pair.faults.affected["drop"] == 2, "what this node sent"
    pair.faults.drop()
    pair.node.link.send(frame_header(1), HEARTBEAT)
    thinned, whole = await pair.peer.received(2)
    assert rows_of(thinned) == rows_of(frame_header(1) + OTHER)
    assert whole == frame_header(1) + HEARTBEAT
    pair.node.link.abort()
    await pair.net.close()


async def test_a_link_that_came_in_is_ruled_once_its_hello_says_whose_it_is() -> None:
    faults = Faults()
    net = Net(FaultTransport(AioTransport(), faults), AioTransport(), "127.0.0.1")
    faults.cut(7)
    node, peer = Recorder(), Recorder()
    address = (await net.listen(node)).address
    (await net.connect(address, Wire.NODE, peer)).send(HELLO)
    await peer.ended()
    assert not node.frames
    await net.close()


async def test_a_crash_frees_the_port_and_ends_connects_mid_await() -> None:
    faults = Faults()
    net = Net(FaultTransport(AioTransport(), faults), AioTransport(), "127.0.0.1")
    node, peer = Recorder(), Recorder()
    listener = await net.listen(node)
    (await net.connect(listener.address, Wire.KAFKA, peer)).send(b"hello")
    await node.linked()
    faults.hold(str(listener.address))
    connecting = asyncio.create_task(
        net.server.connect(
            listener.address, Wire.NODE, Recorder(), max_frame_bytes=1024, timeout_ms=60_000
        )
    )
    await nothing_more()
    faults.crash()
    await faults.gone()
    await peer.ended()
    with pytest.raises(asyncio.CancelledError):
        await connecting
    with pytest.raises(asyncio.CancelledError):  # a task that only gets to run now
        await net.server.connect(
            listener.address, Wire.NODE, Recorder(), max_frame_bytes=1024, timeout_ms=1000
        )
    with pytest.raises(PeerRefused):
        await net.connect(listener.address, Wire.KAFKA, Recorder())
    net.opened.clear()
