"""A Channel over a link that only records, on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from quorate.quorum.controller.state.messages import EnvelopeRequest, EnvelopeResponse
from quorate.quorum.ids import ZERO_UUID
from quorate.quorum.raft.messages import (
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
)
from quorate.quorum.rpc.channel import (
    Channel,
    ChannelSettings,
    FailureKind,
    Handlers,
    Reply,
    RpcFailure,
)
from quorate.quorum.rpc.hello import Hello, Peer
from quorate.quorum.rpc.messages import (
    BY_NUMBER,
    MAX_MESSAGES_PER_FRAME,
    Message,
    Unsupported,
    frame_header,
    packed,
    rows_of,
)
from quorate.quorum.seams import Address, Buffer, PeerIdentity, ProtocolError
from tests.sim.world.clock import SimClock
from tests.sim.world.host import Host
from tests.sim.world.loop import SimLoop

HELLO = Hello(
    versions=(),
    cluster_id="c",
    node_id=2,
    directory_id=ZERO_UUID,
    roles=("controller",),
    incarnation_id=ZERO_UUID,
)
PEER = Peer(HELLO, Address("peer", 9093))
END = EndQuorumEpochRequest(cluster_id="c", leader_id=1, epoch=3, preferred_candidates=())
ENDED = EndQuorumEpochResponse(error=0, epoch=3, leader_id=-1)


class RecordingLink:
    """The part of a Link that a channel needs. `decoded` holds the messages that were sent."""

    peer = PEER.address
    identity: PeerIdentity | None = None

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.pending_bytes = 0
        self.closed = False

    @property
    def decoded(self) -> list[list[Any]]:
        return [[BY_NUMBER[row[0]].read(row) for row in rows_of(frame)] for frame in self.frames]

    def send(self, *parts: Buffer) -> None:
        self.frames.append(b"".join(parts))

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def close(self) -> None:
        self.closed = True

    abort = close


class Bench:
    """One channel with its link. `results` are the arguments of `done`, in order."""

    def __init__(self, loop: SimLoop, handlers: Handlers | None = None, **settings: int) -> None:
        self.loop = loop
        self.link = RecordingLink()
        self.results: list[Any] = []
        self.ended = 0
        clock = SimClock(Host(loop, "node"))
        self.channel = Channel(
            self.link, PEER, clock, handlers or {}, ChannelSettings(**settings), self._on_closed
        )

    def _on_closed(self, channel: Channel) -> None:
        self.ended += 1

    def ask(self, message: Message = END, timeout_ms: int = 1000) -> None:
        self.channel.request(message, timeout_ms, self.results.append)

    def turn(self) -> None:
        """Run the callbacks that are ready."""
        self.loop.run_for(0)

    def receive(self, *messages: tuple[int, Message]) -> None:
        frame = b"".join(packed(message, number) for number, message in messages)
        self.channel.on_frame(memoryview(frame_header(len(messages)) + frame))

    def lose(self) -> None:
        self.link.closed = True
        self.channel.on_closed(ConnectionResetError("cut"))

    @property
    def failures(self) -> list[FailureKind]:
        return [result.kind for result in self.results if isinstance(result, RpcFailure)]


@pytest.fixture
def loop() -> Iterator[SimLoop]:
    loop = SimLoop()
    yield loop
    loop.close()


def test_everything_of_one_iteration_leaves_as_one_frame(loop: SimLoop) -> None:
    bench = Bench(loop)
    for _ in range(3):
        bench.ask()
    assert bench.link.frames == []
    bench.turn()
    bench.ask()
    bench.turn()
    assert bench.link.decoded == [[END] * 3, [END]]


def test_a_frame_is_split_at_its_largest_size(loop: SimLoop) -> None:
    bench = Bench(loop, max_frame_bytes=250)
    envelope = EnvelopeRequest(api_key=1, version=0, client_id="", body=bytes(80))
    for _ in range(5):
        bench.ask(envelope)
    bench.turn()
    assert [len(frame) for frame in bench.link.decoded] == [2, 2, 1]
    assert all(len(frame) <= 250 for frame in bench.link.frames)


def test_a_frame_is_split_at_its_largest_count(loop: SimLoop) -> None:
    bench = Bench(loop)
    for _ in range(MAX_MESSAGES_PER_FRAME + 1):
        bench.ask()
    bench.turn()
    assert [len(frame) for frame in bench.link.decoded] == [MAX_MESSAGES_PER_FRAME, 1]


def test_a_request_larger_than_a_frame_is_not_sent(loop: SimLoop) -> None:
    bench = Bench(loop, max_frame_bytes=250)
    bench.ask(EnvelopeRequest(api_key=1, version=0, client_id="", body=bytes(250)))
    assert bench.results == [], "never inside the call"
    bench.turn()
    assert bench.failures == [FailureKind.NOT_SENT]
    assert bench.link.frames == []


def test_responses_find_their_requests_in_any_order(loop: SimLoop) -> None:
    """A8: with asyncio streams, two tasks that read one connection take each other's responses."""
    bench = Bench(loop)
    for _ in range(3):
        bench.ask()
    bench.turn()
    answers = [EndQuorumEpochResponse(error=0, epoch=i, leader_id=-1) for i in range(3)]
    bench.receive((2, answers[2]), (0, answers[0]))
    bench.receive((1, answers[1]))
    assert bench.results == [answers[2], answers[0], answers[1]]
    assert bench.channel.outstanding == 0


