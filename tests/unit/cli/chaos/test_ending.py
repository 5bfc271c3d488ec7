"""A run ends in bounded time with a verdict, whatever fails and whatever signal arrives."""

from __future__ import annotations

import asyncio
import signal
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from quorate.cli.chaos.loading.loader import load
from quorate.cli.chaos.results.view import View
from quorate.cli.chaos.run.ending import Interrupted, Interruption, reason, stage
from quorate.cli.chaos.run.interruptible import interruptible, without_leftovers
from quorate.cli.chaos.run.run import run_scenario
from quorate.cli.chaos.run.setup import Plan
from quorate.cli.chaos.workload.ledger import ROAMING, Ledger
from quorate.cli.chaos.workload.read_back import NO_PROGRESS_S, READ_BACK_S, ReadBack, read_back
from quorate.cli.client.consumer import Consumed
from quorate.cli.client.errors import NotReachable, Refused
from quorate.quorum.log.batches.record import Record
from tests.unit.cli.chaos.histories import result


@dataclass
class Problems:
    """A run that records problems."""

    found: list[str] = field(default_factory=list)

    def problem(self, what: str) -> None:
        """Record a problem."""
        self.found.append(what)


async def fails(error: Exception) -> int:
    """Raise the error."""
    raise error


async def test_a_stage_that_works() -> None:
    run = Problems()
    assert await stage(run, "reading", 5, asyncio.sleep(0, 42)) == 42
    assert run.found == []


async def test_a_stage_that_never_ends_is_a_problem() -> None:
    run = Problems()
    assert await stage(run, "reading", 0.01, asyncio.sleep(3600, 1)) is None
    assert run.found == ["reading: not within 0 s"]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (Refused("partition 3: no leader"), "reading: partition 3: no leader"),
        (KeyError("BrokerHeartbeatRequest"), "reading: KeyError: 'BrokerHeartbeatRequest'"),
        (OSError(5, "Input/output error"), "reading: OSError: [Errno 5] Input/output error"),
    ],
)
async def test_a_stage_that_fails_is_a_problem(error: Exception, said: str) -> None:
    run = Problems()
    assert await stage(run, "reading", 5, fails(error)) is None
    assert run.found == [said]


def test_errors_without_a_text() -> None:
    assert reason(ValueError()) == "ValueError()"


async def test_a_signal_cancels_the_steps() -> None:
    interruption = Interruption()
    asyncio.get_running_loop().call_soon(interruption.signalled, signal.SIGHUP)
    with pytest.raises(Interrupted, match="interrupted by SIGHUP"):
        await interruption.guard(asyncio.sleep(3600))


async def test_a_signal_between_two_steps_is_not_lost() -> None:
    interruption = Interruption()
    interruption.signalled(signal.SIGTERM)
    with pytest.raises(Interrupted, match="interrupted by SIGTERM"):
        await interruption.guard(asyncio.sleep(3600))


async def test_the_second_signal_ends_the_process() -> None:
    ended: list[int] = []
    interruption = Interruption(_exit=ended.append)
    interruption.signalled(signal.SIGINT)
    assert ended == []
    interruption.signalled(signal.SIGINT)
    assert ended == [1]


async def test_a_signal_of_the_process_is_handled() -> None:
    interruption = Interruption()
    loop = asyncio.get_running_loop()
    interruption.install(loop)
    try:
        loop.call_soon(signal.raise_signal, signal.SIGHUP)
        with pytest.raises(Interrupted, match="SIGHUP"):
            await interruption.guard(asyncio.sleep(3600))
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.remove_signal_handler(number)


class Unreachable:
    """A cluster that does not answer."""

    def active_controller(self) -> int:
        """Raise NotReachable."""
        raise NotReachable("no broker answers")


class Broken:
    """A cluster whose client has a bug."""

    def active_controller(self) -> int:
        """Raise an unexpected error."""
        raise KeyError("state")


@pytest.mark.parametrize(
    ("cluster", "said"),
    [(Unreachable(), "no broker answers"), (Broken(), "KeyError: 'state'")],
)
async def test_a_run_that_cannot_start_has_a_verdict(cluster: Any, said: str) -> None:
    scenario = load("leader-kill")
    result = await run_scenario(Plan(scenario, scenario.variants, "t"), cluster, View(None))
    assert result.verdict == "bad"
    failed = {check.name: check.text for check in result.checks if not check.good}
    assert failed["steps"] == f"the run could not start: {said}"
    assert "lost" in failed
    assert result.as_json()["verdict"] == "bad"


