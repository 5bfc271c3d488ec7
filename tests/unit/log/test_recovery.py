"""Power cuts at every disk call of a log, and damage to each of its bytes."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from quorate.quorum.log.batches.batch import PREFIX_BYTES, batches
from quorate.quorum.log.files.errors import CorruptLog
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.log.log import Log
from quorate.quorum.log.segments.epochs import NO_EPOCH
from tests.sim.world.disk import PowerCut, SimDisk
from tests.unit.log.batches import Entry, append, batch, entries

PATH = "/data/topic-0"
METADATA = LogSettings(segment_bytes=1_500, index_interval_bytes=300, flushed_is_acknowledged=True)
SEEDS_PER_CALL = 2
PARTITION = LogSettings(segment_bytes=1_500, index_interval_bytes=300)
PREALLOCATED = LogSettings(segment_bytes=1_500, index_interval_bytes=300, preallocate=True)


class Model:
    """The contents that the disk may have: a prefix of one of the histories since the last flush.
    All flushed records are in each of them.
    """

    def __init__(self) -> None:
        self.now: list[Entry] = []
        self.histories: list[list[Entry]] = [[]]
        self.flushed: list[Entry] = []

    def append(self, *added: Entry) -> None:
        self.now = [*self.now, *added]
        self.histories.append(self.now)

    def truncate(self, offset: int) -> None:
        self.now = self.now[:offset]
        self.flushed = self.flushed[:offset]
        self.histories.append(self.now)

    def flush(self) -> None:
        self.flushed = self.now
        self.histories = [self.now]

    def check(self, found: list[Entry]) -> None:
        assert found[: len(self.flushed)] == self.flushed, "flushed records are lost"
        assert any(found == history[: len(found)] for history in self.histories), found


class Machine:
    """One node's log and its model. `recovery_point` is the checkpoint that the owner keeps."""

    def __init__(self, disk: SimDisk, log_settings: LogSettings) -> None:
        self.disk = disk
        self.settings = log_settings
        self.model = Model()
        self.recovery_point = 0
        self.epoch = 0

    def open(self, *, clean: bool = False) -> Log:
        return Log.open(
            self.disk,
            PATH,
            self.settings,
            wall_ms=0,
            clean=clean,
            recovery_point=self.recovery_point,
        )

    def append(self, log: Log, count: int, size: int = 60) -> None:
        for _ in range(count):
            value = b"%d %d " % (self.epoch, len(self.model.now)) + b"x" * size
            self.model.append((self.epoch, value))
            append(log, self.epoch, value)

    def truncate(self, log: Log, offset: int) -> None:
        self.model.truncate(offset)
        self.recovery_point = min(self.recovery_point, offset)
        log.truncate_to(offset)
        self.epoch += 1

    def flush(self, log: Log) -> None:
        flush = log.prepare_flush()
        flush.run()
        self.model.flush()
        log.complete_flush(flush)
        self.recovery_point = log.flushed_offset if not log.settings.flushed_is_acknowledged else 0

    def script(self) -> None:
        log = self.open()
        self.append(log, 3)
        self.flush(log)
        self.append(log, 12)
        self.append(log, 1, size=2_000)
        self.flush(log)
        self.append(log, 9)
        self.truncate(log, 20)
        self.append(log, 4)
        self.truncate(log, 12)
        self.append(log, 15)
        self.flush(log)
        log.close()
        log = self.open(clean=True)
        self.append(log, 8)
        self.truncate(log, 22)
        self.append(log, 8)
        self.flush(log)
        self.append(log, 3)


def machine(seed: int, log_settings: LogSettings) -> Machine:
    disk = SimDisk(random.Random(seed))
    disk.make_dirs("/data")
    return Machine(disk, log_settings)


