"""The check and the repair of a node's whole directory."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quorate.broker.logs import producer_snapshots
from quorate.broker.partition.producer_state import ProducerStates
from quorate.quorum.ids import EpochOffset, Uuid
from quorate.quorum.log.checking.check_result import Kind
from quorate.quorum.log.files import checkpoints
from quorate.quorum.log.files.names import PartitionName
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.log.log import Log
from quorate.quorum.log.snapshots.snapshots import snapshot_name
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.snapshot_file import write_snapshot
from quorate.quorum.node.opening.meta_properties import (
    META_COPY,
    META_FILE,
    MetaProperties,
    write_meta,
)
from quorate.quorum.node.replica.metadata_mark import (
    CATCHING_UP_NAME,
    MARK_NAME,
    Mark,
    write_mark,
)
from quorate.quorum.offline.storage_repair import repair, set_aside_metadata
from quorate.quorum.offline.storage_verify import Verification, verify
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.election_file import COPY_NAME, KAFKA_NAME, ElectionFile
from quorate.quorum.raft.generation import GenerationFile, Rebuild
from quorate.quorum.raft.voter_history import QuorumVoters
from tests.sim.world.disk import PowerCut, SimDisk
from tests.unit.log.batches import append
from tests.unit.node.metadata_disk import DIRECTORY, MetadataDisk
from tests.unit.node.test_metadata_storage import new_disk, with_snapshots

ROOT = "/data"
T0 = PartitionName("t", 0)
PARTITION = f"{ROOT}/{T0}"
SETTINGS = LogSettings(segment_bytes=1_500, index_interval_bytes=100)


def node_directory() -> MetadataDisk:
    """Return a directory with snapshots, a vote, and a partition of 20 records with recovery point
    12."""
    node = with_snapshots()
    disk = node.disk
    meta = MetaProperties(cluster_id="c" * 22, node_id=1, directory_id=Uuid(b"d" * 16))
    write_meta(disk, ROOT, meta)
    ElectionFile(disk, DIRECTORY, (1,)).save(Election(1, None, 1))
    log = Log.open(disk, PARTITION, SETTINGS, wall_ms=0, clean=False)
    for offset in range(20):
        append(log, 1, b"%d" % offset + b"x" * 100)
    log.flush()
    checkpoints.write_partition_metadata(disk, PARTITION, Uuid(b"t" * 16))
    checkpoints.write_offsets(disk, ROOT, checkpoints.RECOVERY_POINTS_NAME, {T0: 12})
    checkpoints.write_offsets(disk, ROOT, checkpoints.HIGH_WATERMARKS_NAME, {T0: 20})
    content = producer_snapshots.encode(ProducerStates())
    producer_snapshots.write_snapshot(disk, PARTITION, 12, content)
    return node


def check(disk: SimDisk, directory: str = ROOT) -> Verification:
    before = tree(disk, ROOT)
    result = verify(
        disk,
        directory,
        whole_producers=lambda content: producer_snapshots.decode(content) is not None,
    )
    assert tree(disk, ROOT) == before, "checking changes nothing"
    return result


def tree(disk: SimDisk, path: str) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for name in disk.list(path):
        child = f"{path}/{name}"
        if disk.is_dir(child):
            found.update(tree(disk, child))
        else:
            found[child] = disk.content(child)
    return found


def write(disk: SimDisk, path: str, content: bytes) -> None:
    file = disk.open(path, create=True)
    file.truncate(0)
    file.pwrite(content, 0)


def last_log(disk: SimDisk, directory: str) -> str:
    return f"{directory}/{max(each for each in disk.list(directory) if each.endswith('.log'))}"


def shorten(disk: SimDisk, path: str, by: int) -> None:
    disk.open(path).truncate(len(disk.content(path)) - by)


def test_a_sound_directory() -> None:
    result = check(node_directory().disk)
    assert result.results == []
    assert (len(result.logs), result.batches) == (2, 36)


def test_one_log_alone() -> None:
    disk = node_directory().disk
    for directory, count in ((DIRECTORY, 16), (PARTITION, 20)):
        result = check(disk, directory)
        assert (result.results, result.batches) == ([], count)


def test_a_copy_of_the_log_alone_has_no_election() -> None:
    node = node_directory()
    lost_election(node)
    assert check(node.disk, DIRECTORY).results == []


Break = Callable[[MetadataDisk], None]


def flip(path: str, position: int = 5) -> Break:
    return lambda node: node.disk.flip(path, position)


def remove(path: str) -> Break:
    return lambda node: node.disk.remove(path)


def added(path: str) -> Break:
    return lambda node: write(node.disk, path, b"?")


def both_metas(node: MetadataDisk) -> None:
    for name in (META_FILE, META_COPY):
        node.disk.flip(f"{ROOT}/{name}", 5)


def another_vote(node: MetadataDisk) -> None:
    save = ElectionFile(node.disk, DIRECTORY, (1,))
    copy = node.disk.content(f"{DIRECTORY}/{COPY_NAME}")
    save.save(Election(1, None, 2))
    write(node.disk, f"{DIRECTORY}/{COPY_NAME}", copy)


def lost_election(node: MetadataDisk) -> None:
    for name in (KAFKA_NAME, COPY_NAME):
        node.disk.remove(f"{DIRECTORY}/{name}")


def latest_snapshot(node: MetadataDisk) -> None:
    node.disk.flip(f"{DIRECTORY}/{snapshot_name(node.latest())}", 90)


def renamed_snapshot(node: MetadataDisk) -> None:
    path = f"{DIRECTORY}/{snapshot_name(node.latest())}"
    other = EpochOffset(2, node.latest().offset)
    node.disk.rename(path, f"{DIRECTORY}/{snapshot_name(other)}")


def whole_snapshot(epoch: int, offset: int) -> Break:
    """Return a fault: the leader's snapshot is complete, but the log was not yet replaced by it."""

    def add(node: MetadataDisk) -> None:
        image = MetadataImage(last=EpochOffset(epoch, offset - 1))
        path = f"{DIRECTORY}/{snapshot_name(EpochOffset(epoch, offset))}"
        write(node.disk, path, b"".join(write_snapshot(image, QuorumVoters())))

    return add


