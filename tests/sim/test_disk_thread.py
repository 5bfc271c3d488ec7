"""Work in the disk's thread stops between its calls, and the event loop runs meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from random import Random

import pytest

from quorate.broker.logs.checkpoint_files import CheckpointFiles
from quorate.quorum.log.files import checkpoints
from quorate.quorum.log.files.names import PartitionName
from tests.sim.world.disk import SimDisk
from tests.sim.world.disk_thread import simulated_locks
from tests.sim.world.loop import SimLoop

CALL_S = 0.01
PARTITION = PartitionName("topic", 0)
FILE = "/node/topic-0/file"


class Stage:
    """A disk whose calls take CALL_S each, and work that writes three times and syncs."""

    def __init__(self, *, slow: bool) -> None:
        self.loop = SimLoop()
        self.disk = SimDisk(Random(1), self._later)
        self.disk.make_dirs("/node/topic-0")
        self.disk.open(FILE, create=True)
        self.disk.slow_calls = self._later if slow else None
        self.seen: list[bytes] = []
        self.answers: list[object] = []

    def _later(self, callback: Callable[[], None]) -> None:
        self.loop.call_at(self.loop.time() + CALL_S, callback)

    def work(self) -> str:
        file = self.disk.open(FILE)
        for number in range(3):
            file.pwrite(b"%d" % number, number)
        file.sync()
        return "done"

    def run(self, seconds: float = 1.0) -> None:
        self.disk.submit(self.work, lambda result, error: self.answers.append(error or result))
        self._look()
        self.loop.run_for(seconds)

    def _look(self) -> None:
        """Read the file as the event loop reads a file that the disk's thread writes."""
        if not self.disk.dead:
            self.seen.append(self.disk.open(FILE).pread(10, 0))
            self.loop.call_at(self.loop.time() + CALL_S / 2, self._look)


@contextmanager
def staged(*, slow: bool) -> Iterator[Stage]:
    stage = Stage(slow=slow)
    try:
        yield stage
    finally:
        stage.loop.close()


@pytest.mark.parametrize("slow", [True, False])
def test_the_loop_sees_each_step_of_the_work_if_calls_are_slow(slow: bool) -> None:
    with staged(slow=slow) as stage:
        stage.run()
        assert stage.answers == ["done"]
        assert set(stage.seen) == ({b"", b"0", b"01", b"012"} if slow else {b"", b"012"})
        assert bool(stage.disk.overlaps) == slow


def test_a_process_that_dies_between_two_calls_leaves_what_it_wrote_until_then() -> None:
    with staged(slow=True) as stage:
        stage.run(3.5 * CALL_S)
        stage.disk.dead = True
        after = stage.disk.restart()
        stage.loop.run_for(1)
        assert stage.answers == []
        assert after.content(FILE) == b"0"


def test_an_error_in_the_thread_is_the_answer() -> None:
    with staged(slow=True) as stage:

        def fails(operation: str, path: str) -> None:
            if operation == "sync":
                raise OSError("broken")

        stage.disk.before = fails
        stage.run()
        assert [str(each) for each in stage.answers] == ["broken"]


def test_calls_are_quick_again_in_the_middle_of_the_work() -> None:
    with staged(slow=True) as stage:
        stage.loop.call_at(3.5 * CALL_S, setattr, stage.disk, "slow_calls", None)
        stage.run()
        assert stage.answers == ["done"]
        assert b"0" in stage.seen and b"01" not in stage.seen


def test_the_loop_waits_for_the_lock_of_work_that_has_stopped() -> None:
    """The event loop writes a checkpoint while the disk's thread is about to write an older one."""
    name = "checkpoint"

    def after(files: CheckpointFiles, stage: Stage) -> tuple[list[object], int]:
        older = files.writing(name, {PARTITION: 1})
        stage.disk.submit(older, lambda result, error: stage.answers.append(error or "older"))
        stage.loop.call_at(3.5 * CALL_S, files.write, name, {PARTITION: 2})
        stage.loop.run_for(1)
        return stage.answers, checkpoints.read_offsets(stage.disk, "/node", name)[PARTITION]

    with staged(slow=True) as stage, simulated_locks():
        assert after(CheckpointFiles(stage.disk, "/node"), stage) == (["older"], 2)
    with staged(slow=True) as stage:
        unguarded = CheckpointFiles(stage.disk, "/node")
        unguarded._lock = nullcontext()  # type: ignore[assignment]
        assert after(unguarded, stage) != (["older"], 2)
