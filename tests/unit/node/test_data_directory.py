"""docs/protocol/data-directory.md has a row for every file, with the effect of its loss.

The losses of a metadata directory are tried here. The losses of a partition are tried by the tests
that a row names.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
from collections.abc import Callable
from pathlib import Path

import pytest

from quorate.quorum.ids import ZERO_UUID, EpochOffset, ReplicaKey
from quorate.quorum.log.files import checkpoints, names
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
from quorate.quorum.node.replica.metadata_mark import CATCHING_UP_NAME, MARK_NAME
from quorate.quorum.offline import storage_verify
from quorate.quorum.offline.storage_format import INITIAL_SNAPSHOT
from quorate.quorum.raft.effects import Role
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.election_file import COPY_NAME, KAFKA_NAME
from quorate.quorum.raft.errors import ElectionFileError
from quorate.quorum.raft.generation import FILE_NAME, GenerationFile, Rebuild
from tests.sim.world.cluster import SimCluster
from tests.sim.world.disk import SimDisk
from tests.sim.world.loop import SimLoop
from tests.sim.world.shape import Quorum, Shape
from tests.unit.node import leftover_losses as losses
from tests.unit.node.metadata_disk import DIRECTORY, config_batch
from tests.unit.node.test_metadata_mark import ME, METADATA, ROOT, config_of, lived, start
from tests.unit.node.test_metadata_storage import opened, run, with_snapshots

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
    """A node starts in the same state with the file, without it, and with another content."""
    path, states = f"{ROOT}/{BOOTSTRAP_FILE}", []
    for change in ("none", "removed", "other"):
        disk = lived()
        assert disk.exists(path), "storage format has written it"
        if change == "removed":
            disk.remove(path)
        elif change == "other":
            disk.open(path).pwrite(b"garbage", 0)
        found = start(disk)
        assert not found.lost
        states.append((found.election, found.storage.log.end_offset, found.storage.beginning.image))
        found.storage.close()
        assert disk.exists(path) == (change != "removed"), "no node writes it again"
    assert states[1:] == states[:1] * 2


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
    """With the whole log, nothing is lost. If the log was cut up to the snapshot, a start needs
    it, and the earlier snapshot if there is one does not reach the log."""
    node = with_snapshots()
    snapshots = [each for each in node.disk.list(DIRECTORY) if each.endswith(".checkpoint")]
    assert len(snapshots) == 2
    for name in reversed(snapshots):
        node.disk.remove(f"{DIRECTORY}/{name}")
        node.disk = node.disk.restart()
        assert node.open().log.start_offset == 0
        node.check()
        node.storage.close()
    cut = opened()
    _, clock = cut.generator()
    for _ in range(6):
        cut.append(8)
        run(clock)
    assert cut.storage.log.start_offset > 0
    cut.storage.close()
    for name in cut.disk.list(DIRECTORY):
        if name.endswith(".checkpoint"):
            cut.disk.remove(f"{DIRECTORY}/{name}")
    with pytest.raises(CorruptLog, match="no snapshot holds the records before"):
        cut.open()


def the_initial_snapshot() -> None:
    """The controller without it starts no election, votes for another one, and learns the voters
    from the leader."""
    loop = SimLoop()
    asyncio.set_event_loop(loop)
    try:
        cluster = SimCluster(loop, "initial", Shape(quorum=Quorum.DYNAMIC, brokers=0))
        first, _, loser = cluster.controllers
        loser.disk.remove(f"{loser.config.metadata_log_dir}/{INITIAL_SNAPSHOT}")
        cluster.start(loser)
        loop.run_for(10)
        assert loser.process is not None
        raft = loser.process.core.raft
        assert (raft.epoch, raft.role) == (0, Role.UNATTACHED), "it starts no election"
        assert not raft.voters_at(0).voters
        cluster.start(first)
        loop.run_for(10)
        assert cluster.active_controllers() == [first], "its vote is one of the two"
        end = loser.process.core.log.end_offset
        assert {each.voter_id for each in raft.voters_at(end).voters} == {1, 2, 3}
        cluster.close()
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def of_partition(file: str, loss: str, *tests: str) -> Loss:
    """Return a check that these tests of the replicas try the loss, and are run.

    `file` names the file, and `loss` is the call that removes it, in the source of each test."""

    def tried() -> None:
        for test in tests:
            module, _, name = test.rpartition(".")
            function = getattr(importlib.import_module(f"tests.unit.{module}"), name)
            source = inspect.getsource(function)
            assert name.startswith("test_") and file in source and loss in source, test
            assert "assert " in source or "pytest.raises" in source, test
            marks = {each.name for each in getattr(function, "pytestmark", ())}
            assert not marks & {"skip", "skipif", "xfail", "long"}, test

    return tried


DAMAGE, RESTARTS = "replication.test_damage", "replication.test_restarts"
LOST_HINTS = (
    "disk.remove(",
    f"{RESTARTS}.test_checkpoints_that_are_lost_are_only_lost_hints",
)
INITIAL = snapshot_name(EpochOffset(0, 0))
LOSSES: dict[str, Loss] = {
    META_FILE: one_identity(META_FILE),
    META_COPY: one_identity(META_COPY),
    f"{META_FILE}` and `{META_COPY}": both_identities,
    MARK_NAME: the_mark,
    LOCK_FILE: the_lock,
    BOOTSTRAP_FILE: bootstrap_checkpoint,
    checkpoints.CLEAN_SHUTDOWN_NAME: of_partition(
        "previous_broker_epoch == -1", "cluster.kill(1)", f"{RESTARTS}.test_killed_broker_says_so"
    ),
    checkpoints.HIGH_WATERMARKS_NAME: of_partition("HIGH_WATERMARKS_NAME", *LOST_HINTS),
    checkpoints.RECOVERY_POINTS_NAME: of_partition("RECOVERY_POINTS_NAME", *LOST_HINTS),
    checkpoints.START_OFFSETS_NAME: of_partition("START_OFFSETS_NAME", *LOST_HINTS),
    checkpoints.CLEANER_OFFSETS_NAME: of_partition(
        "CLEANER_OFFSETS_NAME",
        "disk.remove(",
        "replication.test_log_cleaner.test_without_its_checkpoint_the_cleaner_begins_at_the_log_start",
    ),
    METADATA_DIRECTORY: the_metadata_directory,
    DECISION_FILE: the_decision,
    REBUILT_DIRECTORY: the_rebuilt_directory,
    "<topic>-<partition>": of_partition(
        "PATH",
        "disk.remove_tree(PATH)",
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
        "logs(disk)[0]",
        "disk.remove(",
        f"{DAMAGE}.test_a_missing_beginning_is_fetched_again",
        f"{DAMAGE}.test_a_missing_beginning_that_nobody_else_has_is_refused",
    ),
    "<offset>.index` of a partition": of_partition(
        '".index"', "after.remove(", "log.test_log.test_a_missing_index_is_built_anew"
    ),
    "<offset>.timeindex` of a partition": of_partition(
        '".timeindex"', "after.remove(", "log.test_log.test_a_missing_index_is_built_anew"
    ),
    "<offset>.txnindex": an_index(".txnindex"),
    "<offset>.snapshot": of_partition(
        ".snapshot",
        "disk.remove(",
        "replication.test_producer_snapshots.test_r59_duplicates_are_recognised_after_restart_and_leader_change",
    ),
    "leader-epoch-checkpoint` of a partition": of_partition(
        "leader-epoch-checkpoint",
        "disk.remove(",
        "log.test_recovery.test_epochs_are_read_from_the_batches_when_their_file_is_gone_or_damaged",
    ),
    GAPS_NAME: of_partition(
        "GAPS_NAME",
        "disk.remove(",
        "log.test_offset_gaps.test_without_the_marker_a_gap_is_damage",
        "log.test_offset_gaps.test_the_checkpoint_of_the_cleaner_takes_the_place_of_a_lost_marker",
    ),
    checkpoints.PARTITION_METADATA_NAME: of_partition(
        "partition.metadata",
        ".truncate(0)",
        f"{RESTARTS}.test_directory_that_lost_its_topic_id_is_nobodys_where_others_have_all",
        f"{RESTARTS}.test_directory_that_lost_its_topic_id_is_kept_where_nobody_else_has_all",
    ),
    f"<file>{names.TEMPORARY_SUFFIX}": losses.a_temporary_file,
    f"<offset>.log{names.CLEANED_SUFFIX}": losses.a_cleaned_file,
    f"<offset>.log{names.SWAP_SUFFIX}": losses.a_swap_file,
    f"<offset>.log{names.DELETED_SUFFIX}": losses.a_deleted_file,
    f"<offset>-<epoch>.checkpoint{names.PART_SUFFIX}": losses.a_part_of_a_snapshot,
    f"<offset>-<epoch>{names.SNAPSHOT_DELETED_SUFFIX}": losses.a_deleted_snapshot,
    f"<file>{names.DAMAGED_SUFFIX}": losses.a_damaged_file,
    f"<topic>-<partition>.<unique>{names.DELETED_DIRECTORY_SUFFIX}": of_partition(
        '"-delete"',
        "disk.remove_tree(",
        f"{RESTARTS}.test_nothing_needs_the_directory_of_a_deleted_partition",
    ),
    f"<topic>-<partition>.<unique>{names.FUTURE_DIRECTORY_SUFFIX}": of_partition(
        "future_directories(",
        "disk.remove_tree(",
        "replication.test_replica_moves.test_a_move_that_lost_its_future_log_is_forgotten",
    ),
    f"<topic>-<partition>.<unique>{names.STRAY_DIRECTORY_SUFFIX}": of_partition(
        '"-stray"',
        "disk.remove_tree(",
        f"{RESTARTS}.test_strays_are_set_aside_not_deleted",
    ),
}
SUFFIXES = {value for name, value in vars(names).items() if name.endswith("_SUFFIX")}


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


@pytest.mark.parametrize("suffix", sorted(SUFFIXES))
def test_every_suffix_that_the_code_gives_has_a_row(suffix: str) -> None:
    assert len(SUFFIXES) >= 15
    assert any(name.partition("`")[0].endswith(suffix) for name in rows())


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
