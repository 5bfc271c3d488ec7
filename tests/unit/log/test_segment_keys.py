"""The keys that shape segments: jitter, preallocation, and the size and interval of indexes."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial

import pytest

from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.log.log import Log
from quorate.quorum.log.segments.rolling import roll_jitter_ms
from tests.sim.world.disk import SimDisk
from tests.unit.log.batches import append, batch, entries

PATH = "/data/topic-0"


def disk_of(seed: int) -> SimDisk:
    disk = SimDisk(random.Random(seed))
    disk.make_dirs("/data")
    return disk


@pytest.fixture
def disk() -> SimDisk:
    return disk_of(0)


def opened(disk: SimDisk, settings: LogSettings, *, clean: bool = True) -> Log:
    return Log.open(disk, PATH, settings, wall_ms=0, clean=clean)


def sizes(disk: SimDisk, suffix: str) -> list[int]:
    """Return the sizes of the files with this suffix, in the order of their base offsets."""
    names = [name for name in disk.list(PATH) if name.endswith(suffix)]
    return [disk.open(f"{PATH}/{name}").size() for name in names]


def age_at_which_it_rolls(disk: SimDisk, settings: LogSettings, seed: str) -> int:
    """Return the age in ms at which the first segment of a log makes room for the next."""
    log = opened(disk, settings)
    log.jitter_seed = lambda: seed
    for age_ms in range(settings.segment_ms + 2):
        offset = log.end_offset
        log.append(batch(offset, 0, [b"x"], timestamp_ms=age_ms - offset), wall_ms=0)
        if len(sizes(disk, ".log")) == 2:
            disk.remove_tree(PATH)
            return age_ms
    raise AssertionError("the log never rolled")


def test_jitter_lets_segments_roll_earlier(disk: SimDisk) -> None:
    settings = LogSettings(segment_ms=100, segment_jitter_ms=50)
    ages = [age_at_which_it_rolls(disk, settings, str(seed)) for seed in range(20)]
    assert min(ages) >= 52  # 100 - 49 + 1
    assert max(ages) <= 101
    assert len(set(ages)) > 5
    assert age_at_which_it_rolls(disk, LogSettings(segment_ms=100), "1") == 101


def test_the_jitter_is_below_the_age_itself() -> None:
    settings = LogSettings(segment_ms=10, segment_jitter_ms=1_000_000)
    drawn = {roll_jitter_ms(settings, partial(str, seed)) for seed in range(200)}
    assert drawn == set(range(10))
    assert roll_jitter_ms(LogSettings(segment_ms=10), lambda: "1") == 0


@pytest.mark.parametrize(
    ("index_max_bytes", "entries_of_each"),
    [(8, 0), (23, 0), (24, 1), (36, 2), (48, 3)],
    ids=str,
)
def test_a_full_index_ends_its_segment(
    disk: SimDisk, index_max_bytes: int, entries_of_each: int
) -> None:
    """As in Kafka, an entry of the time index has 12 bytes, and the last one is for the end."""
    log = opened(disk, LogSettings(index_interval_bytes=0, index_max_bytes=index_max_bytes))
    for _ in range(30):
        append(log, 0, b"x")
    log.close()
    assert len(sizes(disk, ".log")) > 5
    assert max(sizes(disk, ".index")) == 8 * entries_of_each
    assert max(sizes(disk, ".timeindex")) <= max(12, index_max_bytes // 12 * 12)
    assert len(entries(opened(disk, log.settings))) == 30


@pytest.mark.parametrize(("how", "most"), [("reopened", 3), ("truncated", 4)])
def test_entries_that_a_segment_has_already_count(disk: SimDisk, how: str, most: int) -> None:
    settings = LogSettings(index_interval_bytes=0, index_max_bytes=12 * (most + 1))
    log = opened(disk, settings)
    for _ in range(4):
        append(log, 0, b"x")
    if how == "reopened":
        log.close()
        log = opened(disk, settings)
    else:
        append(log, 0, b"x")
        log.truncate_to(4)
    while len(sizes(disk, ".log")) < 2:
        append(log, 0, b"x")
    assert sizes(disk, ".index") == [8 * most]


def test_the_interval_of_entries(disk: SimDisk) -> None:
    """An entry is due when more than the interval was appended since the last one."""
    log = opened(disk, LogSettings(index_interval_bytes=200, segment_bytes=1_000))
    size_bytes = len(batch(0, 0, [b"x"]))
    while len(sizes(disk, ".log")) < 2:
        append(log, 0, b"x")
    due = 200 // size_bytes + 1
    assert sizes(disk, ".index") == [8 * ((1_000 // size_bytes - 1) // due)]


def test_a_changed_interval_holds_for_new_segments(disk: SimDisk) -> None:
    log = opened(disk, LogSettings(index_interval_bytes=10**6, segment_bytes=1_000))
    append(log, 0, b"x")
    log.settings = replace(log.settings, index_interval_bytes=0)
    while len(sizes(disk, ".log")) < 3:
        append(log, 0, b"x")
    first, second = sizes(disk, ".index")
    assert first == 0
    assert second == 8 * (1_000 // len(batch(0, 0, [b"x"])) - 1)


def test_a_preallocated_segment_has_its_full_size_while_it_is_active(disk: SimDisk) -> None:
    log = opened(disk, LogSettings(segment_bytes=1_000, preallocate=True))
    while len(sizes(disk, ".log")) < 2:
        append(log, 0, b"x")
    whole = 1_000 // len(batch(0, 0, [b"x"])) * len(batch(0, 0, [b"x"]))
    assert sizes(disk, ".log") == [whole, 1_000]
    expected = entries(log)
    log.close()
    assert sizes(disk, ".log") == [whole, len(batch(0, 0, [b"x"]))]
    assert entries(opened(disk, log.settings)) == expected


@pytest.mark.parametrize("power", [False, True], ids=["process", "power"])
def test_recovery_cuts_the_zeros_of_a_preallocated_segment(
    disk: SimDisk, power: bool, caplog: pytest.LogCaptureFixture
) -> None:
    log = opened(disk, LogSettings(segment_bytes=1_000, preallocate=True))
    append(log, 0, b"x")
    log.flush()
    disk = disk.crash() if power else disk.restart()
    log = Log.open(disk, PATH, log.settings, wall_ms=0, clean=False, recovery_point=1)
    assert entries(log) == [(0, b"x")]
    assert not caplog.records, "no warning"
    append(log, 0, b"y")
    assert entries(log) == [(0, b"x"), (0, b"y")]


@pytest.mark.parametrize("seed", range(8))
def test_the_trimmed_size_of_a_flushed_segment_survives_a_power_cut(seed: int) -> None:
    """The segment was flushed before it was trimmed, and recovery does not look at it again."""
    disk = disk_of(seed)
    log = opened(disk, LogSettings(segment_bytes=200, preallocate=True))
    while len(sizes(disk, ".log")) < 4:
        append(log, 0, b"x")
        log.flush()
    expected = entries(log)
    disk = disk.crash()
    log = Log.open(disk, PATH, log.settings, wall_ms=0, clean=False, recovery_point=log.end_offset)
    assert entries(log) == expected


@pytest.mark.parametrize("seed", range(8))
def test_an_empty_preallocated_log_is_closed_without_zeros(seed: int) -> None:
    disk = disk_of(seed)
    log = opened(disk, LogSettings(segment_bytes=1_000, preallocate=True))
    log.reset_to(5)
    assert sizes(disk, ".log") == [1_000]
    disk.open(f"{PATH}/{5:020}.log").sync()
    disk.sync_dir(PATH)
    log.close()
    disk = disk.crash()
    log = opened(disk, log.settings)
    assert (log.start_offset, log.end_offset) == (5, 5)
    assert sizes(disk, ".log") == [0]