@pytest.mark.parametrize(
    "log_settings",
    [METADATA, PARTITION, PREALLOCATED],
    ids=["metadata", "partition", "preallocated"],
)
@pytest.mark.parametrize("after", [SimDisk.crash, SimDisk.restart], ids=["power", "process"])
def test_a_crash_at_every_disk_call_loses_nothing_flushed(
    log_settings: LogSettings, after: Callable[[SimDisk], SimDisk]
) -> None:
    """R43, cqlite #1390, turbokv #8: a torn tail was not cut off, or was appended to."""
    whole = machine(0, log_settings)
    whole.script()
    first = machine(0, log_settings).disk.calls + 1
    assert whole.disk.calls > first + 100
    for call in range(first, whole.disk.calls + 1):
        for seed in range(SEEDS_PER_CALL):
            node = machine(1_000 * call + seed, log_settings)
            node.disk.die_at = call
            with pytest.raises(PowerCut):
                node.script()
            check_two_lives(node, after)


def check_two_lives(node: Machine, after: Callable[[SimDisk], SimDisk]) -> None:
    """R43: the tail is cut off for good. A third start finds the records of the second one."""
    node.disk = after(node.disk)
    log = node.open()
    found = entries(log)
    node.model.check(found)
    log.check()
    if node.settings.flushed_is_acknowledged:  # its records may be acknowledged from now on
        node.disk = node.disk.crash()
        log = node.open()
        assert entries(log) == found
    node.model.histories.append(found)
    node.model.now = found
    node.epoch = 1_000
    node.append(log, 2)
    node.flush(log)
    expected = node.model.now
    node.disk = node.disk.crash()
    assert entries(node.open()) == expected


def test_a_crash_during_recovery_is_recovered_from() -> None:
    for call in range(40):
        for seed in range(3):
            node = machine(100 * call + seed, METADATA)
            log = node.open()
            node.append(log, 5)
            node.flush(log)
            node.append(log, 30)
            node.disk = node.disk.crash()
            node.disk.die_at = call + 1
            try:
                node.open()
            except PowerCut:
                check_two_lives(node, SimDisk.crash)


def flushed_log(log_settings: LogSettings) -> tuple[SimDisk, list[Entry]]:
    node = machine(7, log_settings)
    log = node.open()
    node.append(log, 10)
    node.epoch = 1
    node.append(log, 6)
    node.flush(log)
    return node.disk, node.model.now


def test_every_damaged_byte_of_the_metadata_log_is_found() -> None:
    """R51, Jepsen's test of NATS. The bytes outside of a batch's CRC are included."""
    disk, expected = flushed_log(METADATA)
    names = [name for name in disk.list(PATH) if name.endswith(".log")]
    assert len(names) == 2
    for name in names:
        for position in range(len(disk.content(f"{PATH}/{name}"))):
            for mask in (0x01, 0x80):
                disk.flip(f"{PATH}/{name}", position, mask)
                with pytest.raises(CorruptLog) as raised:
                    log = Log.open(disk, PATH, METADATA, wall_ms=0, clean=False)
                    log.check()
                assert name in str(raised.value)
                disk.flip(f"{PATH}/{name}", position, mask)
    assert entries(Log.open(disk, PATH, METADATA, wall_ms=0, clean=False)) == expected


def test_a_metadata_log_that_somebody_shortened_is_refused() -> None:
    """Jepsen's finding about NATS: a file that is cut at a batch looks like a shorter log."""
    disk, _ = flushed_log(METADATA)
    name = max(name for name in disk.list(PATH) if name.endswith(".log"))
    for size in range(len(disk.content(f"{PATH}/{name}"))):
        before = disk.content(f"{PATH}/{name}")
        disk.open(f"{PATH}/{name}").truncate(size)
        for clean in (True, False):
            with pytest.raises(CorruptLog):
                Log.open(disk, PATH, METADATA, wall_ms=0, clean=clean)
        disk.open(f"{PATH}/{name}").pwrite(before, 0)
    disk.remove(f"{PATH}/{name}")
    with pytest.raises(CorruptLog, match="was flushed up to offset 16"):
        Log.open(disk, PATH, METADATA, wall_ms=0, clean=False)