def gap(node: MetadataDisk) -> None:
    disk = node.disk
    for name in disk.list(DIRECTORY):
        if name.endswith(".checkpoint") or name == f"{0:020}.log":
            disk.remove(f"{DIRECTORY}/{name}")


def torn_partition(node: MetadataDisk) -> None:
    shorten(node.disk, last_log(node.disk, PARTITION), 30)


def flipped_partition(node: MetadataDisk) -> None:
    node.disk.flip(last_log(node.disk, PARTITION), 90)


def shortened_metadata(node: MetadataDisk) -> None:
    shorten(node.disk, last_log(node.disk, DIRECTORY), 30)


@pytest.mark.parametrize(
    ("damage", "kind", "file", "says"),
    [
        (flip(f"{ROOT}/{META_COPY}"), Kind.DERIVED, META_COPY, "is damaged"),
        (both_metas, Kind.DAMAGED, META_FILE, "Restore it from a backup"),
        (remove(f"{ROOT}/{META_COPY}"), Kind.NOTE, META_COPY, "is missing"),
        (flip(f"{DIRECTORY}/{COPY_NAME}"), Kind.DERIVED, COPY_NAME, "checksum"),
        (another_vote, Kind.DAMAGED, KAFKA_NAME, "another leader in the same epoch"),
        (lost_election, Kind.DAMAGED, KAFKA_NAME, "quorum-state: missing; copy: missing"),
        (latest_snapshot, Kind.DERIVED, ".checkpoint", "the next start sets it aside"),
        (renamed_snapshot, Kind.DERIVED, ".checkpoint", "a batch of epoch 1: another snapshot's"),
        (
            whole_snapshot(9, 99),
            Kind.NOTE,
            "09.checkpoint",
            "is ahead of the log, which ends at offset 16",
        ),
        (
            whole_snapshot(9, 12),
            Kind.NOTE,
            "09.checkpoint",
            "is ahead of the log, which ends at offset 16",
        ),
        (
            whole_snapshot(0, 12),
            Kind.DERIVED,
            ".checkpoint",
            "its name has epoch 0, but the log has epoch 1",
        ),
        (gap, Kind.DAMAGED, DIRECTORY, "no complete snapshot has the records before it"),
        (shortened_metadata, Kind.DAMAGED, ".log", "no batch header"),
        (flip(f"{DIRECTORY}/{0:020}.log", 70), Kind.DAMAGED, ".log", "fails its CRC-32C"),
        (torn_partition, Kind.TORN, ".log", "--repair does so now"),
        (flipped_partition, Kind.DAMAGED, ".log", "fails its CRC-32C"),
        (
            flip(f"{PARTITION}/{0:020}.log", 70),
            Kind.DAMAGED,
            ".log",
            "if another replica is in sync",
        ),
        (flip(f"{PARTITION}/{0:020}.index", 3), Kind.DERIVED, ".index", "contradicts"),
        (flip(f"{PARTITION}/{12:020}.snapshot"), Kind.DERIVED, ".snapshot", "ignores it"),
        (
            flip(f"{PARTITION}/partition.metadata", 14),
            Kind.DAMAGED,
            "partition.metadata",
            "no valid topic id",
        ),
        (
            flip(f"{ROOT}/{checkpoints.RECOVERY_POINTS_NAME}", 0),
            Kind.DERIVED,
            checkpoints.RECOVERY_POINTS_NAME,
            "ignores it",
        ),
        (added(f"{ROOT}/core.123"), Kind.NOTE, "core.123", "not a file of a node"),
        (added(f"{PARTITION}/x.txt"), Kind.NOTE, "x.txt", "not a file of a log"),
        (added(f"{PARTITION}/{99:020}.index"), Kind.NOTE, ".index", "has no segment"),
        (
            added(f"{PARTITION}/{0:020}.log.deleted"),
            Kind.NOTE,
            ".deleted",
            "removes or restores it",
        ),
        (added(f"{PARTITION}/{0:020}.log.swap"), Kind.NOTE, ".swap", "removes or restores it"),
        (added(f"{PARTITION}/{99:020}.snapshot"), Kind.NOTE, ".snapshot", "after the log end"),
        (
            lambda node: node.disk.make_dir(f"{ROOT}/t-1.abc-delete"),
            Kind.NOTE,
            "-delete",
            "a deleted partition",
        ),
        (lambda node: node.disk.make_dir(f"{ROOT}/t-1.abc-stray"), Kind.NOTE, "-stray", "aside"),
        (lambda node: node.disk.make_dir(f"{ROOT}/old"), Kind.NOTE, "old", "no node reads it"),
    ],
)
def test_what_is_wrong_is_told_with_its_file_and_a_way_out(
    damage: Break, kind: Kind, file: str, says: str
) -> None:
    node = node_directory()
    damage(node)
    result = check(node.disk)
    found = [each for each in result.results if each.path.endswith(file) and says in str(each)]
    assert found, result.results
    assert found[0].kind is kind
    assert result.sound == (kind is Kind.NOTE)


