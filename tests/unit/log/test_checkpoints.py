"""The small files in Kafka's formats."""

from __future__ import annotations

import random

import pytest

from quorate.quorum.ids import METADATA_TOPIC_ID, EpochOffset
from quorate.quorum.log.files import checkpoints
from quorate.quorum.log.files.errors import CorruptCheckpoint
from quorate.quorum.log.files.flushed_marker import FlushedMarker
from quorate.quorum.log.files.names import (
    PartitionName,
    deleted_directory_name,
    is_deleted_directory,
    offset_of,
    partition_of,
)
from tests.sim.world.disk import PowerCut, SimDisk


def new_disk(seed: int = 0) -> SimDisk:
    disk = SimDisk(random.Random(seed))
    disk.make_dirs("/d")
    return disk


def put(disk: SimDisk, path: str, content: bytes) -> None:
    disk.open(path, create=True).pwrite(content, 0)


def test_leader_epochs_as_kafka_writes_them() -> None:
    content = checkpoints.encode_epochs([EpochOffset(1, 0), EpochOffset(4, 17)])
    assert content == b"0\n2\n1 0\n4 17\n"
    disk = new_disk()
    put(disk, "/d/leader-epoch-checkpoint", b"0\n1\n1 0\n")
    assert checkpoints.read_epochs(disk, "/d") == [EpochOffset(1, 0)]


@pytest.mark.parametrize(
    "content",
    [b"", b"1\n0\n", b"0\n", b"0\n2\n1 0\n", b"0\n1\n1 x\n", b"0\n2\n2 0\n1 5\n", b"\xff\xfe"],
)
def test_damaged_leader_epochs_count_as_missing(content: bytes) -> None:
    disk = new_disk()
    put(disk, "/d/leader-epoch-checkpoint", content)
    assert checkpoints.read_epochs(disk, "/d") is None


def test_offset_checkpoints_as_kafka_writes_them() -> None:
    disk = new_disk()
    offsets = {PartitionName("b", 1): 7, PartitionName("a", 10): 3, PartitionName("a", 9): 0}
    checkpoints.write_offsets(disk, "/d", checkpoints.HIGH_WATERMARKS_NAME, offsets)
    assert disk.content("/d/replication-offset-checkpoint") == b"0\n3\na 9 0\na 10 3\nb 1 7\n"
    assert checkpoints.read_offsets(disk, "/d", checkpoints.HIGH_WATERMARKS_NAME) == offsets
    assert checkpoints.read_offsets(disk, "/d", checkpoints.RECOVERY_POINTS_NAME) == {}


def test_a_damaged_offset_checkpoint_names_file_and_line() -> None:
    disk = new_disk()
    put(disk, f"/d/{checkpoints.RECOVERY_POINTS_NAME}", b"0\n2\na 1 5\na one 5\n")
    with pytest.raises(
        CorruptCheckpoint, match=r"/d/recovery-point-offset-checkpoint:4: 'a one 5'"
    ):
        checkpoints.read_offsets(disk, "/d", checkpoints.RECOVERY_POINTS_NAME)


def test_partition_metadata_as_kafka_writes_it() -> None:
    disk = new_disk()
    checkpoints.write_partition_metadata(disk, "/d", METADATA_TOPIC_ID)
    content = disk.content("/d/partition.metadata")
    assert content == b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
    assert checkpoints.read_partition_metadata(disk, "/d") == METADATA_TOPIC_ID
    put(disk, "/d/partition.metadata", b"version: 0\ntopic_id: ?")
    with pytest.raises(CorruptCheckpoint):
        checkpoints.read_partition_metadata(disk, "/d")


def test_partition_metadata_with_any_bit_flipped_is_told_or_names_another_topic() -> None:
    """Earlier a UnicodeDecodeError named neither the file nor the repair."""
    disk = new_disk()
    checkpoints.write_partition_metadata(disk, "/d", METADATA_TOPIC_ID)
    content = disk.content("/d/partition.metadata")
    for bit in range(8 * len(content)):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        put(disk, "/d/partition.metadata", bytes(damaged))
        try:
            found = checkpoints.read_partition_metadata(disk, "/d")
        except CorruptCheckpoint as error:
            assert error.path == "/d/partition.metadata"
        else:
            unused_bits_or_line_end = bit // 8 in (10, len(content) - 1)
            assert found != METADATA_TOPIC_ID or unused_bits_or_line_end, damaged