def test_a_missing_segment_is_a_hole_and_no_shorter_log() -> None:
    node = machine(0, METADATA)
    log = node.open()
    node.append(log, 36)
    node.flush(log)
    names = [name for name in node.disk.list(PATH) if name.endswith(".log")]
    assert len(names) == 4
    node.disk.remove(f"{PATH}/{names[2]}")
    with pytest.raises(CorruptLog, match="next segment begins at offset"):
        Log.open(node.disk, PATH, PARTITION, wall_ms=0, clean=False, recovery_point=30)
    for clean in (True, False):
        log = node.open(clean=clean)
        with pytest.raises(CorruptLog, match=names[1]):
            entries(log)


def test_damage_below_the_recovery_point_of_a_partition_is_refused() -> None:
    disk, _ = flushed_log(PARTITION)
    name = max(name for name in disk.list(PATH) if name.endswith(".log"))
    disk.flip(f"{PATH}/{name}", 70)
    with pytest.raises(CorruptLog) as raised:
        Log.open(disk, PATH, PARTITION, wall_ms=0, clean=False, recovery_point=16)
    assert (raised.value.position, raised.value.path) == (0, f"{PATH}/{name}")
    assert "Restore this replica" in str(raised.value)


def test_damage_above_the_recovery_point_of_a_partition_is_cut_and_told() -> None:
    disk, expected = flushed_log(PARTITION)
    name = max(name for name in disk.list(PATH) if name.endswith(".log"))
    disk.flip(f"{PATH}/{name}", 70)
    log = Log.open(disk, PATH, PARTITION, wall_ms=0, clean=False)
    base = int(name.removesuffix(".log"))
    assert entries(log) == expected[:base]
    assert log.recovery.cut_at_offset == base
    assert log.recovery.cut_bytes > 0


def unflushed_tail(*tails: bytes) -> tuple[SimDisk, Callable[[], Log]]:
    """Return a disk and a function that opens its log.

    The log has one flushed batch of offset 0, and then bytes that were never synced."""
    node = machine(1, METADATA)
    log = node.open()
    append(log, 0, b"flushed" * 100)
    log.flush()
    disk = node.disk
    name = f"{PATH}/{0:020}.log"
    for tail in tails:
        file = disk.open(name)
        file.pwrite(tail, file.size())
    return disk, node.open


def test_a_batch_with_an_empty_sector_is_torn_whatever_follows() -> None:
    torn = bytearray(batch(1, 0, [b"v" * 3_000]))
    torn[600:1_800] = bytes(1_200)
    _, reopen = unflushed_tail(bytes(torn), batch(2, 0, [b"valid"]))
    assert reopen().end_offset == 1


def test_a_batch_that_the_file_ends_within_is_torn() -> None:
    whole = batch(1, 0, [b"v" * 700])
    for size in (1, 60, 61, 100, len(whole) - 1):
        disk, reopen = unflushed_tail(whole[:size])
        log = reopen()
        assert (log.end_offset, log.recovery.cut_bytes) == (1, size)
        assert disk.content(f"{PATH}/{0:020}.log") == log.read(0, 10_000)


def test_a_whole_batch_that_fails_its_crc_is_damage_and_not_torn() -> None:
    damaged = bytearray(batch(1, 0, [b"v" * 700]))
    damaged[400] ^= 1
    _, reopen = unflushed_tail(bytes(damaged))
    with pytest.raises(CorruptLog, match="fails its CRC"):
        reopen()


@pytest.mark.parametrize("follows", [b"", batch(2, 0, [b"after"])], ids=["last", "not last"])
def test_a_wrong_length_is_damage_and_not_torn(follows: bytes) -> None:
    """R48: the CRC does not cover the length."""
    damaged = bytearray(batch(1, 0, [b"v" * 700]))
    damaged[9] ^= 1
    _, reopen = unflushed_tail(bytes(damaged) + follows)
    with pytest.raises(CorruptLog):
        reopen()


