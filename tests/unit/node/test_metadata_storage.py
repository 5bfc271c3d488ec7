"""The metadata log with its snapshots: generation, retention, power losses at every disk call, and
directories in which the log and the snapshots contradict each other."""

from __future__ import annotations

import errno
import logging
import random
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.batches.batch import assign
from quorate.quorum.log.files.archive import ArchiveRefused
from quorate.quorum.log.files.errors import CorruptLog, OutOfFiles
from quorate.quorum.log.snapshots.snapshots import snapshot_name, snapshot_of
from quorate.quorum.metadata.snapshot_file import read_snapshot, write_snapshot
from quorate.quorum.offline.storage_format import control, voters_snapshot
from quorate.quorum.raft.control_records import ControlType, KRaftVersionRecord
from quorate.quorum.raft.voter_history import QuorumVoters
from tests.sim.world.disk import PowerCut, SimDisk
from tests.unit.node.metadata_disk import (
    ARCHIVE,
    DIRECTORY,
    OFTEN,
    SETTINGS,
    MetadataDisk,
    config_batch,
    image_at,
)
from tests.unit.rpc.kafka.fakes import FakeClock


def new_disk(seed: int = 0) -> SimDisk:
    disk = SimDisk(random.Random(seed))
    disk.make_dirs(DIRECTORY)
    return disk


def opened(**changes: object) -> MetadataDisk:
    node = MetadataDisk(new_disk(), **changes)  # type: ignore[arg-type]
    node.open()
    return node