def test_timeouts_in_order_of_deadline(loop: SimLoop) -> None:
    bench = Bench(loop)
    order: list[int] = []
    for timeout_ms in (300, 100, 200):

        def done(failure: RpcFailure, timeout_ms: int = timeout_ms) -> None:
            assert failure.kind is FailureKind.TIMED_OUT
            order.append(timeout_ms)

        bench.channel.request(END, timeout_ms, done)
    loop.run_for(0.099)
    assert order == []
    loop.run_for(0.002)
    assert order == [100]
    loop.run_for(1)
    assert order == [100, 200, 300]


def test_a_link_without_an_expected_frame_is_aborted(loop: SimLoop) -> None:
    bench = Bench(loop)
    bench.ask(timeout_ms=30_000)
    loop.run_for(0.5)
    bench.channel.expect_frame(100)
    loop.run_for(0.09)
    assert not bench.link.closed
    loop.run_for(0.02)
    assert bench.link.closed


def test_a_link_with_the_expected_frame_stays_open(loop: SimLoop) -> None:
    bench = Bench(loop)
    bench.ask(timeout_ms=30_000)
    bench.ask(timeout_ms=30_000)
    bench.channel.expect_frame(100)
    loop.run_for(0.05)
    bench.receive((0, ENDED))
    loop.run_for(1)
    assert not bench.link.closed


def test_no_frame_is_expected_because_of_later_requests(loop: SimLoop) -> None:
    """The response arrives in the millisecond in which the frame is first expected."""
    bench = Bench(loop)
    bench.ask(timeout_ms=30_000)
    loop.run_for(0.01)
    bench.channel.expect_frame(100)
    bench.receive((0, ENDED))
    loop.run_for(0.09)
    bench.ask(timeout_ms=30_000)
    loop.run_for(0.02)
    assert not bench.link.closed


def test_no_frame_is_expected_while_no_request_waits(loop: SimLoop) -> None:
    bench = Bench(loop)
    bench.channel.expect_frame(100)
    loop.run_for(1)
    assert not bench.link.closed


def test_a_response_after_the_timeout_is_dropped(loop: SimLoop) -> None:
    bench = Bench(loop)
    bench.ask(timeout_ms=100)
    loop.run_for(0.2)
    bench.receive((0, ENDED))
    assert bench.failures == [FailureKind.TIMED_OUT]
    assert len(bench.results) == 1


