"""Slow links, links that carry one direction only, links of clients, and dropped requests."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from typing import Any, cast

import pytest
import uvloop

from quorate.quorum.faults.faults import Faults
from quorate.quorum.faults.line import Line, Way
from quorate.quorum.faults.link import MAX_QUEUED_BYTES, FaultLink
from quorate.quorum.faults.rules import Rules
from quorate.quorum.faults.transport import FaultTransport
from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.protocol.headers import request_header
from quorate.quorum.rpc.transport import AioTransport
from quorate.quorum.seams import PeerUnreachable, Wire
from tests.unit.faults.test_links import Pair, nothing_more
from tests.unit.rpc.nets import Net, Recorder


def request(api_key: ApiKey, client_id: str = "app") -> bytes:
    """Return the header of a request, which is enough of a frame for the rules."""
    return request_header(api_key, 0, 1, client_id, 1)


class Served:
    """A node with faults and one listener, and a peer without faults that connects to it."""

    def __init__(self, **rules: Any) -> None:
        self.faults = Faults()
        self.net = Net(FaultTransport(AioTransport(), self.faults), AioTransport(), "127.0.0.1")
        self.node, self.peer = Recorder(), Recorder()
        self.faults.apply(Rules(**rules))

    async def open(self, *wires: Wire) -> None:
        """Listen for `wires`, and connect with Kafka's protocol."""
        address = (await self.net.listen(self.node, *wires)).address
        await self.net.connect(address, Wire.KAFKA, self.peer)

    async def close(self) -> None:
        """End both."""
        self.faults.apply(Rules())
        self.peer.link.abort()
        await self.net.close()


@pytest.mark.parametrize(("rule", "mute"), [("hold_to", "peer"), ("hold_from", "node")])
async def test_a_one_way_hold_leaves_the_other_direction(rule: str, mute: str) -> None:
    pair = Pair()
    await pair.open(Wire.NODE)
    pair.faults.apply(Rules(hold_to=(3,)) if rule == "hold_to" else Rules(hold_from=(3,)))
    pair.node.link.send(b"to the peer")
    pair.peer.link.send(b"to the node")
    hears = pair.node if mute == "peer" else pair.peer
    deaf = pair.peer if mute == "peer" else pair.node
    await hears.received(1)
    await nothing_more()
    assert not deaf.frames
    assert pair.faults.affected[rule] >= 1
    with pytest.raises(PeerUnreachable, match="held"):
        await pair.net.client.connect(
            pair.address, Wire.NODE, Recorder(), max_frame_bytes=1024, timeout_ms=10
        )
    pair.faults.apply(Rules())
    await deaf.received(1)
    pair.node.link.abort()
    await pair.net.close()


async def test_a_throttled_link_carries_so_many_bytes_per_second() -> None:
    pair = Pair()
    await pair.open(Wire.NODE)
    pair.faults.apply(Rules(bytes_per_s=100_000))
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    for _ in range(5):
        pair.node.link.send(bytes(1_000))
    await pair.peer.received(5)
    assert 0.05 <= loop.time() - began_s < 2
    assert pair.faults.affected["bytes_per_s"] == 5
    pair.faults.apply(Rules(bytes_per_s=1))
    pair.node.link.send(bytes(1_000))
    await nothing_more()
    assert len(pair.peer.frames) == 5
    pair.faults.apply(Rules())
    await pair.peer.received(6)
    pair.node.link.abort()
    await pair.net.close()


async def test_a_slow_link_does_not_fill_the_nodes_memory() -> None:
    pair = Pair()
    await pair.open(Wire.NODE)
    pair.peer.link.send(b"a handshake")  # the first frame of a node link is small
    await pair.node.received(1)
    pair.faults.apply(Rules(bytes_per_s=1))
    for _ in range(200):
        pair.peer.link.send(bytes(100_000))
    link = cast(FaultLink, pair.node.link)
    for _ in range(20):
        await nothing_more()
    assert MAX_QUEUED_BYTES < link._in.queued_bytes < 2 * MAX_QUEUED_BYTES
    pair.faults.apply(Rules())
    await pair.node.received(201)
    pair.node.link.abort()
    await pair.net.close()


@pytest.mark.parametrize(
    ("slow_links", "wires", "late"),
    [
        ("nodes", (Wire.KAFKA,), False),
        ("clients", (Wire.KAFKA,), True),
        ("all", (Wire.KAFKA,), True),
        ("clients", (Wire.NODE, Wire.KAFKA), False),
    ],
)
async def test_the_links_of_clients_are_slow_on_request(
    slow_links: str, wires: tuple[Wire, ...], late: bool
) -> None:
    served = Served(delay_ms=60_000, slow_links=slow_links)
    await served.open(*wires)
    served.peer.link.send(request(ApiKey.PRODUCE))
    if late:
        await nothing_more()
        assert not served.node.frames
        assert served.faults.affected["delay_ms"] == 1
        served.faults.crash()
    else:
        await served.node.received(1)
        await served.close()


async def test_clients_are_cut_off_and_nodes_are_not() -> None:
    clients = Served(cut=("clients",))
    await clients.open(Wire.KAFKA)
    await clients.peer.ended()
    assert clients.faults.affected["cut"] == 1
    await clients.net.close()
    nodes = Served(cut=("clients",))
    await nodes.open(Wire.NODE, Wire.KAFKA)
    nodes.peer.link.send(request(ApiKey.FETCH))
    await nodes.node.received(1)
    await nodes.close()


async def test_a_followers_fetch_is_ruled_because_its_client_id_names_it() -> None:
    served = Served(hold=(7,))
    await served.open(Wire.NODE, Wire.KAFKA)
    served.peer.link.send(request(ApiKey.FETCH, "broker-7-fetcher-0"))
    await nothing_more()
    assert not served.node.frames
    await served.close()
    await served.node.received(1)


async def test_requests_of_a_dropped_kind_vanish_at_both_ends() -> None:
    served = Served(drop=("ProduceRequest",))
    await served.open(Wire.KAFKA)
    served.peer.link.send(request(ApiKey.PRODUCE))
    served.peer.link.send(request(ApiKey.METADATA))
    (frame,) = await served.node.received(1)
    assert frame == request(ApiKey.METADATA)
    assert served.faults.affected["drop"] == 1
    served.node.link.send(request(ApiKey.PRODUCE))
    await served.peer.received(1)  # an answer may begin with any bytes
    await served.close()
    pair = Pair()
    await pair.open(Wire.KAFKA)
    pair.faults.drop("FetchRequest")
    pair.node.link.send(request(ApiKey.FETCH))
    pair.node.link.send(request(ApiKey.PRODUCE))
    (frame,) = await pair.peer.received(1)
    assert frame == request(ApiKey.PRODUCE)
    pair.node.link.abort()
    await pair.net.close()


def test_a_timer_of_uvloop_that_has_no_time() -> None:
    """With less than a millisecond left, uvloop returns a handle without `when`. The node ended."""

    async def queue_two() -> list[int]:
        passed: list[int] = []
        way = Way(delay_ms=lambda: 0, bytes_per_s=lambda: 100_000, holds=lambda: "")
        line = Line(way, Counter())
        for number in range(2):
            line.put(partial(passed.append, number), 20)
        await asyncio.sleep(0.01)
        return passed

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(queue_two()) == [0, 1]