def test_a_repair_does_what_the_next_start_would_and_nothing_more() -> None:
    node = node_directory()
    disk = node.disk
    torn_partition(node)
    disk.flip(f"{PARTITION}/{0:020}.index", 3)
    disk.flip(f"{ROOT}/{META_COPY}", 5)
    before = tree(disk, ROOT)
    repair(disk, check(disk))
    after = check(disk)
    assert [each.path for each in after.results] == [f"{ROOT}/{META_COPY}"]
    changed = {path for path, content in tree(disk, ROOT).items() if before.get(path) != content}
    assert changed and all(path.startswith(PARTITION) for path in changed)
    log = Log.open(disk, PARTITION, SETTINGS, wall_ms=0, clean=True)
    assert log.end_offset == 19


@pytest.mark.parametrize("damage", [flipped_partition, shortened_metadata, latest_snapshot])
def test_a_repair_never_touches_what_may_have_been_acknowledged(damage: Break) -> None:
    node = node_directory()
    damage(node)
    before = tree(node.disk, ROOT)
    repair(node.disk, check(node.disk))
    assert tree(node.disk, ROOT) == before


def test_a_metadata_directory_that_a_controller_lost_is_missed() -> None:
    """Such a directory once counted as sound, and the controller voted with an empty log."""
    disk = node_directory().disk
    mark = Mark(directory_id=Uuid(b"d" * 16), epoch=1, has_records=True)
    write_mark(disk, ROOT, mark)
    assert check(disk).results == []
    disk.remove_tree(DIRECTORY)
    (found,) = check(disk).results
    assert (found.kind, found.path) == (Kind.DAMAGED, DIRECTORY)
    assert "lost all records of its metadata log" in found.what
    assert "neither votes nor acknowledges" in found.way_out
    write(disk, f"{ROOT}/{MARK_NAME}", b"?")
    (found,) = check(disk).results
    assert (found.kind, found.path) == (Kind.DERIVED, f"{ROOT}/{MARK_NAME}")


def test_a_controller_that_catches_up_is_not_sound() -> None:
    disk = node_directory().disk
    write(disk, f"{DIRECTORY}/{CATCHING_UP_NAME}", b"")
    (found,) = check(disk).results
    assert (found.kind, found.what) == (Kind.DAMAGED, "was being restored from the leader")