def test_a_link_on_which_nothing_was_heard_is_given_up(loop: SimLoop) -> None:
    """After a network partition TCP retries at growing intervals, while a new link works
    immediately."""
    bench = Bench(loop)
    loop.run_for(0.01)
    bench.ask(timeout_ms=100)
    loop.run_for(0.2)
    assert bench.failures == [FailureKind.TIMED_OUT]
    assert bench.link.closed


def test_a_link_on_which_something_was_heard_stays(loop: SimLoop) -> None:
    """One request may take long, although the peer is alive."""
    bench = Bench(loop)
    bench.ask(timeout_ms=100)
    bench.ask(timeout_ms=1000)
    loop.run_for(0.05)
    bench.receive((1, ENDED))
    loop.run_for(0.2)
    assert bench.results[0] == ENDED
    assert bench.failures == [FailureKind.TIMED_OUT]
    assert not bench.link.closed


def test_a_loss_tells_what_was_never_sent_from_what_may_have_happened(loop: SimLoop) -> None:
    bench = Bench(loop)
    bench.ask()
    bench.turn()
    bench.ask()
    bench.lose()
    assert bench.failures == [FailureKind.LOST, FailureKind.NOT_SENT]
    assert [result.outcome_unknown for result in bench.results] == [True, False]
    assert bench.ended == 1
    loop.run_for(2)
    assert len(bench.results) == 2, "exactly once"
    assert len(bench.link.frames) == 1


def test_a_link_that_is_being_closed_takes_nothing_more(loop: SimLoop) -> None:
    bench = Bench(loop)
    bench.ask()
    bench.link.closed = True
    bench.turn()
    bench.lose()
    assert bench.failures == [FailureKind.NOT_SENT]
    assert bench.link.frames == []


def test_a_request_on_a_closed_channel(loop: SimLoop) -> None:
    bench = Bench(loop)
    bench.lose()
    bench.ask()
    assert bench.results == [], "never inside the call"
    bench.turn()
    assert bench.failures == [FailureKind.NOT_SENT]


def test_asking_again_from_within_a_failure(loop: SimLoop) -> None:
    bench = Bench(loop)
    bench.channel.request(END, 1000, lambda failure: bench.ask())
    bench.turn()
    bench.lose()
    bench.turn()
    assert bench.failures == [FailureKind.NOT_SENT]


def test_closing_sends_what_is_queued(loop: SimLoop) -> None:
    bench = Bench(loop)
    bench.ask()
    bench.channel.close()
    assert bench.link.closed
    assert bench.link.decoded == [[END]]


def test_outstanding_requests_are_bounded(loop: SimLoop) -> None:
    bench = Bench(loop, max_outstanding=2)
    for _ in range(3):
        bench.ask()
    bench.turn()
    assert bench.failures == [FailureKind.NOT_SENT]
    bench.receive((0, ENDED))
    bench.ask()
    bench.turn()
    assert len(bench.failures) == 1


def test_what_waits_for_a_slow_peer_is_bounded(loop: SimLoop) -> None:
    bench = Bench(loop, max_pending_bytes=100)
    bench.link.pending_bytes = 101
    bench.ask()
    bench.turn()
    assert bench.failures == [FailureKind.NOT_SENT]


def test_a_peer_that_does_not_read_its_responses_is_cut_off(loop: SimLoop) -> None:
    bench = Bench(
        loop, {EndQuorumEpochRequest: lambda peer, _, reply: reply(ENDED)}, max_pending_bytes=100
    )
    bench.link.pending_bytes = 101
    bench.receive((0, END))
    assert bench.link.closed


