"""Group commit: one sync for all waiting requests, and the offsets that a sync makes durable."""

from __future__ import annotations

import errno
import logging
import random
from collections import deque
from collections.abc import Callable

import pytest

from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.log.group_commit import GroupCommit
from quorate.quorum.log.log import Log
from quorate.quorum.log.segments.file_removal import rename_for_deletion
from quorate.quorum.log.slow_flushes import SLOW_FLUSH_MS
from tests.sim.world.disk import SimDisk
from tests.unit.log.batches import append, entries
from tests.unit.rpc.kafka.fakes import FakeClock


class CommitBench:
    def __init__(self) -> None:
        self.loop: deque[Callable[[], None]] = deque()
        self.disk = SimDisk(random.Random(5), self.loop.append)
        self.disk.make_dirs("/d")
        self.log = self.open(self.disk)
        self.clock = FakeClock()
        self.flushed: list[int] = []
        self.failures: list[BaseException] = []
        self.commit = GroupCommit(
            self.log, self.disk, self.clock, self.flushed.append, self.failures.append
        )

    @staticmethod
    def open(disk: SimDisk) -> Log:
        settings = LogSettings(flushed_is_acknowledged=True, segment_bytes=300)
        return Log.open(disk, "/d/t-0", settings, wall_ms=0, clean=False)

    def run(self, steps: int = 1_000) -> None:
        while self.loop and steps:
            self.loop.popleft()()
            steps -= 1

    def syncs(self) -> list[str]:
        seen: list[str] = []

        def before(operation: str, path: str) -> None:
            if operation == "sync" and path.endswith(".log"):
                seen.append(path)

        self.disk.before = before
        return seen


def test_all_that_wait_share_one_sync() -> None:
    node = CommitBench()
    syncs = node.syncs()
    for _ in range(2):
        append(node.log, 0, b"x")
        node.commit.request()
    node.run(1)
    append(node.log, 0, b"y")
    node.commit.request()
    node.commit.request()
    assert node.flushed == []
    node.run()
    assert node.flushed == [1, 3]
    assert len(syncs) == 2
    assert entries(node.open(node.disk.crash())) == [(0, b"x"), (0, b"x"), (0, b"y")]


def test_a_sync_that_ends_after_a_truncation_proves_nothing() -> None:
    """R22: the ABA problem of etcd's asynchronous storage writes."""
    node = CommitBench()
    append(node.log, 0, b"a")
    append(node.log, 0, b"b")
    node.commit.request()
    node.run(1)  # synced, not answered
    node.log.truncate_to(1)
    append(node.log, 1, b"other")
    assert node.log.flushed_offset == 0
    node.run()
    assert node.flushed == [2]
    assert entries(node.open(node.disk.crash())) == [(0, b"a"), (1, b"other")]


def test_a_truncation_before_the_sync_begins_does_not_break_it() -> None:
    """The segments of the flush may be removed before it runs."""
    node = CommitBench()
    for _ in range(12):
        append(node.log, 0, b"x" * 30)
    node.commit.request()
    node.log.truncate_to(2)
    node.run()
    assert node.failures == []
    assert node.flushed == [2]


def test_older_segments_are_synced_before_the_flushed_offset_passes_them() -> None:
    node = CommitBench()
    for _ in range(12):
        append(node.log, 0, b"x" * 30)
    node.commit.request()
    node.run()
    assert node.log.flushed_offset == 12
    assert len(entries(node.open(node.disk.crash()))) == 12


def test_a_failed_sync_is_told_once_and_never_tried_again() -> None:
    """R45, fsyncgate (PostgreSQL, 2018): the second fsync succeeds although the data is lost."""
    node = CommitBench()

    def broken(operation: str, path: str) -> None:
        if operation == "sync":
            raise OSError(errno.EIO, "Input/output error", path)

    append(node.log, 0, b"x")
    node.disk.before = broken
    node.commit.request()
    node.commit.request()
    node.run()
    node.disk.before = lambda operation, path: None
    node.commit.request()
    node.run()
    assert [type(error) for error in node.failures] == [OSError]
    assert node.flushed == []
    assert node.log.flushed_offset == 0


def test_a_log_that_is_deleted_meanwhile_is_no_failure() -> None:
    node = CommitBench()
    append(node.log, 0, b"x")
    node.commit.request()
    node.log.deleted = True
    rename_for_deletion(node.disk, node.log.directory, "f" * 32)
    node.run()
    assert node.failures == []


def test_a_slow_flush_is_logged_once_in_an_interval(caplog: pytest.LogCaptureFixture) -> None:
    node = CommitBench()

    def flush(took_ms: int) -> None:
        append(node.log, 0, b"x")
        node.commit.request()
        node.clock.advance(took_ms)
        node.run()

    with caplog.at_level(logging.WARNING):
        flush(SLOW_FLUSH_MS - 1)
        assert caplog.messages == []
        for _ in range(3):
            flush(SLOW_FLUSH_MS)
    (line,) = caplog.messages
    assert line.startswith("the flush of /d/t-0 took 1000 ms: the disk is slow or busy")
