"""The number of links between nodes, and the choice of the link that makes room for a new one."""

from __future__ import annotations

import resource
from typing import Any

import pytest

from quorate.quorum.raft.messages import EndQuorumEpochRequest
from quorate.quorum.rpc import node_links
from quorate.quorum.rpc.channel import Channel
from quorate.quorum.rpc.handshake import NodeSettings
from quorate.quorum.rpc.messages import frame_header, packed
from quorate.quorum.rpc.node_server import NodeServer
from quorate.quorum.seams import LinkHandler, ProtocolError
from tests.unit.rpc.kafka.fakes import FakeClock, FakeLink
from tests.unit.rpc.test_connector import hello_of

MOST = 8
REQUEST = EndQuorumEpochRequest(cluster_id="c", leader_id=1, epoch=1, preferred_candidates=())


class Port:
    """A node's port for at most MOST links. Nodes 1 to 3 are known."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.refuses = False
        settings = NodeSettings(
            clock=self.clock,
            hello=lambda: hello_of(1),
            handlers={type(REQUEST): self.handle},
        )
        self.displaced = settings.counts.displaced
        self.server = NodeServer(settings, self, most_links=MOST, known=lambda: {1, 2, 3})
        self.handlers: dict[int, LinkHandler] = {}

    def handle(self, peer: object, message: object, reply: Any) -> None:
        if self.refuses:
            raise ProtocolError("not a valid request")

    def on_peer_up(self, channel: Channel) -> None: ...

    def on_peer_down(self, channel: Channel) -> None: ...

    def open(self) -> FakeLink:
        link = FakeLink()
        self.handlers[id(link)] = self.server.accept(link)
        self.clock.time_ms += 1
        return link

    def greet(self, node_id: int) -> FakeLink:
        link = self.open()
        hello = hello_of(node_id)
        self.handlers[id(link)].on_frame(memoryview(frame_header(1) + packed(hello, 0)))
        return link

    def ask(self, link: FakeLink) -> None:
        request = frame_header(1) + packed(REQUEST, 1)
        self.handlers[id(link)].on_frame(memoryview(request))
        self.clock.time_ms += 1

    def use(self, node_id: int) -> FakeLink:
        link = self.greet(node_id)
        self.ask(link)
        return link

    def end(self, link: FakeLink) -> None:
        self.handlers.pop(id(link)).on_closed(None)


def test_links_that_prove_useful_outlive_a_crowd_with_a_good_hello() -> None:
    port = Port()
    useful = [port.use(node_id) for node_id in (1, 2, 3, 77)]
    crowd = [port.greet(node_id) for node_id in (99, 100, 1, 2) * 50]
    assert not any(link.aborted for link in useful)
    assert [link.aborted for link in crowd] == [True] * (200 - MOST + 4) + [False] * (MOST - 4)
    assert len(port.server.links) == MOST
    assert port.displaced == {"silent": 204 - MOST}


def test_a_newcomer_is_accepted_and_proves_itself_in_a_crowd() -> None:
    port = Port()
    for _ in range(100):
        port.open()
    broker = port.use(2)
    for _ in range(100):
        port.open()
    assert not broker.aborted


def test_the_silent_link_of_a_known_node_is_spared() -> None:
    """A broker sends nothing to a standby controller."""
    port = Port()
    standby = port.greet(2)
    for node_id in range(100, 200):
        port.greet(node_id)
    assert not standby.aborted


def test_one_node_id_cannot_take_all_links() -> None:
    """An attacker can send valid requests under the id of a broker."""
    port = Port()
    others = [port.use(1), port.use(3), port.use(77)]
    crowd = [port.use(2) for _ in range(100)]
    assert not any(link.aborted for link in others)
    assert sum(not link.aborted for link in crowd) == MOST - len(others)


def test_many_node_ids_cannot_take_the_places_of_known_nodes() -> None:
    port = Port()
    known = [port.use(node_id) for node_id in (1, 2, 3)]
    for node_id in range(100, 200):
        port.use(node_id)
    assert not any(link.aborted for link in known)


def test_among_equal_links_the_one_heard_from_last_stays() -> None:
    port = Port()
    old = [port.use(node_id) for node_id in range(100, 100 + MOST)]
    port.ask(old[0])
    port.greet(200)
    assert [link.aborted for link in old] == [False, True, *[False] * (MOST - 2)]


def test_an_invalid_request_proves_nothing() -> None:
    port = Port()
    port.refuses = True
    link = port.greet(99)
    with pytest.raises(ProtocolError):
        port.ask(link)
    port.refuses = False
    later = port.open()
    useful = [port.use(node_id) for node_id in range(100, 98 + MOST)]
    port.open()
    assert link.aborted and not later.aborted and not any(each.aborted for each in useful)


def test_links_that_ended_make_room() -> None:
    port = Port()
    for _ in range(50):
        first, second, third = port.open(), port.greet(5), port.use(6)
        for link in (first, second, third):
            port.end(link)
    assert len(port.server.links) == 0 and not port.displaced
    links = [port.use(node_id) for node_id in range(10, 10 + MOST)]
    assert not any(link.aborted for link in links)


def test_a_link_that_made_room_is_not_counted_until_it_has_ended() -> None:
    port = Port()
    first = port.greet(50)
    others = [port.use(node_id) for node_id in range(10, 10 + MOST)]
    assert first.aborted
    port.end(first)
    assert len(port.server.links) == MOST
    assert not any(link.aborted for link in others)


@pytest.mark.parametrize(("files", "most"), [(100, 16), (400, 25), (16_384, 1024), (1 << 20, 4096)])
def test_the_links_have_a_share_of_the_open_files(
    files: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (files, files))
    assert node_links.most_node_links() == most


def test_the_crowd_causes_one_line(caplog: pytest.LogCaptureFixture) -> None:
    port = Port()
    for _ in range(100):
        port.open()
    (line,) = caplog.messages
    assert line == (
        "closing the link of 10.0.0.1:5000 to make room: more than 8 links of nodes are open"
    )
