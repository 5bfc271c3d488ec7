"""The task that reads a key set: its times, its retries, and early refreshes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import pytest

from quorate.quorum.rpc.jwks.refresher import EARLY_REFRESH_MS, KeyRefresher, RefreshTimes
from quorate.quorum.rpc.jwks.source import SourceFailed
from quorate.quorum.sasl.key_set import KeySet, parse_key_set
from tests.tokens import TokenProvider
from tests.unit.rpc.kafka.fakes import FakeClock

TIMES = RefreshTimes(refresh_ms=60_000, retry_backoff_ms=100, retry_backoff_max_ms=1000)
ONE, TWO = (TokenProvider({each: ("ES256", 0)}).jwks() for each in ("one", "two"))


@pytest.fixture(autouse=True)
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parse key sets on the event loop, so that no test waits for a thread."""

    async def inline(work: Callable[..., KeySet], text: bytes) -> KeySet:
        return work(text)

    monkeypatch.setattr(asyncio, "to_thread", inline)


class Script:
    """A source whose next answers are `answers`, the last one again and again."""

    def __init__(self, *answers: bytes | Exception) -> None:
        self.answers = list(answers)
        self.reads = 0

    async def read(self) -> bytes:
        self.reads += 1
        answer = self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class Fixture:
    """A running refresher of a scripted source on a fake clock."""

    def __init__(self, *answers: bytes | Exception, keys: KeySet | None = None) -> None:
        self.clock = FakeClock()
        self.source = Script(*answers)
        self.refresher = KeyRefresher("CLIENTS", self.source, TIMES, self.clock, keys)

    async def __aenter__(self) -> Fixture:
        self.refresher.start()
        await self.settle()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.refresher.close()
        await asyncio.sleep(0)

    async def settle(self) -> None:
        """Let the task work until it waits for the clock again."""
        for _ in range(20):
            await asyncio.sleep(0)

    async def advance(self, ms: int) -> None:
        self.clock.advance(ms)
        await self.settle()

    @property
    def ids(self) -> list[str | None]:
        return [each.id for each in self.refresher.keys.keys]


async def test_the_keys_are_read_in_each_interval() -> None:
    async with Fixture(ONE, TWO) as at:
        assert at.ids == ["one"]
        await at.advance(59_999)
        assert (at.ids, at.source.reads) == (["one"], 1)
        await at.advance(1)
        assert (at.ids, at.source.reads, at.refresher.refreshes) == (["two"], 2, 2)


async def test_keys_that_were_read_before_the_start_are_read_again_later() -> None:
    async with Fixture(TWO, keys=parse_key_set(ONE)) as at:
        assert (at.ids, at.source.reads) == (["one"], 0)
        await at.advance(60_000)
        assert at.ids == ["two"]


@pytest.mark.parametrize(
    "failure", [SourceFailed("it is down"), b"no json", RuntimeError("a defect of a library")]
)
async def test_a_failed_attempt_keeps_the_keys_and_is_repeated(
    failure: bytes | Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async with Fixture(ONE, failure, failure, failure, failure, failure, TWO) as at:
        await at.advance(60_000)
        for backoff_ms in (100, 200, 400, 800, 1000):
            assert at.ids == ["one"]
            reads = at.source.reads
            await at.advance(backoff_ms - 1)
            assert at.source.reads == reads
            await at.advance(1)
            assert at.source.reads == reads + 1
        assert at.ids == ["two"]
        assert (at.refresher.refreshes, at.refresher.failures) == (2, 5)
        await at.advance(59_999)
        assert at.source.reads == 7
    (line,) = caplog.messages
    assert line.startswith("listener CLIENTS cannot read the keys that verify tokens: ")
    assert line.endswith(". It keeps those in use")


async def test_an_endpoint_that_is_down_at_the_start_delays_logins(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    async with Fixture(SourceFailed("it is down"), ONE) as at:
        assert at.ids == []
        await at.advance(100)
        assert at.ids == ["one"]
    (line,) = caplog.messages
    assert "it is down. It refuses all tokens until then" in line


async def test_unknown_keys_ask_for_one_early_refresh_in_a_while() -> None:
    async with Fixture(ONE, TWO) as at:
        for _ in range(100):
            at.refresher.refresh_early()
        await at.settle()
        assert at.ids == ["two"]
        for _ in range(10):
            at.refresher.refresh_early()
            await at.advance(EARLY_REFRESH_MS // 10 - 1)
        assert at.source.reads == 2
        await at.advance(10)
        at.refresher.refresh_early()
        await at.settle()
        assert at.source.reads == 3


async def test_unknown_keys_do_not_shorten_the_backoff() -> None:
    async with Fixture(SourceFailed("it is down")) as at:
        for _ in range(10):
            at.refresher.refresh_early()
            await at.settle()
        assert at.source.reads == 1


async def test_nothing_is_read_after_the_end() -> None:
    async with Fixture(ONE) as at:
        at.refresher.close()
        at.refresher.close()
        await at.advance(200_000)
        assert at.source.reads == 1


def test_the_backoff_is_bounded() -> None:
    assert [TIMES.until_next_ms(each) for each in (0, 1, 2, 5, 10_000)] == [
        *(60_000, 100, 200, 1000, 1000)
    ]
