"""Faults of the simulated network; that it is a Transport at all, the conformance suite says."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from random import Random

import pytest

from quorate.quorum.seams import Address, Link, Listener, PeerRefused, PeerUnreachable, Wire
from tests.sim.world.host import Host
from tests.sim.world.loop import SimLoop
from tests.sim.world.network import PathSettings, SimNetwork
from tests.sim.world.transport import SimTransport
from tests.unit.rpc.nets import Recorder

ADDRESS = Address("server", 9093)


class Bench:
    def __init__(self, seed: int = 5, settings: PathSettings | None = None) -> None:
        self.loop = SimLoop()
        self.network = SimNetwork(self.loop, Random(seed), settings)
        self.server_host: Host = self.network.boot("server")
        self.client_host: Host = self.network.boot("client")
        self.server, self.client = Recorder(), Recorder()

    def listen(self) -> Listener:
        transport = SimTransport(self.network, self.server_host)
        return self.loop.run(
            transport.listen(ADDRESS, {Wire.NODE: self.server}, max_frame_bytes=1000)
        )

    def connect(self) -> Link:
        transport = SimTransport(self.network, self.client_host)
        return self.loop.run(
            transport.connect(ADDRESS, Wire.NODE, self.client, max_frame_bytes=1000, timeout_ms=500)
        )

    def link(self) -> Link:
        self.listen()
        return self.connect()

    def pass_ms(self, ms: float) -> None:
        self.loop.run_for(ms / 1000)


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.loop.close()


def test_a_frame_takes_its_time(bench: Bench) -> None:
    link = bench.link()
    bench.network.shape("client", "server", min_latency_ms=40, max_latency_ms=50)
    link.send(b"slow")
    bench.pass_ms(39)
    assert bench.server.frames == []
    bench.pass_ms(12)
    assert bench.server.frames == [b"slow"]


def test_a_narrow_path_delays_all_that_follows(bench: Bench) -> None:
    link = bench.link()
    bench.network.shape("client", "server", bytes_per_ms=10)
    for _ in range(10):
        link.send(bytes(100))
    bench.pass_ms(50)
    assert 4 <= len(bench.server.frames) <= 6
    bench.pass_ms(60)
    assert len(bench.server.frames) == 10


def test_one_way_is_blocked_and_nothing_is_missing_afterwards(bench: Bench) -> None:
    link = bench.link()
    bench.network.block("client", "server")
    for number in range(5):
        link.send(b"%d" % number)
    bench.server.link.send(b"the other way")
    bench.pass_ms(10_000)
    assert bench.server.frames == []
    assert bench.client.frames == [b"the other way"]
    assert link.pending_bytes == 5
    bench.network.heal()
    bench.pass_ms(5)
    assert bench.server.frames == [b"0", b"1", b"2", b"3", b"4"]
    assert link.pending_bytes == 0


def test_old_links_take_long_to_recover_from_a_partition_and_new_ones_do_not() -> None:
    bench = Bench(5, PathSettings(retransmission_backoff=1.0))
    link = bench.link()
    bench.network.isolate("client")
    link.send(b"before")
    bench.pass_ms(10_000)
    bench.network.heal()
    link.send(b"after")
    bench.pass_ms(1000)
    assert bench.server.frames == []
    bench.connect().send(b"new")
    bench.pass_ms(1)
    assert bench.server.frames == [b"new"]
    bench.pass_ms(9000)
    assert bench.server.frames == [b"new", b"before", b"after"]
    bench.loop.close()


def test_late_frames_stay_in_order(bench: Bench) -> None:
    link = bench.link()
    bench.network.shape("client", "server", delay_probability=0.3, delay_ms=20)
    frames = [b"%d" % number for number in range(200)]
    for frame in frames:
        link.send(frame)
        bench.pass_ms(1)
    bench.pass_ms(100)
    assert bench.server.frames == frames


def test_a_link_breaks_and_both_ends_hear_of_it(bench: Bench) -> None:
    link = bench.link()
    bench.network.shape("client", "server", break_probability=0.2)
    sent = 0
    while not link.closed:
        link.send(b"%d" % sent)
        sent += 1
        bench.pass_ms(1)
    bench.pass_ms(5)
    assert len(bench.server.ends) == len(bench.client.ends) == 1
    assert bench.server.frames == [b"%d" % number for number in range(len(bench.server.frames))]
    assert len(bench.server.frames) < sent
    assert bench.network.links == {}


def test_a_dead_process_closes_its_links_and_refuses(bench: Bench) -> None:
    bench.link()
    bench.network.crash(bench.server_host)
    bench.pass_ms(5)
    assert bench.client.ends == [None]
    assert bench.server.ends == []
    with pytest.raises(PeerRefused):
        bench.connect()


def test_the_end_of_a_dead_process_comes_when_the_partition_ends(bench: Bench) -> None:
    bench.link()
    bench.network.isolate("server")
    bench.network.crash(bench.server_host)
    bench.pass_ms(1000)
    assert bench.client.ends == []
    bench.network.heal()
    bench.pass_ms(5)
    assert len(bench.client.ends) == 1


def test_without_power_there_is_silence_until_the_machine_is_back(bench: Bench) -> None:
    link = bench.link()
    bench.network.crash(bench.server_host, power_loss=True)
    link.send(b"anyone?")
    bench.pass_ms(60_000)
    assert bench.client.ends == []
    with pytest.raises(PeerUnreachable):
        bench.connect()
    bench.network.boot("server")
    link.send(b"anyone?")
    bench.pass_ms(5)
    assert [type(end) for end in bench.client.ends] == [ConnectionResetError]
    with pytest.raises(PeerRefused):
        bench.connect()


def test_a_paused_process_accepts_nothing_but_does_not_refuse(bench: Bench) -> None:
    link = bench.link()
    bench.server_host.pause()
    link.send(b"held")
    with pytest.raises(PeerUnreachable):
        bench.connect()
    assert bench.server.frames == []
    bench.server_host.resume()
    bench.pass_ms(5)
    assert bench.server.frames == [b"held"]
    assert len(bench.network.links) == 2, "the attempt that was given up left no link"


def test_a_partition_makes_peers_unreachable_not_refused(bench: Bench) -> None:
    bench.listen()
    for source, target in (("client", "server"), ("server", "client")):
        bench.network.block(source, target)
        with pytest.raises(PeerUnreachable):
            bench.connect()
        bench.network.heal()


def test_a_dead_client_leaves_no_link_behind(bench: Bench) -> None:
    bench.listen()
    transport = SimTransport(bench.network, bench.client_host)
    attempt = bench.client_host.spawn(
        transport.connect(ADDRESS, Wire.NODE, bench.client, max_frame_bytes=10, timeout_ms=500)
    )
    bench.pass_ms(0.3)
    bench.network.crash(bench.client_host)
    bench.pass_ms(1000)
    assert attempt.cancelled()
    assert bench.network.links == {}


def test_frames_are_copied_when_they_are_sent(bench: Bench) -> None:
    link = bench.link()
    frame = bytearray(b"before")
    link.send(frame)
    frame[:] = b"after!"
    bench.pass_ms(5)
    assert bench.server.frames == [b"before"]


class Tracer:
    """Echoes to clients, and notes everything with its time."""

    def __init__(self, loop: SimLoop, name: str, trace: list[tuple[str, float, str]]) -> None:
        self.links: list[Link] = []
        self._loop, self._name, self._trace = loop, name, trace

    def _note(self, what: str) -> None:
        self._trace.append((self._name, self._loop.time(), what))

    def __call__(self, link: Link) -> Tracer:
        self.links.append(link)
        return self

    def on_frame(self, frame: memoryview) -> None:
        self._note(bytes(frame).decode())
        if self.links[-1].peer.host == "client":
            self.links[-1].send(b"echo", frame)

    def on_closed(self, error: Exception | None) -> None:
        self._note(repr(error))


def trace_of(seed: int) -> list[tuple[str, float, str]]:
    bench = Bench(seed, PathSettings(delay_probability=0.2, delay_ms=2, break_probability=0.01))
    trace: list[tuple[str, float, str]] = []
    bench.server = Tracer(bench.loop, "server", trace)  # type: ignore[assignment]
    bench.client = Tracer(bench.loop, "client", trace)  # type: ignore[assignment]
    link = bench.link()
    for number in range(300):
        if link.closed:
            link = bench.connect()
        link.send(b"%d" % number)
        bench.pass_ms(0.2)
    bench.loop.close()
    return trace


def test_the_same_seed_gives_the_same_run_whatever_the_hash_seed() -> None:
    program = "from tests.unit.sim.test_network import trace_of; print(trace_of(11))"
    printed = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for hash_seed in ("0", "1")
    ]
    assert printed[0] == printed[1] == f"{trace_of(11)}\n"
    assert len(trace_of(11)) > 300
    assert trace_of(12) != trace_of(11)
