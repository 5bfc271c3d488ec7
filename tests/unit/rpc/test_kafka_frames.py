"""The number of system calls for responses. A small write takes longer than building its bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from quorate.quorum.rpc import frame_link
from quorate.quorum.rpc.kafka_frames import KafkaLink
from quorate.quorum.seams import ProtocolError


class Wire:
    """An asyncio transport that records each write."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.closed = False
        self.reads = True

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def abort(self) -> None:
        self.closed = True

    def write(self, data: bytes) -> None:
        self.writes.append(bytes(data))

    def close(self) -> None:
        self.closed = True

    def get_extra_info(self, name: str) -> tuple[str, int]:
        return ("peer", 1)

    def get_write_buffer_size(self) -> int:
        return 0


class Handler:
    """Answers each frame with the same frame."""

    def __init__(self) -> None:
        self.link: KafkaLink

    def on_frame(self, frame: memoryview) -> None:
        self.link.send(frame)

    def on_closed(self, error: Exception | None) -> None: ...


def framed(*contents: bytes) -> bytes:
    return b"".join(len(each).to_bytes(4, "big") + each for each in contents)


def writes_of(use: Callable[[KafkaLink], None]) -> list[bytes]:
    async def run() -> list[bytes]:
        wire, handler = Wire(), Handler()
        handler.link = link = KafkaLink(lambda link: handler, 1 << 20)
        link.connection_made(wire)  # type: ignore[arg-type]
        use(link)
        await asyncio.sleep(0)
        assert link.pending_bytes == 0
        return wire.writes

    return asyncio.run(run())


def test_answers_to_one_chunk_leave_in_one_write() -> None:
    assert writes_of(lambda link: link.data_received(framed(b"a", b"b", b"c"))) == [
        framed(b"a", b"b", b"c")
    ]


def test_answers_given_later_leave_in_two_writes_however_many_they_are() -> None:
    def use(link: KafkaLink) -> None:
        for content in (b"a", b"b", b"c"):
            link.send(content)
        assert link.pending_bytes == len(framed(b"b", b"c"))

    assert writes_of(use) == [framed(b"a"), framed(b"b", b"c")]


def test_what_is_held_back_keeps_its_place_before_answers_to_input_and_before_the_end() -> None:
    def use(link: KafkaLink) -> None:
        link.send(b"a")
        link.send(b"b")
        link.data_received(framed(b"c"))
        link.send(b"d")
        link.send(b"e")
        link.close()

    assert writes_of(use) == [framed(b"a"), framed(b"b", b"c"), framed(b"d"), framed(b"e")]


class Slow:
    """A handler whose frames take 1 ms each on the clock of `perf_counter`."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.frames: list[bytes] = []

    def perf_counter(self) -> float:
        return self.now_s

    def on_frame(self, frame: memoryview) -> None:
        self.now_s += 0.001
        self.frames.append(bytes(frame))

    def on_closed(self, error: Exception | None) -> None: ...


def test_one_delivery_ends_and_the_rest_waits_for_the_next_iteration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slow, wire = Slow(), Wire()
    monkeypatch.setattr(frame_link, "perf_counter", slow.perf_counter)
    contents = [bytes([each]) for each in range(20)]

    async def run() -> None:
        link = KafkaLink(lambda link: slow, 1 << 20)
        link.connection_made(wire)  # type: ignore[arg-type]
        link.data_received(framed(*contents))
        assert len(slow.frames) == 4, "the first, and those of 2 ms; the last one crossed the line"
        assert not wire.reads, "the peer could send faster than frames are handled"
        link.data_received(framed(b"later"))
        assert len(slow.frames) == 4
        for _ in range(10):
            await asyncio.sleep(0)
        assert slow.frames == [*contents, b"later"]
        assert wire.reads

    asyncio.run(run())


def test_a_link_keeps_an_error_without_its_frames() -> None:
    class Refusing(Slow):
        def on_frame(self, frame: memoryview) -> None:
            try:
                raise ValueError(frame)
            except ValueError as error:
                raise ProtocolError("no") from error

    ends: list[Exception | None] = []

    async def run() -> None:
        handler = Refusing()
        handler.on_closed = ends.append  # type: ignore[assignment]
        link = KafkaLink(lambda link: handler, 1 << 20)
        link.connection_made(Wire())  # type: ignore[arg-type]
        link.data_received(framed(b"x"))
        link.connection_lost(None)

    asyncio.run(run())
    (error,) = ends
    assert isinstance(error, ProtocolError)
    assert error.__traceback__ is None
    assert error.__cause__ is None
    assert error.__context__ is None
