"""Connector and NodeServer over the simulated network: handshakes, losses, probes, backoff."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterator
from functools import partial
from random import Random
from typing import Any

import pytest

from quorate.quorum.ids import NO_NODE, ZERO_UUID, Uuid
from quorate.quorum.log_limit import INTERVAL_MS
from quorate.quorum.raft.generation import Rebuild
from quorate.quorum.raft.messages import EndQuorumEpochRequest, EndQuorumEpochResponse
from quorate.quorum.rpc.channel import Channel, Handlers
from quorate.quorum.rpc.connector import Connector, ConnectorSettings, ProbeResult, probe
from quorate.quorum.rpc.handshake import REPEATED_AFTER_MS, NodeSettings, RefusalLog
from quorate.quorum.rpc.hello import Hello, VersionRange, refusal_of
from quorate.quorum.rpc.messages import VERSIONS
from quorate.quorum.rpc.node_server import NodeServer
from quorate.quorum.seams import Address, Link, LinkHandler, Listener, Wire
from tests.sim.world.clock import SimClock
from tests.sim.world.host import Host
from tests.sim.world.loop import SimLoop
from tests.sim.world.network import SimNetwork
from tests.sim.world.transport import SimTransport
from tests.unit.rpc.kafka.fakes import FakeClock

END = EndQuorumEpochRequest(cluster_id="c", leader_id=1, epoch=3, preferred_candidates=())
ENDED = EndQuorumEpochResponse(error=0, epoch=3, leader_id=-1)
OTHER_UUID = Uuid(bytes(15) + b"\7")
ADDRESS = Address("n1", 9093)


def hello_of(own_id: int, **changes: Any) -> Hello:
    hello = Hello(
        versions=VERSIONS,
        cluster_id="c",
        node_id=own_id,
        directory_id=ZERO_UUID,
        roles=("controller",),
        incarnation_id=ZERO_UUID,
    )
    return dataclasses.replace(hello, **changes)


class LinkedNode:
    """One node, which may serve and may keep a connection to n1. `events` are the callbacks that it
    got."""

    def __init__(self, bench: Bench, node_id: int, handlers: Handlers, hello: Hello) -> None:
        self.bench = bench
        self.events: list[str] = []
        self.host: Host = bench.network.boot(f"n{node_id}")
        self.transport = SimTransport(bench.network, self.host)
        self.newer: list[Hello] = []
        self.dialed: list[Address] = []
        self.settings = NodeSettings(
            clock=SimClock(self.host),
            hello=lambda: hello,
            handlers=handlers,
            on_newer=self.on_newer,
        )
        self.server = NodeServer(self.settings, self)
        self.listener: Listener | None = None
        self.connector: Connector | None = None

    def on_newer(self, hello: Hello, address: Address) -> None:
        self.newer.append(hello)
        self.dialed.append(address)

    def serve(self) -> None:
        self.listener = self.bench.loop.run(
            self.transport.listen(ADDRESS, {Wire.NODE: self.server.accept}, max_frame_bytes=10_000)
        )

    def connect(self, expected_id: int = NO_NODE) -> Connector:
        settings = ConnectorSettings(node=self.settings)
        self.connector = Connector(
            ADDRESS, self.transport, Random(7), settings, self, expected_id=expected_id
        )
        self.host.call_soon(self.connector.start)
        return self.connector

    def probe(self) -> ProbeResult:
        return self.bench.loop.run(probe(self.transport, ADDRESS, 200))

    @property
    def channel(self) -> Channel:
        assert self.connector is not None
        assert self.connector.channel is not None
        return self.connector.channel

    def on_up(self, channel: Channel) -> None:
        self.events.append(f"up {channel.peer.node_id}")

    def on_down(self, channel: Channel) -> None:
        self.events.append(f"down {channel.peer.node_id}")

    def on_refused(self) -> None:
        self.events.append("refused")

    def on_peer_up(self, channel: Channel) -> None:
        self.events.append(f"peer {channel.peer.node_id} up")

    def on_peer_down(self, channel: Channel) -> None:
        self.events.append(f"peer {channel.peer.node_id} down")


class Bench:
    """The nodes of one test, on a simulated network."""

    def __init__(self) -> None:
        self.loop = SimLoop()
        self.network = SimNetwork(self.loop, Random(3))

    def node(self, number: int, handlers: Handlers | None = None, **changes: Any) -> LinkedNode:
        return LinkedNode(self, number, handlers or {}, hello_of(number, **changes))

    def pass_ms(self, ms: float) -> None:
        self.loop.run_for(ms / 1000)


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.loop.close()


def serving(bench: Bench, **changes: Any) -> LinkedNode:
    server = bench.node(1, {EndQuorumEpochRequest: lambda peer, _, reply: reply(ENDED)}, **changes)
    server.serve()
    return server


def test_nodes_meet_and_talk(bench: Bench) -> None:
    server, client = serving(bench), bench.node(2)
    client.connect(expected_id=1)
    bench.pass_ms(10)
    assert (server.events, client.events) == (["peer 2 up"], ["up 1"])
    assert client.channel.peer.address == ADDRESS
    assert server.server.channels[0].peer.address.host == "n2"
    assert bench.loop.run(client.channel.call(END, 100)) == ENDED


def test_both_ends_ask(bench: Bench) -> None:
    server = serving(bench)
    client = bench.node(2, {EndQuorumEpochRequest: lambda peer, _, reply: reply(ENDED)})
    client.connect()
    bench.pass_ms(10)
    assert bench.loop.run(server.server.channels[0].call(END, 100)) == ENDED


def test_after_a_kill_the_first_attempt_is_made_at_once_and_refused(bench: Bench) -> None:
    """A refusal shows in milliseconds what a session timeout shows in seconds."""
    server, client = serving(bench), bench.node(2)
    connector = client.connect()
    bench.pass_ms(10)
    assert connector.failure == ""
    bench.network.crash(server.host)
    bench.pass_ms(5)
    assert client.events == ["up 1", "down 1", "refused"]
    assert connector.failure == "connection refused"


def test_after_a_power_cut_there_is_no_evidence(bench: Bench) -> None:
    server, client = serving(bench), bench.node(2)
    client.connect()
    bench.pass_ms(10)
    bench.network.crash(server.host, power_loss=True)
    bench.pass_ms(5000)
    assert client.events == ["up 1"]
    assert client.probe() is ProbeResult.UNREACHABLE


def test_a_broken_link_to_a_live_peer_comes_back_at_once(bench: Bench) -> None:
    _, client = serving(bench), bench.node(2)
    client.connect()
    bench.pass_ms(10)
    bench.network.break_links("n1", "n2")
    bench.pass_ms(5)
    assert client.events == ["up 1", "down 1", "up 1"]


def test_attempts_back_off_and_end_soon_after_the_peer_is_back(bench: Bench) -> None:
    client = bench.node(2)
    first = bench.node(1)
    client.connect()
    bench.pass_ms(100)
    early = len(client.events)
    bench.pass_ms(10_000)
    late = len(client.events) - early
    assert 2 <= early <= 5
    assert 8 <= late <= 20, "about once a second"
    assert set(client.events) == {"refused"}
    bench.network.crash(first.host)
    serving(bench)
    bench.pass_ms(1300)
    assert client.events[-1] == "up 1"


def test_a_sign_of_life_ends_the_backoff(bench: Bench) -> None:
    client = bench.node(2)
    first = bench.node(1)
    connector = client.connect()
    bench.pass_ms(5000)
    bench.network.crash(first.host)
    serving(bench)
    client.host.call_soon(connector.retry_now)
    bench.pass_ms(5)
    assert client.events[-1] == "up 1"
    client.host.call_soon(connector.retry_now)
    bench.pass_ms(5)
    assert client.events[-1] == "up 1"


def test_a_link_that_is_lost_again_and_again_backs_off(bench: Bench) -> None:
    server = serving(bench)
    client = bench.node(2)
    client.connect()
    for _ in range(2000):
        bench.pass_ms(1)
        for channel in server.server.channels:
            channel.abort()
    assert client.events.count("up 1") < 15


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"cluster_id": "another"}, "to cluster another"),
        ({"node_id": 5}, "node 5 is at the address of node 1"),
        ({"protocol_min": 7, "protocol_max": 9}, "protocol versions"),
        ({"generation": 4}, "quorum generation"),
        ({"versions": (VersionRange(rpc=5, minimum=3, maximum=4),)}, "of RPC 5"),
        ({"node_id": 2, "directory_id": OTHER_UUID}, "two nodes have the id 2"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_refusals_are_said_once(
    bench: Bench, changes: dict[str, Any], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    serving(bench, **changes)
    client = bench.node(2, generation=3)
    connector = client.connect(expected_id=1)
    bench.pass_ms(10_000)
    assert "up 1" not in client.events
    assert reason in connector.failure
    lines = [record.getMessage() for record in caplog.records if "refused" in record.getMessage()]
    assert any(reason in line for line in lines)
    assert len(lines) == len(set(lines)) <= 2


def test_an_equal_refusal_is_logged_again_with_its_count(caplog: pytest.LogCaptureFixture) -> None:
    """A log that was rotated, or that an operator reads today, shows what is still wrong."""
    clock = FakeClock()
    refusals = RefusalLog(clock)
    for _ in range(REPEATED_AFTER_MS // 1000):
        refusals.log("h:1", "another cluster")
        clock.advance(1000)
    refusals.log("h:1", "another cluster")
    refusals.log("h:2", "another cluster")
    left_out = REPEATED_AFTER_MS // 1000 - 1
    assert caplog.messages == [
        "handshake refused: h:1: another cluster",
        f"handshake refused: h:1: another cluster ({left_out} more like it were not logged)",
        "handshake refused: h:2: another cluster",
    ]


def test_an_equal_refusal_does_not_hide_another_one(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    refusals = RefusalLog(clock)
    refusals.log("h:1", "one")
    clock.advance(INTERVAL_MS)
    refusals.log("h:1", "one")
    refusals.log("h:1", "two")
    assert [each[-3:] for each in caplog.messages] == ["one", "two"]


def test_a_caller_cannot_flood_the_log_with_refusals(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    server = serving(bench)
    client = bench.node(2)
    client.connect()
    for number in range(50):
        hello = partial(hello_of, 2, cluster_id=f"a\nforged line {number}")
        client.settings = dataclasses.replace(client.settings, hello=hello)
        client.connect()
        bench.pass_ms(10)
    lines = [record.getMessage() for record in caplog.records if "link from" in record.getMessage()]
    assert len(lines) == 1
    assert "\n" not in lines[0]
    assert server.settings.counts.refused["accepted"] >= 50
    assert client.settings.counts.refused["opened"] >= 50


def test_what_an_unknown_generation_and_a_newer_rpc_mean() -> None:
    newer = (*VERSIONS, VersionRange(rpc=900, minimum=1, maximum=1))
    assert refusal_of(hello_of(1, generation=2), hello_of(2, versions=newer)) == ""


def test_two_rebuilds_of_one_cluster_stay_apart() -> None:
    one, two = (Rebuild(id=Uuid(bytes([n] * 16)), epoch=4, offset=9) for n in (1, 2))
    mine = hello_of(1, generation=1, rebuilds=(one,))
    assert refusal_of(mine, hello_of(2, generation=1, rebuilds=(one,))) == ""
    assert "two rebuilds" in refusal_of(mine, hello_of(2, generation=1, rebuilds=(two,)))


REBUILT: dict[str, Any] = {
    "generation": 1,
    "rebuilds": (Rebuild(id=OTHER_UUID, epoch=4, offset=9),),
}


def test_a_node_learns_of_a_later_generation_where_it_connects(bench: Bench) -> None:
    server, client = serving(bench, **REBUILT), bench.node(2, generation=0)
    client.connect()
    bench.pass_ms(500)
    assert client.newer and {each.rebuilds for each in client.newer} == {REBUILT["rebuilds"]}
    assert set(client.dialed) == {ADDRESS}
    assert not server.newer and "up 1" not in client.events


def test_a_node_does_not_believe_a_stranger_that_claims_a_later_generation(bench: Bench) -> None:
    """Otherwise one forged Hello takes brokers out of their cluster and ends all elections."""
    server, client = serving(bench, generation=0), bench.node(2, **REBUILT)
    client.connect()
    bench.pass_ms(500)
    assert not server.newer and not client.newer and "up 1" not in client.events


def test_two_nodes_with_one_id() -> None:
    mine, other = hello_of(1), hello_of(1, directory_id=OTHER_UUID)
    assert "two nodes have the id 1" in refusal_of(mine, other)


def test_a_peer_that_says_nothing_is_cut_off(bench: Bench) -> None:
    class Mute:
        def __init__(self, link: Link) -> None: ...

        def on_frame(self, frame: memoryview) -> None:
            raise AssertionError

        def on_closed(self, error: Exception | None) -> None:
            ends.append(bench.loop.time())

    ends: list[float] = []
    server, client = serving(bench), bench.node(2)

    async def connect() -> LinkHandler:
        return await client.transport.connect(  # type: ignore[return-value]
            ADDRESS, Wire.NODE, Mute, max_frame_bytes=100, timeout_ms=100
        )

    bench.loop.run(connect())
    bench.pass_ms(3000)
    assert [round(end) for end in ends] == [2]
    assert server.events == []


def test_probes(bench: Bench) -> None:
    server, client = serving(bench), bench.node(2)
    assert client.probe() is ProbeResult.ALIVE
    server.host.pause()
    assert client.probe() is ProbeResult.UNREACHABLE
    server.host.resume()
    bench.network.block("n1", "n2")
    assert client.probe() is ProbeResult.UNREACHABLE
    bench.network.heal()
    bench.network.refuse("n2", "n1")
    assert client.probe() is ProbeResult.REFUSED
    bench.network.heal()
    assert client.probe() is ProbeResult.ALIVE
    bench.network.crash(server.host)
    assert client.probe() is ProbeResult.REFUSED
    assert server.events == []


@pytest.mark.parametrize("after_ms", [0.0, 0.3, 0.7, 1.5, 5.0])
def test_closing_at_any_moment(bench: Bench, after_ms: float) -> None:
    server, client = serving(bench), bench.node(2)
    connector = client.connect()
    bench.pass_ms(after_ms)
    connector.close()
    bench.pass_ms(5000)
    assert connector.channel is None
    assert client.events in ([], ["up 1", "down 1"])
    assert server.events in ([], ["peer 2 up", "peer 2 down"])
    assert bench.network.links == {}


def test_closing_the_server(bench: Bench) -> None:
    server, client = serving(bench), bench.node(2)
    client.connect()
    bench.pass_ms(10)
    assert server.listener is not None
    bench.loop.run(server.listener.close())
    server.server.close()
    bench.pass_ms(5)
    assert client.events == ["up 1", "down 1", "refused"]
    assert server.server.channels == []
