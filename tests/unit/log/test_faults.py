"""EIO and ENOSPC at every disk call of a log: append, flush, roll, truncation, retention, reset,
close.

The owner stops at the first error. The next start finds all records that were flushed.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable

import pytest

from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.log.log import Log
from tests.sim.world.disk import PowerCut, SimDisk
from tests.unit.log.batches import append, delete_expired, entries
from tests.unit.log.test_recovery import (
    METADATA,
    PARTITION,
    Machine,
    check_two_lives,
    machine,
)

GROWS = ("open", "pwrite", "rename", "make_dir", "make_dirs", "sync")
"""The operations that fail on a full disk."""


def fail_once(disk: SimDisk, call: int, error: int, *, spared: str = "") -> None:
    """Let one call fail. All later calls succeed, as after a passing fault."""

    def before(operation: str, path: str) -> None:
        if operation == spared or disk.calls != call:
            return
        if error == errno.EIO or operation in GROWS:
            raise OSError(error, "fault", path)

    disk.before = before


@pytest.mark.parametrize("log_settings", [METADATA, PARTITION], ids=["metadata", "partition"])
@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC], ids=["EIO", "ENOSPC"])
@pytest.mark.parametrize("after", [SimDisk.crash, SimDisk.restart], ids=["power", "process"])
def test_an_error_at_every_disk_call_loses_nothing_flushed(
    log_settings: LogSettings, error: int, after: Callable[[SimDisk], SimDisk]
) -> None:
    whole = machine(0, log_settings)
    first = whole.disk.calls + 1
    whole.script()
    failed = 0
    for call in range(first, whole.disk.calls + 1):
        node = machine(call, log_settings)
        # A failed sync may lose a partition's pages: its ISR has the acknowledged records.
        killed = after is SimDisk.restart and log_settings is PARTITION
        fail_once(node.disk, call, error, spared="sync" if killed else "")
        try:
            node.script()
        except OSError as raised:
            assert raised.errno == error
            failed += 1
            check_two_lives(node, after)
    assert failed > 50


def test_a_log_on_which_an_append_failed_goes_on() -> None:
    """After one ENOSPC the failed batch is not in the log, and the next append succeeds."""
    whole = machine(0, PARTITION)
    log = whole.open()
    before = whole.disk.calls
    whole.append(log, 40)
    for call in range(before + 1, whole.disk.calls + 1):
        node = machine(0, PARTITION)
        log = node.open()
        fail_once(node.disk, call, errno.ENOSPC)
        wanted, refused = [], 0
        for number in range(40):
            value = b"%d " % number + b"x" * 60
            try:
                append(log, 0, value)
            except OSError:
                refused += 1
                continue
            wanted.append((0, value))
        assert refused <= 1
        assert entries(log) == wanted
        node.disk = node.disk.restart()
        assert entries(node.open()) == wanted


def test_a_full_disk_refuses_appends_until_there_is_room() -> None:
    for room in range(0, 1_500, 37):
        node = machine(0, PARTITION)
        log = node.open()
        node.append(log, 20)
        kept = entries(log)
        node.disk.capacity_bytes = (
            sum(
                len(node.disk.content(f"{log.directory}/{name}"))
                for name in node.disk.list(log.directory)
            )
            + room
        )
        refused = 0
        for _ in range(20):
            try:
                append(log, 0, b"y" * 100)
                kept.append((0, b"y" * 100))
            except OSError as error:
                assert error.errno == errno.ENOSPC
                refused += 1
        assert refused
        assert entries(log) == kept
        node.disk.capacity_bytes = None
        append(log, 0, b"z")
        kept.append((0, b"z"))
        assert (
            entries(Log.open(node.disk, log.directory, PARTITION, wall_ms=0, clean=False)) == kept
        )


def retained(node: Machine) -> Log:
    def lower(offset: int) -> None:
        node.recovery_point = min(node.recovery_point, offset)

    log = node.open()
    log.before_truncation = lower
    for epoch in range(3):
        node.epoch = epoch
        node.append(log, 12)
        node.flush(log)
    return log


Step = Callable[[Log], object]
STEPS: dict[str, Step] = {
    "retention": lambda log: delete_expired(log, high_watermark=25, wall_ms=10**15),
    "reset": lambda log: log.reset_to(36, 5),
    "truncation": lambda log: log.truncate_to(20),
    "close": lambda log: log.close(),
}


@pytest.mark.parametrize("log_settings", [METADATA, PARTITION], ids=["metadata", "partition"])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("fault", ["EIO", "crash"])
def test_every_call_of_a_step(log_settings: LogSettings, step: str, fault: str) -> None:
    """If a call fails, the log keeps all records that the step does not remove, and stays
    usable."""
    kept = {"retention": (25, 36), "reset": (36, 36), "truncation": (0, 20), "close": (0, 36)}
    start, end = kept[step]
    whole = machine(0, log_settings)
    log = retained(whole)
    expected, calls = entries(log), whole.disk.calls
    STEPS[step](log)
    for number in range(1, whole.disk.calls - calls + 1):
        node = machine(0, log_settings)
        log = retained(node)
        call = node.disk.calls + number
        if fault == "EIO":
            fail_once(node.disk, call, errno.EIO)
        else:
            node.disk.die_at = call
        with pytest.raises((OSError, PowerCut)):
            STEPS[step](log)
        node.disk = node.disk.crash()
        log = node.open()
        found = entries(log)
        first = log.start_offset
        assert log.start_offset <= start
        assert found == expected[first : log.end_offset]
        assert log.end_offset >= end or step == "reset"
        node.epoch = 9
        append(log, 9, b"goes on")
        log.flush()
        again = entries(
            Log.open(node.disk.crash(), log.directory, log_settings, wall_ms=0, clean=False)
        )
        assert again == [*found, (9, b"goes on")]


def test_what_a_failed_fsync_left_in_the_page_cache_is_not_believed() -> None:
    """fsyncgate (R45): the pages are marked clean, a new process can read them, and its own fsync
    would not write them. Recovery therefore writes the bytes again before they count as flushed."""
    node = machine(0, METADATA)
    log = node.open()
    node.append(log, 3)
    node.flush(log)
    append(log, 0, b"never synced")

    def broken(operation: str, path: str) -> None:
        if operation == "sync" and path.endswith(".log"):
            raise OSError(errno.EIO, "fault", path)

    node.disk.before = broken
    flush = log.prepare_flush()
    with pytest.raises(OSError, match="fault"):
        flush.run()
    node.disk = node.disk.restart()
    log = node.open()
    acknowledged = entries(log)[: log.flushed_offset]
    for seed in range(10):
        node.disk._random = random.Random(seed)
        after = Log.open(node.disk.crash(), log.directory, METADATA, wall_ms=0, clean=False)
        assert entries(after)[: len(acknowledged)] == acknowledged
        node.disk.dead = False
