"""The record of a consumer group: deliveries, commits that go back, and rebalances."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any, cast

import pytest

from quorate.cli.chaos.workload import group_log
from quorate.cli.chaos.workload.group import Group
from quorate.cli.chaos.workload.group_log import GroupLog, Rebalance
from quorate.cli.client.errors import Refused


def joined(at_s: float, partitions: list[int], **committed: int) -> dict[str, Any]:
    """Return the event of a join. `committed` has keys like p0."""
    offsets = {key[1:]: offset for key, offset in committed.items()}
    return {"event": "joined", "at_s": at_s, "partitions": partitions, "committed": offsets}


def read(**ranges: list[int]) -> dict[str, Any]:
    """Return the event of a read."""
    return {"event": "read", "at_s": 0.0, "ranges": {key[1:]: each for key, each in ranges.items()}}


def committed(at_s: float, offset: int) -> dict[str, Any]:
    """Return the event of a commit of partition 0."""
    return {"event": "committed", "at_s": at_s, "offsets": {"0": offset}}


def group_of(log: GroupLog) -> Group:
    """Return a group of one member that is not started."""
    return Group(
        bootstrap="h:1",
        topic="t",
        members=1,
        session_ms=6_000,
        kill_interval_s=0,
        log=log,
        say=lambda what: None,
    )


def test_a_gap_between_two_reads_is_found() -> None:
    log = GroupLog(2)
    log.take(0, read(p0=[0, 5], p1=[0, 2]))
    log.take(1, read(p0=[7, 9]))
    assert log.missing({0: 9, 1: 2}) == {0: 5}
    log.take(1, read(p0=[4, 7]))
    assert log.missing({0: 9, 1: 2}) == {}
    assert log.missing({0: 10, 1: 2}) == {0: 9}


def test_a_partition_that_begins_late_is_missing_from_its_start() -> None:
    log = GroupLog(1)
    log.take(0, read(p0=[3, 9]))
    assert log.missing({0: 9}) == {0: 0}
    assert GroupLog(1).missing({0: 0}) == {}


def test_a_commit_that_goes_back_is_found_by_its_time() -> None:
    log = GroupLog(1)
    log.take(1, committed(2.0, 8))
    log.take(0, committed(1.0, 5))
    assert list(log.went_back()) == [], "the lines of two processes arrive in any order"
    log.take(0, committed(3.0, 7))
    assert list(log.went_back()) == ["partition 0: a member committed 7 after 8"]
    assert log.commits() == 3


def test_a_member_that_finds_an_older_offset_is_reported() -> None:
    log = GroupLog(1)
    log.take(0, committed(1.0, 5))
    log.take(1, joined(2.0, [0], p0=3))
    assert list(log.went_back()) == ["partition 0: a member found 3 after 5"]


def test_the_last_lines_of_a_killed_member_count() -> None:
    log = GroupLog(1)
    log.take(0, joined(1.0, [0]))
    log.killed(0, 2.0)
    log.take(0, read(p0=[0, 5]))
    log.take(0, joined(1.9, [0]))
    assert log.missing({0: 5}) == {}
    assert not log.complete()


def test_offsets_that_are_not_kept_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_log, "MAX_EVENTS", 2)
    log = GroupLog(1)
    for number in range(3):
        log.take(0, committed(number, number))
    assert log.commits() == 2
    assert list(log.went_back()) == ["more than 2 offsets, so the last ones are not checked"]


def test_a_rebalance_ends_when_every_partition_has_a_member() -> None:
    log = GroupLog(3)
    log.take(0, joined(1.0, [0, 1]))
    assert not log.complete()
    log.take(1, joined(1.5, [2]))
    assert log.complete()
    log.killed(0, 4.0)
    assert not log.complete()
    log.take(1, joined(9.0, [0, 1, 2]))
    assert log.rebalances == [Rebalance(4.0, 9.0)]
    log.killed(1, 12.0)
    assert log.rebalances[1] == Rebalance(12.0, None)


async def test_a_line_that_a_kill_has_cut_is_no_error() -> None:
    stdout = asyncio.StreamReader()
    stdout.feed_data(json.dumps(read(p0=[0, 5])).encode() + b'\n{"event": "rea')
    stdout.feed_eof()
    process = cast(Any, type("P", (), {"stdout": stdout}))
    group = group_of(GroupLog(1))
    await group._follow(0, process)
    await group.stop()
    assert group.log.missing({0: 5}) == {}


async def test_a_member_that_ends_by_itself_is_a_problem() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", "", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    group = group_of(GroupLog(1))
    group._processes[0] = process
    await group._follow(0, process)
    with pytest.raises(Refused, match="member 0 of the group ended by itself"):
        await group.stop()
