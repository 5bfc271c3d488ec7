"""A controller's mark shows the loss of its metadata directory, at a start and to an operator."""

from __future__ import annotations

import errno
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.config.node_config import NodeConfig
from quorate.quorum.ids import ReplicaKey, Uuid
from quorate.quorum.log.files.errors import OutOfFiles
from quorate.quorum.log.files.flushed_marker import FLUSHED_MARKER_NAME
from quorate.quorum.node.opening.meta_properties import META_COPY
from quorate.quorum.node.opening.metadata_opening import (
    OpenedMetadata,
    adopt,
    declare_lost,
    declare_new,
    open_metadata,
)
from quorate.quorum.node.replica.metadata_mark import (
    CATCHING_UP_NAME,
    MARK_NAME,
    DirectoryContents,
    Mark,
    MarkFile,
    decode,
    encode,
    read_mark,
    settled,
    why_lost,
    write_mark,
)
from quorate.quorum.offline.storage_format import format_directory
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.election_file import COPY_NAME, KAFKA_NAME
from tests.sim.world.disk import PowerCut, SimDisk
from tests.sim.world.shape import Shape, node_config
from tests.unit.node.metadata_disk import config_batch

ROOT = "/data"
METADATA = f"{ROOT}/__cluster_metadata-0"
ME = ReplicaKey(1, Uuid(b"d" * 16))
OTHER = ReplicaKey(1, Uuid(b"e" * 16))
MARK = Mark(directory_id=ME.directory_id)
EMPTY = DirectoryContents(election=Election(), is_empty=True)
USED = DirectoryContents(election=Election(5), is_empty=False)


def config_of(role: str) -> NodeConfig:
    return node_config(1 if role == "controller" else 11, role, Shape(overrides={"log.dirs": ROOT}))


def used(**changes: object) -> Mark:
    return Mark(directory_id=ME.directory_id, epoch=5, has_records=True, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("mark", "found", "says"),
    [
        (MARK, EMPTY, ""),
        (MARK, USED, ""),
        (None, USED, ""),
        (None, EMPTY, "no quorate-metadata-mark says that this disk is new"),
        (None, DirectoryContents(election=Election(1), is_empty=True), ""),
        (used(), USED, ""),
        (used(), EMPTY, "lost all records"),
        (used(), DirectoryContents(election=Election(5), is_empty=True), "lost all records"),
        (
            used(),
            DirectoryContents(election=Election(4), is_empty=False),
            "took part in epoch 5, not only 4",
        ),
        (Mark(directory_id=ME.directory_id, epoch=5), EMPTY, "lost this node's vote"),
        (used(catching_up=True), USED, "was being restored"),
        (
            used(),
            DirectoryContents(election=Election(5), is_empty=False, has_flag=True),
            "was being restored",
        ),
        (
            None,
            DirectoryContents(election=Election(5), is_empty=False, has_flag=True),
            "was being restored",
        ),
        (
            used(),
            DirectoryContents(election=Election(5), is_empty=False, was_cut=True),
            "the marker",
        ),
        (MARK, DirectoryContents(election=Election(5), is_empty=False, was_cut=True), ""),
    ],
)
def test_what_is_lost(mark: Mark | None, found: DirectoryContents, says: str) -> None:
    said = why_lost(mark, found)
    assert says in said and bool(says) == bool(said)
    settled_mark, election = settled(mark, found, ME)
    assert settled_mark.catching_up == bool(says)
    assert election.epoch == settled_mark.epoch >= found.election.epoch
    if mark is not None and mark.epoch > found.election.epoch:
        assert election.voted == ME, "it votes for no other in that epoch"


@given(st.builds(Mark, directory_id=st.just(ME.directory_id), epoch=st.integers(0, 2**31 - 1)))
def test_a_mark_is_read_back(mark: Mark) -> None:
    assert decode(encode(mark)) == mark


@given(st.binary(max_size=300))
def test_any_bytes_are_a_mark_or_none(content: bytes) -> None:
    assert decode(content) is None


def test_a_mark_that_is_damaged_or_too_large_is_none() -> None:
    disk = new_disk()
    for content in (encode(MARK)[:-3], b"", b"x" * 5000, encode(MARK).replace(b"false", b"true ")):
        file = disk.open(f"{ROOT}/{MARK_NAME}", create=True)
        file.truncate(0)
        file.pwrite(content, 0)
        assert read_mark(disk, ROOT) is None