def test_partition_metadata_that_is_cut_off_names_no_topic() -> None:
    """The disk was full, or the power failed (seed 2062). Nothing shows that the topic differs."""
    disk = new_disk()
    checkpoints.write_partition_metadata(disk, "/d", METADATA_TOPIC_ID)
    content = disk.content("/d/partition.metadata")
    for length in range(len(content)):
        cut = new_disk()
        put(cut, "/d/partition.metadata", content[:length])
        assert checkpoints.read_partition_metadata(cut, "/d") is None, content[:length]


def test_partition_metadata_that_a_crash_took_is_missing() -> None:
    found = set()
    for seed in range(50):
        disk = new_disk(seed)
        checkpoints.write_partition_metadata(disk, "/d", METADATA_TOPIC_ID)
        found.add(checkpoints.read_partition_metadata(disk.crash(), "/d"))
    assert found == {None, METADATA_TOPIC_ID}


def test_a_clean_shutdown_is_believed_once() -> None:
    disk = new_disk()
    assert checkpoints.take_clean_shutdown(disk, "/d") is None
    checkpoints.write_clean_shutdown(disk, "/d", 42)
    assert disk.content("/d/.kafka_cleanshutdown") == b'{"version":0,"brokerEpoch":42}'
    disk = disk.crash()
    assert checkpoints.take_clean_shutdown(disk, "/d") == 42
    assert checkpoints.take_clean_shutdown(disk.crash(), "/d") is None


def test_a_clean_shutdown_of_an_older_kafka_tells_no_epoch() -> None:
    disk = new_disk()
    put(disk, "/d/.kafka_cleanshutdown", b"")
    assert checkpoints.take_clean_shutdown(disk, "/d") == -1


@pytest.mark.parametrize("content", [bytes(31), b'{"version":0}', b'{"version":0,"brokerEpo\x00'])
def test_a_damaged_clean_shutdown_file_is_none(content: bytes) -> None:
    """The fault that damaged this file may have damaged the logs too."""
    disk = new_disk()
    put(disk, "/d/.kafka_cleanshutdown", content)
    assert checkpoints.take_clean_shutdown(disk, "/d") is None
    assert not disk.exists("/d/.kafka_cleanshutdown")


def test_replacing_a_file_is_all_or_nothing_at_every_call() -> None:
    """R44, etcd #6368: a rename without a sync of the directory."""
    for die_at in range(1, 20):
        for seed in range(10):
            disk = new_disk(seed)
            checkpoints.replace(disk, "/d/f", b"old " * 300)
            disk.die_at = disk.calls + die_at
            done = True
            try:
                checkpoints.replace(disk, "/d/f", b"new " * 400)
            except PowerCut:
                done = False
            found = disk.crash().content("/d/f")
            assert found == b"new " * 400 or (not done and found == b"old " * 300)


def test_the_marker_survives_the_process_and_never_promises_too_much() -> None:
    for seed in range(30):
        disk = new_disk(seed)
        marker = FlushedMarker(disk, "/d")
        marker.raise_to(7)
        marker.raise_to(9)
        assert FlushedMarker(disk.restart(), "/d").offset == 9
        disk = new_disk(seed)
        marker = FlushedMarker(disk, "/d")
        marker.raise_to(9)
        marker.lower_to(4)
        assert FlushedMarker(disk.crash(), "/d").offset in (0, 4)


def test_a_damaged_marker_promises_nothing() -> None:
    disk = new_disk()
    FlushedMarker(disk, "/d").raise_to(123)
    for position in range(len(disk.content("/d/quorate-flushed-offset"))):
        disk.flip("/d/quorate-flushed-offset", position)
        assert FlushedMarker(disk, "/d").offset == 0
        disk.flip("/d/quorate-flushed-offset", position)


def test_names() -> None:
    assert offset_of("00000000000000000042.log") == 42
    assert offset_of("leader-epoch-checkpoint") is None
    assert partition_of("my-topic-12") == PartitionName("my-topic", 12)
    for name in ("topic", "-1", "topic-x", "topic-1.0123-delete"):
        assert partition_of(name) is None
    long = deleted_directory_name(PartitionName("t" * 249, 3), "f" * 32)
    assert len(long) == 255
    assert long.endswith("t-3." + "f" * 32 + "-delete")
    assert is_deleted_directory(long)
    assert not is_deleted_directory("to-delete")


def test_what_a_crash_left_beside_a_file_is_not_mixed_into_it() -> None:
    disk = new_disk()
    put(disk, "/d/file.tmp", b"longer than what follows")
    checkpoints.replace(disk, "/d/file", b"new")
    assert disk.content("/d/file") == b"new"