def test_requests_reach_their_handler_in_order_and_are_answered_later(loop: SimLoop) -> None:
    waiting: list[Reply] = []

    def handle(peer: Peer, request: EndQuorumEpochRequest, reply: Reply) -> None:
        assert (peer, request) == (PEER, END)
        waiting.append(reply)

    bench = Bench(loop, {EndQuorumEpochRequest: handle})
    bench.receive((7, END), (8, END))
    waiting[1](ENDED)
    bench.turn()
    waiting[0](ENDED)
    bench.turn()
    assert [rows_of(frame)[0][1] for frame in bench.link.frames] == [8, 7]
    bench.lose()
    waiting[0](ENDED)  # too late, and harmless
    bench.turn()
    assert len(bench.link.frames) == 2


def test_what_is_not_served_is_said_so(loop: SimLoop) -> None:
    server, client = Bench(loop), Bench(loop)
    server.receive((0, END))
    server.turn()
    client.ask()
    client.turn()
    client.channel.on_frame(memoryview(server.link.frames[0]))
    assert client.failures == [FailureKind.UNSUPPORTED]
    assert not client.results[0].outcome_unknown
    assert "EndQuorumEpochRequest is not served here" in str(client.results[0])


def test_a_request_of_a_later_release_is_not_served(loop: SimLoop) -> None:
    bench = Bench(loop)
    bench.channel.on_frame(memoryview(frame_header(1) + b"\x93\xcd\x03\xe8\x05\x01"))
    bench.turn()
    assert bench.link.decoded == [[Unsupported(reason="request kind 1000 is not served here")]]


def test_a_response_to_another_request_closes_the_link(loop: SimLoop) -> None:
    bench = Bench(loop)
    bench.ask()
    bench.turn()
    with pytest.raises(ProtocolError, match="response of kind"):
        bench.receive((0, BeginQuorumEpochResponse(error=0, epoch=1, leader_id=1)))
    bench.lose()
    assert bench.failures == [FailureKind.LOST]


def test_a_request_with_an_unreadable_response_fails_with_its_link(loop: SimLoop) -> None:
    bench = Bench(loop)
    bench.ask()
    bench.turn()
    response = packed(EndQuorumEpochResponse(error=0, epoch=1, leader_id=2**40), 0)
    with pytest.raises(ProtocolError, match="leader_id"):
        bench.channel.on_frame(memoryview(frame_header(1) + response))
    bench.lose()
    assert bench.failures == [FailureKind.LOST]


def test_a_response_that_nobody_asked_for_is_dropped(loop: SimLoop) -> None:
    bench = Bench(loop)
    bench.receive((99, EnvelopeResponse(error=0)))
    assert not bench.link.closed


def test_call(loop: SimLoop) -> None:
    bench = Bench(loop)

    async def scenario() -> None:
        task = loop.create_task(bench.channel.call(END, 100))
        for _ in range(3):
            await asyncio.sleep(0)
        bench.receive((0, ENDED))
        assert await task == ENDED
        with pytest.raises(RpcFailure, match="no response from node 2"):
            await bench.channel.call(END, 100)

    loop.run(scenario())


def test_the_answers_to_one_frame_are_bounded_before_they_leave(loop: SimLoop) -> None:
    """4,096 requests for chunks of a snapshot fit into one frame. 4 GB of responses would be
    queued."""
    answers: list[int] = []

    def answer(peer: Peer, message: Any, reply: Reply) -> None:
        answers.append(1)
        reply(Unsupported(reason="x" * 1000))

    bench = Bench(loop, {EndQuorumEpochRequest: answer}, max_pending_bytes=10_000)
    bench.receive(*[(number, END) for number in range(1000)])
    assert bench.link.closed
    assert len(answers) <= 12


def test_a_response_that_cannot_be_encoded_closes_the_link(
    loop: SimLoop, caplog: pytest.LogCaptureFixture
) -> None:
    def answer(peer: Peer, message: Any, reply: Reply) -> None:
        reply(EndQuorumEpochResponse(error=0, epoch=1 << 70, leader_id=-1))

    bench = Bench(loop, {EndQuorumEpochRequest: answer})
    bench.receive((1, END))
    assert bench.link.closed
    assert "cannot encode" in caplog.text