# -- starts ----------------------------------------------------------------------------------------


def new_disk(seed: int = 0) -> SimDisk:
    disk = SimDisk(random.Random(seed))
    disk.make_dirs(ROOT)
    return disk


def formatted(me: ReplicaKey = ME, disk: SimDisk | None = None) -> SimDisk:
    disk = disk or new_disk()
    config = config_of("controller")
    format_directory(disk, config, cluster_id="c" * 22, directory_id=me.directory_id, wall_ms=0)
    return disk


def start(disk: SimDisk, me: ReplicaKey = ME, role: str = "controller") -> OpenedMetadata:
    config = config_of(role)
    adopt(disk, config, me.directory_id)
    return open_metadata(disk, config, me, 0)


def lived(disk: SimDisk | None = None) -> SimDisk:
    """Return the disk of a controller that took part in epoch 3 and has four records."""
    disk = disk or formatted()
    opened = start(disk)
    assert not opened.lost
    opened.election_file.save(Election(3, ME))
    for offset in range(4):
        opened.storage.log.append(config_batch(offset, 3), wall_ms=0)
    opened.storage.log.flush()
    assert opened.mark is not None
    opened.mark.flushed()
    opened.storage.close()
    return disk


def test_a_first_start_and_a_second_one_lost_nothing() -> None:
    disk = lived()
    assert read_mark(disk, ROOT) == Mark(
        directory_id=ME.directory_id, epoch=3, has_records=True, catching_up=False
    )
    opened = start(disk)
    assert not opened.lost and opened.election.voted == ME


def test_a_first_start_that_was_interrupted_is_a_first_start_again() -> None:
    disk = formatted()
    start(disk).storage.close()
    assert not start(disk).lost
    opened = start(disk)
    opened.election_file.save(Election(1, ME))
    opened.storage.close()
    assert not start(disk).lost, "it voted, and there is no record yet"


def test_the_loss_of_the_metadata_directory() -> None:
    disk = lived()
    disk.remove_tree(METADATA)
    for _ in range(3):  # it stays restricted
        opened = start(disk)
        assert "lost all records" in opened.lost or "restored" in opened.lost
        assert "storage declare --new" in opened.lost
        assert opened.election == Election(3, ME)
        opened.storage.close()
    for name, directory in ((MARK_NAME, ROOT), (CATCHING_UP_NAME, METADATA)):
        copy = start(disk)
        copy.storage.log.append(config_batch(0, 3), wall_ms=0)
        copy.election_file.save(Election(3))
        copy.storage.close()
        disk.remove(f"{directory}/{name}")
        assert start(disk).lost, f"without {name} it is restricted, too"
        disk.remove_tree(METADATA)


def test_segments_and_their_marker_are_lost() -> None:
    disk = lived()
    for name in disk.list(METADATA):
        if name not in (KAFKA_NAME, COPY_NAME):
            disk.remove(f"{METADATA}/{name}")
    assert "lost all records" in start(disk).lost


def test_a_torn_end_without_the_marker_of_what_was_flushed() -> None:
    for remove in (False, True):
        disk = lived()
        path = f"{METADATA}/{0:020}.log"
        size = len(disk.content(path))
        file = disk.open(path)
        file.pwrite(bytes(40), size)
        if remove:
            disk.remove(f"{METADATA}/{FLUSHED_MARKER_NAME}")
        assert bool(start(disk).lost) == remove


def test_a_power_cut_that_tears_the_end_takes_no_vote_away() -> None:
    """Otherwise a failure of the power of all controllers could leave a quorum without a leader."""
    disk = formatted()
    opened = start(disk)
    opened.election_file.save(Election(3, ME))
    opened.storage.log.append(config_batch(0, 3), wall_ms=0)
    opened.storage.log.flush()
    assert opened.mark is not None
    opened.mark.flushed()
    path = f"{METADATA}/{0:020}.log"
    file = disk.open(path)
    file.pwrite(bytes(40), len(disk.content(path)))  # the beginning of a batch that had no room
    file.sync()
    disk = disk.crash(forgetful=True)
    opened = start(disk)
    assert opened.storage.log.recovery.cut_at_offset == 1
    assert not opened.lost


