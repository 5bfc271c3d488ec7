"""The end of a link between nodes frees all of its objects at once, by their reference counts.

A reference cycle would wait for a full collection, which a node does rarely. If the collector had
frozen the objects before (`quorum/node/garbage.py`), no collection would ever find them. Peers that
connect again and again would fill the memory of the node.
"""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Callable, Iterator

import aiohttp
import pytest
from aiohttp import web

from quorate.quorum.clock import AsyncioClock
from quorate.quorum.rpc.budget import Memory
from quorate.quorum.rpc.channel import Channel
from quorate.quorum.rpc.frame_link import FrameLink
from quorate.quorum.rpc.handshake import Handshake, NodeSettings
from quorate.quorum.rpc.hello import Hello
from quorate.quorum.rpc.link_reading import LinkReading
from quorate.quorum.rpc.messages import frame_header, packed
from quorate.quorum.rpc.node_link_memory import NodeLinkMemory
from quorate.quorum.rpc.node_links import AcceptedLink
from quorate.quorum.rpc.node_server import NodeServer
from quorate.quorum.rpc.sliced_frame import SlicedFrame
from quorate.quorum.seams import Link, Wire
from tests.unit.rpc.nets import RUNNERS, Net, Recorder, on_real_nets
from tests.unit.rpc.test_connector import hello_of

KINDS = (
    *(FrameLink, Handshake, Channel, AcceptedLink, LinkReading, NodeLinkMemory, SlicedFrame),
    *(web.RequestHandler, web.BaseRequest, web.StreamResponse),
    *(aiohttp.ClientSession, aiohttp.ClientResponse, aiohttp.ClientWebSocketResponse),
)
LINKS = 3
ATTEMPTS = 500

End = Callable[[Link, NodeServer], None]


class Events:
    """The owner of a server. It keeps no channel."""

    def on_peer_up(self, channel: Channel) -> None: ...

    def on_peer_down(self, channel: Channel) -> None: ...


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """Collect nothing during the test, and hide all earlier objects."""
    gc.collect()
    gc.freeze()
    gc.disable()
    yield
    gc.enable()


def alive() -> Counter[str]:
    """Return the number of objects of links in this process, by class."""
    return Counter(type(each).__name__ for each in gc.get_objects() if isinstance(each, KINDS))


def close(link: Link, server: NodeServer) -> None:
    link.close()


def break_off(link: Link, server: NodeServer) -> None:
    link.abort()


def send_garbage(link: Link, server: NodeServer) -> None:
    link.send(frame_header(1), b"\xc1")


def be_aborted(link: Link, server: NodeServer) -> None:
    server.close()


HELLOS: dict[str, Hello | None] = {
    "no hello": None,
    "a good hello": hello_of(2),
    "a refused hello": hello_of(2, cluster_id="another"),
}
ENDS: dict[str, End] = {
    "closed": close,
    "broken off": break_off,
    "garbage": send_garbage,
    "aborted by the server": be_aborted,
}


@on_real_nets
@pytest.mark.parametrize("hello", HELLOS)
@pytest.mark.parametrize("end", ENDS)
def test_a_link_that_has_ended_is_freed_without_the_collector(
    kind: str, hello: str, end: str
) -> None:
    async def scenario(net: Net) -> None:
        clock = AsyncioClock()
        settings = NodeSettings(
            clock=clock,
            hello=lambda: hello_of(1),
            handlers={},
            memory=Memory(clock),
            handshake_timeout_ms=200,
        )
        server = NodeServer(settings, Events())
        listener = await net.listen(server.accept, Wire.NODE)
        for _ in range(LINKS):
            client = Recorder()
            link = await net.connect(listener.address, Wire.NODE, client)
            first = HELLOS[hello]
            if first is not None:
                link.send(frame_header(1), packed(first, 0))
                await client.received(1)
            ENDS[end](link, server)
            await client.ended()
            del client.link, client, link
        attempts = ATTEMPTS
        while alive() and attempts:
            attempts -= 1
            await asyncio.sleep(0.01)
        assert not alive()

    RUNNERS[kind](scenario)