def test_a_batch_of_an_older_epoch_does_not_continue_the_log() -> None:
    """The batch is a remnant of truncated bytes. A leader of epoch 4 never wrote it there."""
    for log_settings in (METADATA, PARTITION):
        node = machine(1, log_settings)
        log = node.open()
        append(log, 4, b"new")
        file = node.disk.open(f"{PATH}/{0:020}.log")
        file.pwrite(batch(1, 3, [b"old"]), file.size())
        if log_settings is METADATA:
            with pytest.raises(CorruptLog, match="leader epoch 3 follows epoch 4"):
                node.open()
        else:
            assert node.open().end_offset == 1


RECOVERY_POINT = 9


def half_flushed_log(*epochs: int) -> tuple[SimDisk, list[Entry]]:
    """Return the disk of a log, and its records.

    The first `RECOVERY_POINT` records, of epochs 1 and 4, are synced. One batch of each epoch
    follows."""
    node = machine(7, PARTITION)
    log = node.open()
    for epoch, count in ((1, 3), (4, RECOVERY_POINT - 3)):
        node.epoch = epoch
        node.append(log, count)
    node.flush(log)
    for epoch in epochs:
        node.epoch = epoch
        node.append(log, 1)
    assert len([name for name in node.disk.list(PATH) if name.endswith(".log")]) > 1
    return node.disk, node.model.now