class Signalled:
    """A cluster in whose first request a signal arrives."""

    def active_controller(self) -> int:
        """Raise the signal in the thread of the loop, and NotReachable."""
        signal.raise_signal(signal.SIGTERM)
        raise NotReachable("no broker answers")


@pytest.mark.parametrize(("cluster", "ended_by"), [(Signalled(), "SIGTERM"), (Unreachable(), None)])
def test_the_result_names_the_signal_that_ended_the_run(cluster: Any, ended_by: str | None) -> None:
    scenario = load("leader-kill")
    plan = Plan(scenario, scenario.variants, "t")
    assert asyncio.run(interruptible(plan, cluster, View(None))).ended_by == ended_by


def test_a_signal_while_leftovers_are_removed_is_in_the_result() -> None:
    found = without_leftovers(result(), "topic t", lambda: signal.raise_signal(signal.SIGHUP))
    assert found.ended_by == "SIGHUP"
    assert found.left_behind == ("topic t: KeyboardInterrupt: SIGHUP",)


@dataclass
class Log:
    """A consumer of partitions with `ends` records each, of which some cannot be read."""

    ends: dict[int, int]
    errors: dict[int, Exception] = field(default_factory=dict)
    stuck: frozenset[int] = frozenset()
    poll_error: Exception | None = None
    now_s: float = 0.0
    numbers: list[int] = field(default_factory=list)
    positions: dict[int, int] = field(default_factory=dict)

    def seek_to(self, positions: Mapping[int, int]) -> None:
        """Set positions."""
        self.positions.update(positions)

    def offset_of(self, partition: int, timestamp: int) -> int:
        """Return the start or the end, or raise the partition's error."""
        self.now_s += 1
        if partition in self.errors:
            raise self.errors[partition]
        return self.ends[partition] if timestamp == -1 else 0

    def poll(self) -> Iterator[Consumed]:
        """Yield one record of each partition that is not stuck."""
        self.now_s += 1
        if self.poll_error is not None:
            raise self.poll_error
        for partition in self.numbers:
            offset = self.positions[partition]
            if offset < self.ends[partition] and partition not in self.stuck:
                number = (offset * 2 + ROAMING) * len(self.ends | self.errors) + partition
                self.positions[partition] += 1
                record = Record(offset, 0, b"%d" % number, LEDGER_VALUE(number))
                yield Consumed(partition, 0, False, record)


LEDGER_VALUE = Ledger(1, 10).value


def ledger(partitions: int, records: int) -> Ledger:
    """Return a ledger in which every partition has acknowledged records from offset 0 on."""
    found = Ledger(partitions, 10)
    for partition in range(partitions):
        numbers = found.take(ROAMING, partition, records)
        found.acknowledge(numbers, 0, 1.0)
    return found


def read(log: Log, partitions: int, records: int = 3) -> ReadBack:
    """Read a log on its own clock."""
    return read_back(ledger(partitions, records), log, lambda: log.now_s)


def test_everything_is_read() -> None:
    back = read(Log({0: 3, 1: 3}), 2)
    assert (back.unread, back.compared.lost.count, back.compared.unverified) == ({}, 0, 0)
    assert back.compared.read == 6
    assert back.final[1] == array("q", [1, 5, 9])


def test_a_partition_without_a_leader_is_reported_and_the_others_are_compared() -> None:
    back = read(Log({0: 2}, errors={1: Refused("no leader")}), 2)
    assert back.unread == {1: "no leader"}
    assert (back.compared.lost.count, back.compared.unverified) == (1, 3)


def test_a_cluster_that_is_gone_is_asked_once() -> None:
    log = Log({}, errors=dict.fromkeys(range(200), NotReachable("no node answers")))
    back = read(log, 200)
    assert len(back.unread) == 200
    assert log.now_s == 1
    assert back.compared.unverified == 600


def test_a_partition_that_stands_still_ends_the_reading() -> None:
    log = Log({0: 3, 1: 3}, stuck=frozenset({1}))
    back = read(log, 2)
    assert back.unread == {1: "not read in time"}
    assert log.now_s < NO_PROGRESS_S + 20
    assert (back.compared.lost.count, back.compared.unverified) == (0, 3)


def test_a_log_that_never_ends_is_read_for_a_bounded_time() -> None:
    log = Log({0: 10_000})
    back = read(log, 1)
    assert back.unread == {0: "not read in time"}
    assert log.now_s <= READ_BACK_S + 2


def test_an_error_of_the_reading_is_the_reason() -> None:
    back = read(Log({0: 3}, poll_error=Refused("partition 0: CORRUPT_MESSAGE")), 1)
    assert back.unread == {0: "partition 0: CORRUPT_MESSAGE"}
    assert back.compared.unverified == 3