def run(clock: FakeClock, milliseconds: int = 3000) -> None:
    for _ in range(milliseconds // 50):
        clock.advance(50)


# -- when ----------------------------------------------------------------------------------------


def test_a_snapshot_is_due_after_so_many_bytes(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    node = opened()
    _, clock = node.generator()
    node.append(2)
    run(clock)
    assert node.storage.snapshots.latest is None
    node.append(5)
    run(clock)
    assert node.latest() == EpochOffset(1, 7)
    run(clock)
    assert list(node.storage.snapshots) == [EpochOffset(1, 7)], "nothing new since"
    (line,) = [each for each in caplog.messages if each.startswith("wrote a snapshot of the ")]
    assert re.search(r"metadata below offset 7: [1-9]\d* bytes$", line)


def test_a_snapshot_is_due_after_some_time_but_only_of_something_new() -> None:
    node = opened(snapshots=replace(OFTEN, bytes_between=1 << 30, interval_ms=10_000))
    _, clock = node.generator()
    node.append(1)
    run(clock, 9_000)
    assert node.storage.snapshots.latest is None
    run(clock, 3_000)
    assert node.latest() == EpochOffset(1, 1)
    run(clock, 30_000)
    assert list(node.storage.snapshots) == [EpochOffset(1, 1)]


@pytest.mark.parametrize("operation", ["open", "truncate", "pwrite"])
def test_a_snapshot_waits_for_a_file_descriptor(operation: str) -> None:
    """Peers that hold all descriptors of the process must not stop the node."""
    node = opened()
    failed: list[str] = []

    def before(each: str, path: str) -> None:
        if each == operation and path.endswith(".part") and len(failed) < 3:
            failed.append(path)
            raise OutOfFiles(errno.EMFILE, "Too many open files", path)

    _, clock = node.generator()
    node.append(7)
    node.disk.before = before
    run(clock, 20_000)
    assert len(failed) == 3 and not node.failures
    assert node.latest() == EpochOffset(1, 7)


def test_a_snapshot_is_due_when_the_latest_is_found_damaged() -> None:
    """The damaged snapshot still marks the start of the log, so it stays until the new one is
    durable."""
    node = opened(snapshots=replace(OFTEN, retention_bytes=0))
    _, clock = node.generator()
    node.append(7)
    run(clock)
    old, files = node.latest(), node.storage.snapshots
    node.append(1)
    node.disk.flip(f"{DIRECTORY}/{snapshot_name(old)}", 90)
    run(clock)
    assert node.latest() == old, "nobody has read it"
    assert files.read(old, 0, 1000) is None and node.latest() == old
    run(clock)
    assert list(files) == [EpochOffset(1, 8)] and not files.damaged
    assert reopened(node).storage.log.start_offset == 8


def test_its_time_is_the_logs_and_not_this_nodes_clock() -> None:
    """The image of the active controller has the time of its decision, that of other nodes the time
    of the batch."""
    node = opened()
    node.append(7)
    generator, clock = node.generator()
    image = node.image
    generator._image = lambda: image()._replace(last_timestamp_ms=5)
    run(clock)
    snapshot = node.latest()
    found = read_snapshot(snapshot, node.storage.snapshots.chunks(snapshot)).image
    assert found == image_at(7, node.epochs)


def test_no_snapshot_ends_inside_of_a_batch() -> None:
    node = opened()
    node.append(7)
    generator, clock = node.generator()
    generator._image = lambda: None
    run(clock)
    assert node.storage.snapshots.latest is None


# -- what goes -----------------------------------------------------------------------------------


def test_retention_lets_go_of_the_oldest_and_of_the_log_below_the_next() -> None:
    node = opened()
    _, clock = node.generator()
    for _ in range(8):
        node.append(6)
        run(clock)
    earliest, latest = node.storage.snapshots.earliest, node.latest()
    assert earliest is not None and 6 < earliest.offset <= latest.offset == 48
    assert node.storage.log.start_offset == earliest.offset
    bases = [int(name[:20]) for name in node.names() if name.endswith(".log")]
    assert min(bases) > 0, "whole segments below the earliest snapshot are gone"
    node.storage.close()
    again = MetadataDisk(node.disk, epochs=node.epochs, flushed=node.flushed)
    again.open()
    assert again.storage.log.start_offset == earliest.offset
    again.check()


def test_what_retention_lets_go_of_can_be_kept_in_an_archive() -> None:
    node = opened(settings=replace(SETTINGS, archive_directory=ARCHIVE))
    _, clock = node.generator()
    for _ in range(8):
        node.append(6)
        run(clock)
    archived = node.names(ARCHIVE)
    here = node.names()
    bases = sorted(int(each[:20]) for each in [*archived, *here] if each.endswith(".log"))
    assert bases[0] == 0 and len(set(bases)) == len(bases)
    assert any(snapshot_of(each) for each in archived)
    assert not set(archived) & set(here)


def test_an_archive_that_cannot_take_files_is_refused_at_the_start() -> None:
    disk = new_disk()

    def before(operation: str, path: str) -> None:
        if operation == "rename" and ARCHIVE in path:
            raise OSError(18, "Invalid cross-device link")

    node = MetadataDisk(disk, settings=replace(SETTINGS, archive_directory="/elsewhere/x"))
    disk.before = lambda operation, path: (
        before(operation, ARCHIVE) if operation == "rename" else None
    )
    with pytest.raises(ArchiveRefused, match="same file system"):
        node.open()


# -- power cuts ----------------------------------------------------------------------------------


def history(node: MetadataDisk) -> None:
    """Run several epochs, with snapshots and retention."""
    _, clock = node.generator()
    for epoch in (1, 2, 3):
        node.append(8, epoch)
        run(clock, 2200)


def received(node: MetadataDisk) -> None:
    """Let a snapshot from the leader replace a log that is too short."""
    node.append(5)
    replaced(node, EpochOffset(2, 40))


def received_by_a_deposed_leader(node: MetadataDisk) -> None:
    """Let a deposed leader install a snapshot.

    No other node has its records of epoch 7. Records of epoch 6 were committed later, so its log
    ends far below the snapshot, but in a higher epoch."""
    node.append(5)
    node.append(3, 7)
    replaced(node, EpochOffset(6, 40))


def replaced(node: MetadataDisk, snapshot: EpochOffset) -> None:
    for offset in range(5, 40):
        node.epochs[offset] = snapshot.epoch
    content = b"".join(write_snapshot(image_at(40, node.epochs), QuorumVoters()))
    files = node.storage.snapshots
    for start in range(files.part_bytes(snapshot), len(content), 100):
        files.write_part(snapshot, start, content[start : start + 100])
    files.added(snapshot, files.freeze(snapshot))
    node.storage.log.reset_to(snapshot.offset, snapshot.epoch)
    files.remove_before(snapshot.offset)
    node.storage.log.flush()
    node.flushed = snapshot.offset


def received_while_old_ones_go(node: MetadataDisk) -> None:
    """Install a snapshot while the disk's thread still has to remove old snapshots and segments.

    The thread does both in this order."""
    generator, clock = node.generator()
    for epoch in (1, 2):
        node.append(8, epoch)
        run(clock, 2200)
    log, files = node.storage.log, node.storage.snapshots

    def off_the_loop(work: Callable[[], None]) -> None:
        node.disk.submit(work, lambda _, error: node.failures.extend([error] if error else []))

    log.run_reset = files.run_removal = off_the_loop
    node.append(8, 3)
    earliest, waits = files.earliest, False
    while not waits:
        clock.advance(1)
        waits = files.earliest != earliest
    generator.close()
    snapshot = EpochOffset(4, 60)
    for offset in range(24, 60):
        node.epochs[offset] = 4
    files.write_part(
        snapshot, 0, b"".join(write_snapshot(image_at(60, node.epochs), QuorumVoters()))
    )
    files.added(snapshot, files.freeze(snapshot))
    log.reset_to(60, 4)
    files.remove_before(60)
    assert [int(name[:20]) for name in node.names() if name.endswith(".log")] != [60]
    run(clock, 1000)
    assert [int(name[:20]) for name in node.names() if name.endswith(".log")] == [60]
    assert [name for name in node.names() if snapshot_of(name)] == [snapshot_name(snapshot)]
    log.flush()
    node.flushed = 60


@pytest.mark.parametrize(
    "script", [history, received, received_by_a_deposed_leader, received_while_old_ones_go]
)
def test_a_power_cut_at_any_disk_call(script: Callable[[MetadataDisk], None]) -> None:
    """R36, openraft 674e78aa: a crash between the installation of a snapshot and the removal of the
    log that contradicts it. R47, PySyncObj's deleteEntriesTo: it empties the log and writes it
    again to shorten it. Both are in tests/scenarios."""
    whole = opened()
    before = whole.disk.calls
    script(whole)
    for die_at in range(before + 1, whole.disk.calls + 1):
        node = opened()
        node.disk.die_at = die_at
        with pytest.raises(PowerCut):
            script(node)
        assert node.failures == [] or isinstance(node.failures[0], PowerCut)
        after = MetadataDisk(node.disk.crash(), epochs=node.epochs, flushed=node.flushed)
        after.open()
        after.check()
        after.append(1, 8)
        after.check()


# -- what does not fit together ------------------------------------------------------------------


def with_snapshots() -> MetadataDisk:
    node = opened(snapshots=replace(OFTEN, retention_bytes=-1))
    _, clock = node.generator()
    for _ in range(2):
        node.append(8)
        run(clock)
    node.storage.close()
    return node


def test_two_snapshots_are_read_by_turns() -> None:
    """Two followers fetch different snapshots, but only one file stays open."""
    files = reopened(with_snapshots()).storage.snapshots
    whole = {each: b"".join(files.chunks(each)) for each in files}
    assert len(whole) == 2
    for position in range(0, 300, 100):
        for snapshot, content in whole.items():
            assert files.read(snapshot, position, 100) == content[position : position + 100]


def reopened(node: MetadataDisk) -> MetadataDisk:
    again = MetadataDisk(node.disk, epochs=node.epochs, flushed=node.flushed)
    again.open()
    return again


def test_a_damaged_snapshot_is_set_aside_when_the_log_says_the_same() -> None:
    node = with_snapshots()
    latest = node.latest()
    node.disk.flip(f"{DIRECTORY}/{snapshot_name(latest)}", 90)
    for _ in range(2):  # a power cut undoes it, and the next start does it again
        again = reopened(node)
        again.check()
        assert again.latest() == EpochOffset(1, 8)
        assert snapshot_name(latest) + ".damaged" in again.names()
        node.disk = again.disk.crash(forgetful=True)


def test_a_damaged_snapshot_without_the_log_below_it_is_refused() -> None:
    node = opened()
    received(node)
    node.append(3, 2)
    node.storage.close()
    node.disk.flip(f"{DIRECTORY}/{snapshot_name(EpochOffset(2, 40))}", 90)
    before = node.names()
    with pytest.raises(CorruptLog, match="00000000000000000040-0000000002"):
        reopened(node)
    assert node.names() == before


def test_a_gap_between_snapshot_and_log_is_refused() -> None:
    """R38 (tests/scenarios): NATS TruncateLogWithMissingSnapshot and MisalignedSnapshotGap."""
    node = opened()
    received(node)
    node.append(3, 2)
    node.storage.close()
    node.disk.remove(f"{DIRECTORY}/{snapshot_name(EpochOffset(2, 40))}")
    with pytest.raises(CorruptLog, match="no snapshot holds the records before"):
        reopened(node)


def test_a_damaged_snapshot_of_the_format_is_named() -> None:
    """Only this snapshot names the voters of a new quorum."""
    node = opened()
    node.append(3)
    node.storage.close()
    path = f"{DIRECTORY}/{snapshot_name(EpochOffset(0, 0))}"
    node.disk.open(path, create=True).pwrite(voters_snapshot((), "CONTROLLER", 0), 0)
    reopened(node).storage.close()
    node.disk.flip(path, 90)
    with pytest.raises(CorruptLog, match=r"00000000000000000000-0000000000\.checkpoint: damaged"):
        reopened(node)


def test_a_damaged_voter_set_below_what_a_start_checks_is_refused() -> None:
    """A start does not check sealed segments, but it reads the voter sets from them."""
    node = opened()
    record = KRaftVersionRecord(version=0, k_raft_version=1)
    data = control(0, 0, (ControlType.KRAFT_VERSION, record))
    assign(data, 0, 1)
    node.storage.log.append(data, wall_ms=0)
    for _ in range(10):
        offset = node.storage.log.end_offset
        node.storage.log.append(config_batch(offset, 1), wall_ms=0)
    node.storage.close()
    names = [name for name in node.names() if name.endswith(".log")]
    assert len(names) > 2
    node.disk.flip(f"{DIRECTORY}/{names[0]}", 66)
    with pytest.raises(CorruptLog, match=rf"{names[0]}: damaged at byte 0, offset 0"):
        reopened(node)


def test_a_snapshot_older_than_the_log_is_gone() -> None:
    """A power loss brought the snapshot back. With it, a leader would send its log instead of the
    snapshot to a follower with records of an older epoch, and the follower would keep records that
    no other node has (found by a random walk)."""
    node = opened()
    _, clock = node.generator()
    node.append(8)
    run(clock)
    old = node.latest()
    content = b"".join(node.storage.snapshots.chunks(old))
    for epoch in (2, 3, 4, 5):
        node.append(8, epoch)
        run(clock)
    bases = [int(name[:20]) for name in node.names() if name.endswith(".log")]
    assert min(bases) > old.offset
    node.storage.close()
    file = node.disk.open(f"{DIRECTORY}/{snapshot_name(old)}", create=True)
    file.pwrite(content, 0)
    again = reopened(node)
    assert again.storage.snapshots.earliest is not None
    assert again.storage.snapshots.earliest.offset == again.storage.log.start_offset
    again.check()


def test_a_part_does_not_count_and_receiving_goes_on_behind_it() -> None:
    """R40 (tests/scenarios): SetupLastSnapshotIgnoresTmpFile of NATS."""
    node = opened()
    node.append(5)
    snapshot = EpochOffset(2, 40)
    files = node.storage.snapshots
    assert files.part_bytes(snapshot) == 0
    files.write_part(snapshot, 0, b"x" * 10)
    node.storage.close()
    again = reopened(node)
    assert again.storage.snapshots.latest is None
    assert again.storage.snapshots.part_bytes(snapshot) == 10


def test_a_part_that_a_crash_left_goes_when_there_is_a_later_snapshot() -> None:
    """This node wrote the part, so no node would send the rest. Once, each crash left one."""
    node = opened()
    later, old = EpochOffset(2, 40), EpochOffset(1, 3)
    for part in (old, later):
        node.storage.snapshots.start_part(part)
        node.storage.snapshots.write_part(part, 0, b"x" * 10)
    node = reopened(node)
    names = [f"{snapshot_name(each)}.part" for each in (old, later)]
    assert [each for each in node.names() if each.endswith(".part")] == names
    _, clock = node.generator()
    node.append(7)
    run(clock)
    assert node.latest() == EpochOffset(1, 7)
    assert [each for each in reopened(node).names() if each.endswith(".part")] == names[1:]


def test_a_snapshot_that_is_written_while_a_later_one_is_received() -> None:
    """Found by the simulation: the written bytes were dropped, and the rest counted as a snapshot
    that starts with zeros."""
    node = opened()
    generator, clock = node.generator()
    node.append(12)
    files = node.storage.snapshots
    while not [name for name in node.names() if name.endswith(".part")]:
        clock.advance(1)
    assert files.part_bytes(EpochOffset(2, 40)) == 0
    run(clock)
    generator.close()
    assert not node.failures
    snapshot = node.latest()
    assert read_snapshot(snapshot, files.chunks(snapshot)).image.configs == node.image().configs
