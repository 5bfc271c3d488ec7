"""docs/protocol/data-directory.md has a row for every file, with the effect of its loss.

The losses of a metadata directory are tried here. The losses of a partition are tried by the tests
that a row names.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

import pytest

from quorate.quorum.ids import ZERO_UUID, EpochOffset, ReplicaKey
from quorate.quorum.log.files import checkpoints
from quorate.quorum.log.files.errors import CorruptLog
from quorate.quorum.log.files.flushed_marker import FLUSHED_MARKER_NAME
from quorate.quorum.log.files.names import PRODUCER_SNAPSHOT_SUFFIX, SEGMENT_SUFFIXES
from quorate.quorum.log.files.offset_gaps import GAPS_NAME
from quorate.quorum.log.snapshots.snapshots import snapshot_name
from quorate.quorum.node.opening.bootstrap_file import BOOTSTRAP_FILE
from quorate.quorum.node.opening.data_directory import (
    LOCK_FILE,
    METADATA_DIRECTORY,
    require_formatted,
)
from quorate.quorum.node.opening.directory_replacement import (
    DECISION_FILE,
    REBUILT_DIRECTORY,
    finish_replacement,
)
from quorate.quorum.node.opening.meta_properties import META_COPY, META_FILE, StorageError
from quorate.quorum.node.replica.metadata_mark import CATCHING_UP_NAME, MARK_NAME, read_mark
from quorate.quorum.offline import storage_verify
from quorate.quorum.offline.storage_format import INITIAL_SNAPSHOT
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.election_file import COPY_NAME, KAFKA_NAME
from quorate.quorum.raft.errors import ElectionFileError
from quorate.quorum.raft.generation import FILE_NAME, GenerationFile, Rebuild
from tests.sim.world.disk import SimDisk
from tests.unit.node.metadata_disk import DIRECTORY, config_batch
from tests.unit.node.test_metadata_mark import ME, METADATA, ROOT, config_of, lived, start
from tests.unit.node.test_metadata_storage import opened, with_snapshots

PAGE = Path(__file__).parents[3] / "docs" / "protocol" / "data-directory.md"
Loss = Callable[[], None]


def restarted(*paths: str) -> str:
    """Remove these files of a controller, and start it. Return the loss that it reports."""
    disk = lived()
    for path in paths:
        disk.remove(path)
    require_formatted(disk, config_of("controller"))
    found = start(disk)
    assert found.storage.log.end_offset == 4
    assert (found.election.epoch, found.election.voted) in ((3, ME), (3, ReplicaKey(1, ZERO_UUID)))
    found.storage.close()
    for path in paths:
        assert disk.exists(path), "it is written again"
    return found.lost


def one_identity(name: str) -> Loss:
    def lose() -> None:
        assert not restarted(f"{ROOT}/{name}")

    return lose


def both_identities() -> None:
    disk = lived()
    for name in (META_FILE, META_COPY):
        disk.remove(f"{ROOT}/{name}")
    with pytest.raises(StorageError, match="is not formatted"):
        require_formatted(disk, config_of("controller"))


def the_mark() -> None:
    assert not restarted(f"{ROOT}/{MARK_NAME}")
    disk = lived()
    disk.remove(f"{ROOT}/{MARK_NAME}")
    disk.remove_tree(METADATA)
    assert "says that this disk is new" in start(disk).lost


def the_lock() -> None:
    disk = lived()
    disk.lock(f"{ROOT}/{LOCK_FILE}").release()
    disk.remove(f"{ROOT}/{LOCK_FILE}")
    disk.lock(f"{ROOT}/{LOCK_FILE}").release()


def bootstrap_checkpoint() -> None:
    disk = lived()
    disk.remove(f"{ROOT}/{BOOTSTRAP_FILE}")
    assert not start(disk).lost


def cleaner_checkpoint() -> None:
    disk = lived()
    assert not disk.exists(f"{ROOT}/{checkpoints.CLEANER_OFFSETS_NAME}")
    assert not start(disk).lost


def the_metadata_directory() -> None:
    disk = lived()
    disk.remove_tree(METADATA)
    assert "lost all records of its metadata log" in start(disk).lost
    found = start(disk, role="broker")
    assert not found.lost, "a broker fetches it again"


def the_decision() -> None:
    disk = lived()
    disk.make_dirs(f"{ROOT}/{REBUILT_DIRECTORY}")
    finish_replacement(disk, ROOT)
    assert disk.is_dir(f"{ROOT}/{REBUILT_DIRECTORY}") and not start(disk).lost


def the_rebuilt_directory() -> None:
    backup = f"{METADATA_DIRECTORY}.before-x"
    for in_place in (True, False):
        disk = lived()
        checkpoints.replace(disk, f"{ROOT}/{DECISION_FILE}", backup.encode())
        if not in_place:
            disk.rename(METADATA, f"{ROOT}/{backup}")
        finish_replacement(disk, ROOT)
        assert bool(start(disk).lost) != in_place


def one_election(name: str) -> Loss:
    def lose() -> None:
        assert not restarted(f"{METADATA}/{name}")

    return lose


def both_elections() -> None:
    disk = lived()
    for name in (KAFKA_NAME, COPY_NAME):
        disk.remove(f"{METADATA}/{name}")
    with pytest.raises(ElectionFileError, match="Move this metadata directory out"):
        start(disk)
    disk.rename(METADATA, "/elsewhere")
    assert start(disk).lost, "it catches up, as the message says"


def the_flag() -> None:
    disk = lived()
    disk.remove_tree(METADATA)
    found = start(disk)
    found.storage.log.append(config_batch(0, 3), wall_ms=0)
    found.election_file.save(Election(3))
    found.storage.close()
    disk.remove(f"{METADATA}/{CATCHING_UP_NAME}")
    assert start(disk).lost


def the_generation() -> None:
    disk = lived()
    GenerationFile(disk, METADATA).save((Rebuild(id=ME.directory_id, epoch=1, offset=1),))
    disk.remove(f"{METADATA}/{FILE_NAME}")
    assert GenerationFile(disk, METADATA).load() == ()


def the_marker() -> None:
    disk = lived()
    disk.remove(f"{METADATA}/{FLUSHED_MARKER_NAME}")
    assert not start(disk).lost
    disk = lived()
    path = f"{METADATA}/{0:020}.log"
    disk.open(path).pwrite(bytes(40), len(disk.content(path)))
    disk.remove(f"{METADATA}/{FLUSHED_MARKER_NAME}")
    assert "the end of the log was torn" in start(disk).lost


def the_epochs() -> None:
    disk = lived()
    disk.remove(f"{METADATA}/{checkpoints.EPOCHS_NAME}")
    found = start(disk)
    assert not found.lost and found.storage.log.last_epoch == 3


def a_segment() -> None:
    disk = lived()
    disk.remove(f"{METADATA}/{0:020}.log")
    with pytest.raises(CorruptLog, match="move this metadata directory out"):
        start(disk)
    disk = lived()
    disk.remove(f"{METADATA}/{0:020}.log")
    disk.remove(f"{METADATA}/{FLUSHED_MARKER_NAME}")
    assert "lost all records" in start(disk).lost


def an_index(suffix: str) -> Loss:
    def lose() -> None:
        disk = lived()
        path = f"{METADATA}/{0:020}{suffix}"
        if disk.exists(path):
            disk.remove(path)
        found = start(disk)
        assert not found.lost and found.storage.log.end_offset == 4

    return lose


def a_snapshot() -> None:
    node = with_snapshots()
    latest = node.latest()
    node.disk.remove(f"{DIRECTORY}/{snapshot_name(latest)}")
    again = node.disk.restart()
    node.disk = again
    node.open()
    node.check()
    for name in node.disk.list(DIRECTORY):
        if name.endswith(".checkpoint"):
            node.disk.remove(f"{DIRECTORY}/{name}")
    if node.storage.log.start_offset > 0:
        with pytest.raises(CorruptLog, match="no snapshot holds the records before"):
            node.open()


def the_initial_snapshot() -> None:
    node = opened()
    assert not node.disk.exists(f"/data/{INITIAL_SNAPSHOT}")
    assert node.storage.history.latest.kraft_version == 0
    assert read_mark(node.disk, "/data") is None


def of_partition(*tests: str) -> Loss:
    """Return a check that these tests of the replicas exist. They try the loss."""

    def exist() -> None:
        for test in tests:
            module, _, name = test.rpartition(".")
            assert callable(getattr(importlib.import_module(f"tests.unit.{module}"), name))

    return exist


DAMAGE, RESTARTS = "replication.test_damage", "replication.test_restarts"
INITIAL = snapshot_name(EpochOffset(0, 0))
LOSSES: dict[str, Loss] = {
    META_FILE: one_identity(META_FILE),
    META_COPY: one_identity(META_COPY),
    f"{META_FILE}` and `{META_COPY}": both_identities,
    MARK_NAME: the_mark,
    LOCK_FILE: the_lock,
    BOOTSTRAP_FILE: bootstrap_checkpoint,
    checkpoints.CLEAN_SHUTDOWN_NAME: of_partition(
        f"{RESTARTS}.test_killed_broker_says_so", f"{RESTARTS}.test_clean_restart_trusts_the_log"
    ),
    checkpoints.HIGH_WATERMARKS_NAME: of_partition(
        f"{RESTARTS}.test_damaged_checkpoint_is_only_a_lost_hint"
    ),
    checkpoints.RECOVERY_POINTS_NAME: of_partition(
        f"{RESTARTS}.test_checkpoints_that_are_lost_are_only_lost_hints"
    ),
    checkpoints.START_OFFSETS_NAME: of_partition(
        f"{RESTARTS}.test_checkpoints_that_are_lost_are_only_lost_hints"
    ),
    checkpoints.CLEANER_OFFSETS_NAME: cleaner_checkpoint,
    METADATA_DIRECTORY: the_metadata_directory,
    DECISION_FILE: the_decision,
    REBUILT_DIRECTORY: the_rebuilt_directory,
    "<topic>-<partition>": of_partition(
        f"{DAMAGE}.test_a_missing_directory_is_fetched_again",
        f"{DAMAGE}.test_a_missing_directory_that_nobody_else_has_is_no_empty_log",
    ),
    KAFKA_NAME: one_election(KAFKA_NAME),
    COPY_NAME: one_election(COPY_NAME),
    f"{KAFKA_NAME}` and `{COPY_NAME}": both_elections,
    CATCHING_UP_NAME: the_flag,
    FILE_NAME: the_generation,
    FLUSHED_MARKER_NAME: the_marker,
    checkpoints.EPOCHS_NAME: the_epochs,
    "<offset>.log": a_segment,
    "<offset>.index": an_index(".index"),
    "<offset>.timeindex": an_index(".timeindex"),
    "<offset>-<epoch>.checkpoint": a_snapshot,
    INITIAL: the_initial_snapshot,
    "<offset>.log` of a partition": of_partition(
        f"{DAMAGE}.test_a_missing_beginning_is_fetched_again",
        f"{DAMAGE}.test_a_missing_beginning_that_nobody_else_has_is_refused",
    ),
    "<offset>.index` of a partition": of_partition(
        "log.test_log.test_a_missing_index_is_built_anew"
    ),
    "<offset>.timeindex` of a partition": of_partition(
        "log.test_log.test_a_missing_index_is_built_anew"
    ),
    "<offset>.txnindex": an_index(".txnindex"),
    "<offset>.snapshot": of_partition(
        "replication.test_producer_snapshots.test_producer_snapshot_round_trip_and_damage",
        "replication.test_producer_snapshots.test_r59_duplicates_are_recognised_after_restart_and_leader_change",
    ),
    "leader-epoch-checkpoint` of a partition": of_partition(
        "log.test_recovery.test_epochs_are_read_from_the_batches_when_their_file_is_gone_or_damaged"
    ),
    GAPS_NAME: of_partition(
        "log.test_offset_gaps.test_without_the_marker_a_gap_is_damage",
        "log.test_offset_gaps.test_the_checkpoint_of_the_cleaner_takes_the_place_of_a_lost_marker",
    ),
    checkpoints.PARTITION_METADATA_NAME: of_partition(
        f"{RESTARTS}.test_directory_that_lost_its_topic_id_is_nobodys_where_others_have_all",
        f"{RESTARTS}.test_directory_that_lost_its_topic_id_is_kept_where_nobody_else_has_all",
    ),
}


def rows() -> dict[str, list[str]]:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {each[0].removeprefix("`").removesuffix("`"): each for each in cells}


def test_every_file_that_the_code_names_has_a_row() -> None:
    named = {
        *storage_verify.ROOT_FILES,
        *storage_verify.OFFSETS_NAMES,
        *storage_verify.LOG_FILES,
        *(f"<offset>{suffix}" for suffix in SEGMENT_SUFFIXES),
        f"<offset>{PRODUCER_SNAPSHOT_SUFFIX}",
        METADATA_DIRECTORY,
        DECISION_FILE,
        REBUILT_DIRECTORY,
        INITIAL,
    }
    assert named <= set(rows()), named - set(rows())


def test_every_row_says_everything_and_has_a_loss() -> None:
    assert set(rows()) == set(LOSSES)
    for row in rows().values():
        assert len(row) == 5 and all(row), row


@pytest.mark.parametrize("name", LOSSES)
def test_its_loss(name: str) -> None:
    LOSSES[name]()


def test_a_disk_for_losses_is_whole() -> None:
    disk: SimDisk = lived()
    assert not start(disk).lost