def test_catching_up_ends() -> None:
    disk = lived()
    disk.remove_tree(METADATA)
    opened = start(disk)
    assert opened.mark is not None
    opened.storage.log.append(config_batch(0, 3), wall_ms=0)
    opened.election_file.save(Election(3, None, 2))
    opened.mark.caught_up()
    opened.storage.close()
    assert not disk.exists(f"{METADATA}/{CATCHING_UP_NAME}")
    assert not start(disk).lost


def test_catching_up_ends_durably_although_a_descriptor_was_missing() -> None:
    """The second try found no file, and did not sync its removal."""
    disk = lived()
    mark = used(catching_up=True)
    write_mark(disk, ROOT, mark)
    file = MarkFile(disk, ROOT, METADATA, mark)
    file.begin_catching_up()
    synced: list[str] = []

    def before(operation: str, path: str) -> None:
        if operation == "sync_dir" and path == METADATA:
            synced.append(path)
            if len(synced) == 1:
                raise OutOfFiles(errno.EMFILE, "Too many open files", path)

    disk.before = before
    with pytest.raises(OutOfFiles):
        file.caught_up()
    file.caught_up()
    assert len(synced) == 2 and not disk.exists(f"{METADATA}/{CATCHING_UP_NAME}")


def test_a_crash_while_catching_up_ends_leaves_it_restricted_or_whole() -> None:
    for die_after in range(1, 12):
        disk = formatted(disk=new_disk(die_after))
        lived(disk)
        mark = used(catching_up=True)
        write_mark(disk, ROOT, mark)
        file = MarkFile(disk, ROOT, METADATA, mark)
        file.begin_catching_up()
        disk.die_at = disk.calls + die_after
        try:
            file.caught_up()
            done = True
        except PowerCut:
            done = False
        disk = disk.crash()
        found = read_mark(disk, ROOT)
        assert found is not None
        restricted = found.catching_up or disk.exists(f"{METADATA}/{CATCHING_UP_NAME}")
        assert restricted or not found.catching_up
        assert not (done and restricted)


def test_a_directory_of_an_older_version_gets_a_mark() -> None:
    disk = lived()
    disk.remove(f"{ROOT}/{MARK_NAME}")
    assert not start(disk).lost
    assert read_mark(disk, ROOT) == used_in(3)


def used_in(epoch: int) -> Mark:
    return Mark(directory_id=ME.directory_id, epoch=epoch, has_records=True)


def test_without_mark_and_metadata_nothing_says_that_it_is_new() -> None:
    disk = formatted()
    disk.remove(f"{ROOT}/{MARK_NAME}")
    assert "says that this disk is new" in start(disk).lost


def test_a_directory_that_apache_kafka_formatted_is_new() -> None:
    disk = formatted()
    disk.remove(f"{ROOT}/{MARK_NAME}")
    disk.remove(f"{ROOT}/{META_COPY}")
    assert not start(disk).lost


def test_a_new_directory_id_declares_the_disk_a_new_one() -> None:
    disk = lived()
    disk.remove_tree(METADATA)
    start(disk).storage.close()
    opened = start(disk, OTHER)
    assert not opened.lost and opened.election == Election()
    mark = read_mark(disk, ROOT)
    assert mark is not None and mark.directory_id == OTHER.directory_id


def test_an_operator_declares_it_new() -> None:
    disk = lived()
    disk.remove_tree(METADATA)
    start(disk).storage.close()
    declare_new(disk, config_of("controller"), ME)
    opened = start(disk)
    assert not opened.lost
    assert opened.election == Election(3, ME), "in epoch 3 it votes for no other"


def test_an_operator_declares_it_lost() -> None:
    disk = lived()
    declare_lost(disk, config_of("controller"), ME)
    assert "was being restored" in start(disk).lost


def test_a_broker_has_no_mark() -> None:
    disk = new_disk()
    config = config_of("broker")
    format_directory(disk, config, cluster_id="c" * 22, directory_id=ME.directory_id, wall_ms=0)
    opened = start(disk, role="broker")
    assert opened.mark is None and not opened.lost
    assert not disk.exists(f"{ROOT}/{MARK_NAME}")