@pytest.mark.parametrize(
    "latest_unsaved_epoch", [NO_EPOCH, 4], ids=["peers have it", "the last of an ISR"]
)
def test_a_flipped_bit_of_a_leader_epoch_is_a_shorter_log_or_refused(
    latest_unsaved_epoch: int,
) -> None:
    """The leader epoch lies outside of the CRC. A follower with a wrong epoch at its log end could
    not append the leader's next batch, and its fetches would stop."""
    disk, expected = half_flushed_log(*[4] * 5)
    places = [
        (path, header.base_offset, position + PREFIX_BYTES)
        for path in disk.files(PATH)
        if path.endswith(".log")
        for position, header in batches(disk.content(path))
    ]
    assert len(places) == len(expected) == RECOVERY_POINT + 5
    for path, offset, position in places:
        for bit in range(32):
            disk, _ = half_flushed_log(*[4] * 5)
            disk.flip(path, position + bit // 8, 1 << bit % 8)
            if offset < RECOVERY_POINT:
                with pytest.raises(CorruptLog, match=f"offset {offset}: leader epoch"):
                    recovered(disk, latest_unsaved_epoch)
            else:
                log = recovered(disk, latest_unsaved_epoch)
                assert entries(log) == expected[:offset]
                assert log.epochs.latest == 4


def recovered(disk: SimDisk, latest_unsaved_epoch: int) -> Log:
    return Log.open(
        disk.restart(),
        PATH,
        PARTITION,
        wall_ms=0,
        clean=False,
        recovery_point=RECOVERY_POINT,
        latest_unsaved_epoch=latest_unsaved_epoch,
    )


def test_epochs_that_were_not_saved_are_believed_where_nobody_else_has_the_records() -> None:
    for latest_unsaved_epoch, left in ((NO_EPOCH, 2), (4, 2), (5, 3), (6, 3), (7, 4), (9, 4)):
        disk, expected = half_flushed_log(4, 4, 5, 7)
        log = recovered(disk, latest_unsaved_epoch)
        assert entries(log) == expected[: RECOVERY_POINT + left]


def test_a_truncation_of_the_metadata_log_is_durable_at_once() -> None:
    for seed in range(30):
        node = machine(seed, METADATA)
        log = node.open()
        node.append(log, 30)
        node.flush(log)
        node.truncate(log, 3)
        node.disk = node.disk.crash()
        assert node.open().end_offset == 3


def test_nothing_survives_behind_a_cut(caplog: pytest.LogCaptureFixture) -> None:
    """A segment after a lost one was never acknowledged."""
    node = machine(3, PARTITION)
    log = node.open()
    node.append(log, 40)
    names = sorted(name for name in node.disk.list(PATH) if name.endswith(".log"))
    node.disk.open(f"{PATH}/{names[1]}").truncate(100)
    log = Log.open(node.disk.restart(), PATH, PARTITION, wall_ms=0, clean=False)
    assert entries(log) == node.model.now[: int(names[1].removesuffix(".log"))]
    assert "were not flushed" in caplog.text


def test_epochs_are_read_from_the_batches_when_their_file_is_gone_or_damaged() -> None:
    for damage in ("remove", "flip"):
        for clean in (True, False):
            disk, _ = flushed_log(PARTITION)
            before = Log.open(disk, PATH, PARTITION, wall_ms=0, clean=True).epochs.entries
            assert len(before) == 2
            path = f"{PATH}/leader-epoch-checkpoint"
            if damage == "remove":
                disk.remove(path)
            else:
                disk.flip(path, 0)
            log = Log.open(disk, PATH, PARTITION, wall_ms=0, clean=clean, recovery_point=16)
            assert log.epochs.entries == before


def test_a_log_that_lost_more_than_was_deleted_goes_on_from_its_start() -> None:
    node = machine(3, PARTITION)
    log = node.open()
    node.append(log, 5)
    log = Log.open(node.disk, PATH, PARTITION, wall_ms=0, clean=False, start_offset=9)
    assert (log.start_offset, log.end_offset) == (9, 9)
    node.disk = node.disk.restart()
    assert node.open().start_offset == 9


def test_a_log_that_was_closed_cleanly_does_not_begin_beyond_its_end() -> None:
    node = machine(3, PARTITION)
    log = node.open()
    node.append(log, 5)
    log.close()
    for start_offset in (5, 6):
        if start_offset == 5:
            Log.open(node.disk, PATH, PARTITION, wall_ms=0, clean=True, start_offset=5)
            continue
        with pytest.raises(CorruptLog, match="says that it begins at offset 6"):
            Log.open(node.disk, PATH, PARTITION, wall_ms=0, clean=True, start_offset=6)


def test_opening_again_does_not_read_what_the_recovery_point_vouches_for() -> None:
    node = machine(3, PARTITION)
    log = node.open()
    node.append(log, 100)
    node.flush(log)
    node.append(log, 1)
    log = node.open()
    assert 0 < log.recovery.scanned_bytes <= PARTITION.segment_bytes
    assert entries(log) == node.model.now


@pytest.mark.parametrize("epochs", [True, False], ids=["epochs", "no epochs"])
def test_a_clean_log_whose_offsets_fall_is_refused(epochs: bool) -> None:
    """The base offset lies outside of the CRC, and a clean start reads headers only: the log ended
    at a negative offset, or the start failed with a ValueError."""
    node = machine(3, PARTITION)
    log = node.open()
    node.append(log, 3)
    log.close()
    if not epochs:
        node.disk.remove(f"{PATH}/leader-epoch-checkpoint")
    (name,) = (name for name in node.disk.list(PATH) if name.endswith(".log"))
    second = list(batches(node.disk.content(f"{PATH}/{name}")))[1][0]
    node.disk.flip(f"{PATH}/{name}", second, 0x80)
    with pytest.raises(CorruptLog, match=f"damaged at byte {second}, offset 1: the batch has base"):
        Log.open(node.disk, PATH, PARTITION, wall_ms=0, clean=True)


def test_a_truncation_behind_a_damaged_header_is_refused() -> None:
    """The last offset delta of the batch before is damaged while the log is open."""
    node = machine(3, PARTITION)
    log = node.open()
    node.append(log, 4)
    (name,) = (name for name in node.disk.list(PATH) if name.endswith(".log"))
    second = list(batches(node.disk.content(f"{PATH}/{name}")))[1][0]
    node.disk.flip(f"{PATH}/{name}", second + 26, 0x08)
    with pytest.raises(CorruptLog, match=r"before it ends at offset 10\. All batches"):
        log.truncate_to(2)
