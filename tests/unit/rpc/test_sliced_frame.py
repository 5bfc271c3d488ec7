"""A frame of many messages: the slices in which a channel handles them."""

from __future__ import annotations

import asyncio
from typing import Any

import msgpack  # type: ignore[import-untyped]
import pytest

from quorate.quorum.controller.state.messages import EnvelopeRequest, EnvelopeResponse
from quorate.quorum.raft.messages import EndQuorumEpochRequest, EndQuorumEpochResponse
from quorate.quorum.rpc import messages
from quorate.quorum.rpc.channel import Channel, ChannelSettings, FailureKind, Reply, RpcFailure
from quorate.quorum.rpc.hello import Peer
from quorate.quorum.rpc.link_reading import LinkReading
from quorate.quorum.rpc.messages import (
    MAX_MESSAGES_PER_FRAME,
    SMALL_FRAME_BYTES,
    frame_header,
    packed,
    rows_later,
    rows_of,
)
from quorate.quorum.rpc.msgpack_elements import ELEMENTS_BETWEEN, walk
from quorate.quorum.rpc.sliced_frame import (
    MESSAGES_BETWEEN,
    MESSAGES_PER_SLICE,
    SLICE_ANSWER_BYTES,
    SLICE_US,
)
from quorate.quorum.seams import ProtocolError
from tests.unit.rpc.kafka.fakes import FakeClock, FakeLink
from tests.unit.rpc.test_channel import PEER

END = EndQuorumEpochRequest(cluster_id="c", leader_id=1, epoch=3, preferred_candidates=())
ENDED = EndQuorumEpochResponse(error=0, epoch=3, leader_id=-1)


def envelope(size: int) -> EnvelopeRequest:
    return EnvelopeRequest(api_key=1, version=1, client_id="c", body=b"x" * size)


class Bench:
    """A channel whose handler takes `cost_ms` for each request and answers with `answer_bytes`."""

    def __init__(self, cost_ms: int = 0, answer_bytes: int = 0) -> None:
        self.clock, self.link = FakeClock(), FakeLink()
        self.cost_ms, self.answer_bytes = cost_ms, answer_bytes
        self.handled: list[int] = []
        self.held: list[int] = []
        self.fails_at = -1
        self.reading = LinkReading(self.link)
        self.channel = Channel(
            self.link,
            PEER,
            self.clock,
            {EndQuorumEpochRequest: self.handle, EnvelopeRequest: self.handle},
            ChannelSettings(),
            lambda channel: None,
            on_held=self.held.append,
            reading=self.reading,
        )
        self.results: list[Any] = []

    def handle(self, peer: Peer, message: Any, reply: Reply) -> None:
        if len(self.handled) == self.fails_at:
            raise ProtocolError("refused")
        self.handled.append(reply.args[0])  # type: ignore[attr-defined]
        self.clock.time_ms += self.cost_ms
        if self.answer_bytes:
            reply(EnvelopeResponse(error=0, body=b"x" * self.answer_bytes))

    def receive(self, *rows: bytes) -> None:
        self.channel.on_frame(memoryview(frame_header(len(rows)) + b"".join(rows)))

    def slices(self) -> list[int]:
        """Run all slices, and return the number of messages that each handled."""
        counts, before = [len(self.handled)], len(self.handled)
        for _ in range(5000):
            if not self.clock.waiting:
                break
            self.clock.advance(0)
            counts.append(len(self.handled) - before)
            before = len(self.handled)
        return [each for each in counts if each]


def requests(count: int) -> list[bytes]:
    return [packed(END, number) for number in range(count)]


def test_a_frame_is_handled_in_slices_of_time_and_in_order() -> None:
    bench = Bench(cost_ms=1)
    bench.receive(*requests(500))
    slices = bench.slices()
    assert bench.handled == list(range(500))
    assert max(slices) <= 2 * MESSAGES_BETWEEN + SLICE_US // 1000


def test_a_frame_is_handled_in_slices_even_if_the_clock_stands_still() -> None:
    bench = Bench()
    bench.receive(*requests(MAX_MESSAGES_PER_FRAME))
    slices = bench.slices()
    assert bench.handled == list(range(MAX_MESSAGES_PER_FRAME))
    assert max(slices) == MESSAGES_PER_SLICE


def test_a_usual_frame_is_handled_in_one_step() -> None:
    bench = Bench()
    bench.receive(*requests(256))
    assert len(bench.handled) == 256
    assert not bench.held and not bench.link.paused and not bench.clock.waiting


def test_the_answers_of_a_slice_are_bounded() -> None:
    size = SLICE_ANSWER_BYTES // 4
    bench = Bench(answer_bytes=size)
    bench.receive(*[packed(envelope(1), number) for number in range(40)])
    assert max(bench.slices()) <= 5
    assert bench.handled == list(range(40))
    assert len(bench.link.sent) >= 8, "the answers leave between the slices"


def test_the_link_is_not_read_between_the_slices() -> None:
    bench = Bench(cost_ms=1)
    bench.receive(*requests(100))
    paused = [bench.link.paused]
    bench.reading.pause()
    bench.reading.resume()
    paused.append(bench.link.paused)
    bench.slices()
    paused.append(bench.link.paused)
    assert paused == [True, True, False], "the end of another reason resumes nothing"
    assert bench.held[0] > 0 == bench.held[-1]