@pytest.mark.parametrize("clean", [False, True])
def test_a_log_that_begins_beyond_its_end_is_not_sound(clean: bool) -> None:
    disk = node_directory().disk
    checkpoints.write_offsets(disk, ROOT, checkpoints.START_OFFSETS_NAME, {T0: 21})
    if clean:
        checkpoints.write_clean_shutdown(disk, ROOT, 1)
    found = check(disk).results[-1]
    assert (found.kind, found.path) == (Kind.DAMAGED if clean else Kind.DERIVED, PARTITION)
    assert "ends at offset 20, but log-start-offset-checkpoint says" in found.what
    checkpoints.write_offsets(disk, ROOT, checkpoints.START_OFFSETS_NAME, {T0: 20})
    checks = check(disk).results
    assert not any("begins at" in each.what for each in checks)


def test_a_partition_that_is_not_there_is_missed_if_the_shutdown_was_in_order() -> None:
    disk = node_directory().disk
    disk.remove_tree(PARTITION)
    assert check(disk).sound, "a deleted one, perhaps"
    checkpoints.write_clean_shutdown(disk, ROOT, 1)
    (found,) = check(disk).results
    assert (found.kind, found.path) == (Kind.DAMAGED, PARTITION)
    assert "flushed up to offset 12" in found.what


def test_a_brokers_metadata_log_is_set_aside_with_its_vote_kept() -> None:
    node = node_directory()
    disk = node.disk
    shortened_metadata(node)
    before = tree(disk, DIRECTORY)
    target = set_aside_metadata(disk, ROOT, "abc")
    assert target == f"{DIRECTORY}.abc-stray"
    assert disk.list(DIRECTORY) == [COPY_NAME, KAFKA_NAME]
    assert {path.replace(target, DIRECTORY): each for path, each in tree(disk, target).items()} == (
        before
    )
    assert [each.path for each in check(disk).results] == [target]
    fresh = MetadataDisk(disk.crash())
    fresh.open()
    assert fresh.storage.log.end_offset == 0
    assert ElectionFile(fresh.disk, DIRECTORY, (1,)).load().epoch == 1


def test_a_broker_whose_metadata_was_set_aside_stays_in_its_generation() -> None:
    """Otherwise the broker would follow the old majority, if that came back."""
    node = node_directory()
    rebuilds = (Rebuild(id=Uuid(b"r" * 16), epoch=1, offset=2),)
    GenerationFile(node.disk, DIRECTORY).save(rebuilds)
    set_aside_metadata(node.disk, ROOT, "abc")
    assert GenerationFile(node.disk.crash(), DIRECTORY).load() == rebuilds


def test_after_a_power_cut_a_directory_has_nothing_but_torn_tails() -> None:
    for seed in range(20):
        disk = new_disk(seed)
        log = Log.open(disk, PARTITION, SETTINGS, wall_ms=0, clean=False)
        for offset in range(30):
            append(log, 1, b"%d" % offset + b"x" * 100)
            if offset == 15:
                log.flush()
        after = disk.crash()
        result = check(after, PARTITION)
        assert all(each.kind is not Kind.DAMAGED for each in result.results), result.results
        repair(after, result)
        assert check(after, PARTITION).sound


def test_setting_aside_outlives_a_power_cut_at_any_disk_call() -> None:
    """The damaged log is always complete, at its old place or at the new one."""
    node = node_directory()
    shortened_metadata(node)
    damaged = node.disk.content(last_log(node.disk, DIRECTORY))
    calls = node.disk.calls
    set_aside_metadata(node.disk, ROOT, "abc")
    for number in range(1, node.disk.calls - calls + 1):
        again = node_directory()
        shortened_metadata(again)
        again.disk.open(last_log(again.disk, DIRECTORY)).sync()
        again.disk.die_at = again.disk.calls + number
        with pytest.raises(PowerCut):
            set_aside_metadata(again.disk, ROOT, "abc")
        disk = again.disk.crash()
        (where,) = [
            name
            for name in disk.list(ROOT)
            if name.startswith("__cluster_metadata-0")
            and any(each.endswith(".log") for each in disk.list(f"{ROOT}/{name}"))
        ]
        assert disk.content(last_log(disk, f"{ROOT}/{where}")) == damaged
        if where.endswith("-stray"):
            MetadataDisk(disk).open()