def test_a_frame_that_arrives_all_the_same_comes_after_it() -> None:
    bench = Bench(cost_ms=1)
    bench.receive(*requests(100))
    bench.receive(*[packed(END, number) for number in range(100, 110)])
    bench.slices()
    assert bench.handled == list(range(110))
    assert not bench.link.paused


def test_a_refused_message_of_a_later_slice_closes_the_link() -> None:
    bench = Bench(cost_ms=1)
    bench.fails_at = 70
    bench.receive(*requests(100))
    bench.slices()
    assert bench.link.aborted and bench.handled == list(range(70))


def test_an_unexpected_exception_of_a_later_slice_reaches_the_handler_of_the_loop() -> None:
    async def scenario() -> list[Any]:
        seen: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: seen.append(context))
        bench = Bench(cost_ms=1)
        bench.receive(*requests(100))

        def broken(peer: Peer, message: Any, reply: Reply) -> None:
            raise KeyError("broken")

        bench.channel._handlers = {EndQuorumEpochRequest: broken}
        bench.slices()
        assert bench.link.aborted
        return [type(each["exception"]) for each in seen]

    assert asyncio.run(scenario()) == [KeyError]


def test_messages_that_wait_are_dropped_with_their_link() -> None:
    bench = Bench(cost_ms=1)
    bench.receive(*requests(100))
    handled = len(bench.handled)
    bench.link.closed = True
    bench.channel.on_closed(None)
    bench.slices()
    assert len(bench.handled) == handled


def test_each_response_of_a_sliced_frame_is_given_once() -> None:
    bench = Bench()
    for _ in range(3000):
        bench.channel.request(END, 1000, bench.results.append)
    bench.receive(*[packed(ENDED, number) for number in range(3000)])
    assert len(bench.results) < 3000
    bench.slices()
    assert bench.results == [ENDED] * 3000


def test_responses_that_wait_are_lost_with_the_link() -> None:
    bench = Bench()
    for _ in range(3000):
        bench.channel.request(END, 1000, bench.results.append)
    bench.clock.advance(0)
    bench.receive(*[packed(ENDED, number) for number in range(3000)])
    answered = len(bench.results)
    bench.link.closed = True
    bench.channel.on_closed(None)
    kinds = [each.kind for each in bench.results if isinstance(each, RpcFailure)]
    assert kinds == [FailureKind.LOST] * (3000 - answered)


def test_a_large_frame_is_read_one_message_at_a_time() -> None:
    rows = [packed(envelope(SMALL_FRAME_BYTES), 1), packed(END, 2), packed(envelope(10), 3)]
    bench = Bench()
    bench.receive(*rows)
    assert bench.handled == [1, 2, 3]
    frame = memoryview(frame_header(3) + b"".join(rows))
    assert [row for row in rows_later(frame, 0) if row] == rows_of(frame)
    assert [row for row in rows_later(frame, 2) if row] == rows_of(frame)[2:]


def test_the_elements_of_a_large_message_are_counted_in_slices() -> None:
    wide = msgpack.packb([0] * (10 * ELEMENTS_BETWEEN))
    assert len(list(walk(wide, 0, 10**6))) == 11
    bench = Bench()
    now = [0]
    bench.clock.now_us = lambda: now.__setitem__(0, now[0] + SLICE_US // 4) or now[0]  # type: ignore[method-assign]
    nested = [msgpack.packb([0] * 50_000) for _ in range(4)]
    row = b"\x96\x02\x01" + b"".join(nested)
    assert len(row) > SMALL_FRAME_BYTES
    bench.receive(row)
    assert not bench.link.sent and bench.clock.waiting
    bench.slices()
    assert b"not served" in bench.link.sent[0]


@pytest.mark.parametrize(
    "frame",
    [
        frame_header(2) + packed(envelope(SMALL_FRAME_BYTES), 1),
        frame_header(1) + packed(envelope(SMALL_FRAME_BYTES), 1) + b"\x00",
        frame_header(MAX_MESSAGES_PER_FRAME + 1) + packed(envelope(SMALL_FRAME_BYTES), 1),
        frame_header(1) + packed(envelope(SMALL_FRAME_BYTES), 1)[:-1],
        b"\xc4" + bytes(SMALL_FRAME_BYTES + 1),
        frame_header(1) + msgpack.packb([0] * messages.MAX_FRAME_ELEMENTS),
        frame_header(5) + 5 * msgpack.packb([2, 1, [0] * (messages.MAX_FRAME_ELEMENTS // 5)]),
        frame_header(1) + b"\xdd\xff\xff\xff\xff" + bytes(SMALL_FRAME_BYTES),
        frame_header(1) + b"\x81\x01\x01" + bytes(SMALL_FRAME_BYTES),
        frame_header(1) + b"\xc4\x01x" + bytes(SMALL_FRAME_BYTES),
    ],
)
def test_a_malformed_large_frame_is_refused(frame: bytes) -> None:
    with pytest.raises(ProtocolError):
        for _ in rows_later(memoryview(frame), 0):
            pass
