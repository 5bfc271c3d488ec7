"""`quorum-state` and its copy: Kafka's bytes, the choice between the files, crashes at every call.

R1 and R2 are explained in tests/scenarios.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from quorate.quorum.ids import NO_NODE, ZERO_UUID, ReplicaKey
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.election_file import COPY_NAME, KAFKA_NAME, ElectionFile
from quorate.quorum.raft.errors import ElectionFileError
from quorate.quorum.raft.quorum_state import (
    Damaged,
    SavedElection,
    choose_election,
    decode_copy,
    decode_kafka,
    encode_copy,
    encode_v0,
    encode_v1,
)
from tests.sim.world.disk import PowerCut, SimDisk
from tests.unit.raft.harness import key

FIXTURE = Path(__file__).parents[2] / "fixtures/kafka-4.1.1-metadata/c1/quorum-state"
DIRECTORY = "/data/__cluster_metadata-0"
PINNED = (key(1), key(2), key(3))
DAMAGED = Damaged("it was damaged")


def election(
    epoch: int, voted: int | None = None, leader_id: int = -1, *, pinned: bool = True
) -> Election:
    return Election(
        epoch, None if voted is None else key(voted), leader_id, PINNED if pinned else ()
    )


def disk_with(**contents: bytes) -> SimDisk:
    disk = SimDisk(random.Random(0))
    disk.make_dirs(DIRECTORY)
    for name, content in contents.items():
        write(disk, {"kafka": KAFKA_NAME, "copy": COPY_NAME}[name], content)
    return disk


def write(disk: SimDisk, name: str, content: bytes) -> None:
    file = disk.open(f"{DIRECTORY}/{name}", create=True)
    file.truncate(0)
    file.pwrite(content, 0)
    file.sync()
    disk.sync_dir(DIRECTORY)


def read(disk: SimDisk, name: str) -> bytes:
    file = disk.open(f"{DIRECTORY}/{name}", writable=False)
    return file.pread(file.size(), 0)


def election_file(disk: SimDisk, *, kraft_version: int = 0) -> ElectionFile:
    return ElectionFile(disk, DIRECTORY, (1, 2, 3), kraft_version=kraft_version)


# -- bytes ----------------------------------------------------------------------------------------


def test_kafkas_file_is_read_and_written_alike() -> None:
    content = FIXTURE.read_bytes()
    read_back = decode_kafka(content)
    assert read_back == Election(1, None, 1)
    assert encode_v0(read_back, (1, 2, 3)) == content


def test_version_1_names_the_voted_directory() -> None:
    content = encode_v1(election(7, voted=2))
    assert content == (
        b'{"leaderId":-1,"leaderEpoch":7,"votedId":2,'
        b'"votedDirectoryId":"AQEBAQEBAQEBAQEBAAAAAg","data_version":1}'
    )
    assert decode_kafka(content) == election(7, voted=2, pinned=False)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[1]",
        b"null",
        b"\xff\xfe",
        b'{"leaderId":1,"leaderEpoch":2,"votedId":-1,"data_version":2}',
        b'{"leaderId":1,"leaderEpoch":-2,"votedId":-1,"data_version":1}',
        b'{"leaderId":1,"leaderEpoch":"2","votedId":-1,"data_version":1}',
        b'{"leaderId":1,"leaderEpoch":true,"votedId":-1,"data_version":1}',
        b'{"leaderId":1,"leaderEpoch":2,"votedId":1,"votedDirectoryId":"x","data_version":1}',
        b'{"leaderId":1,"leaderEpoch":2,"data_version":1}',
    ],
)
def test_what_is_not_a_quorum_state_is_damaged(content: bytes) -> None:
    assert isinstance(decode_kafka(content), Damaged)


def test_every_flipped_bit_of_the_copy_is_noticed() -> None:
    content = encode_copy(election(7, voted=2, leader_id=2))
    assert decode_copy(content) == election(7, voted=2, leader_id=2)
    for position in range(len(content)):
        for bit in range(8):
            flipped = bytearray(content)
            flipped[position] ^= 1 << bit
            assert isinstance(decode_copy(bytes(flipped)), Damaged)
    for size in range(len(content)):
        assert isinstance(decode_copy(content[:size]), Damaged)


# -- which is believed ----------------------------------------------------------------------------


def kafka_side(epoch: int, voted: int | None = None, leader_id: int = -1) -> SavedElection:
    """Return the election as version 0 of the file holds it, without directory ids."""
    key_ = None if voted is None else ReplicaKey(voted, ZERO_UUID)
    return Election(epoch, key_, leader_id)


def unsure(epoch: int, voted: int) -> Election:
    """Return an election without a leader, whose vote has no directory id."""
    return Election(epoch, ReplicaKey(voted, ZERO_UUID), NO_NODE, PINNED)


@pytest.mark.parametrize(
    ("kafka", "copy", "believed"),
    [
        (None, None, Election()),
        (kafka_side(3, 2), election(3, 2), election(3, 2)),
        (kafka_side(3, 2, 2), election(3, 2), election(3, 2)),
        (kafka_side(3, None, 2), election(3), unsure(3, 2)),
        (kafka_side(3, 2), election(3, 2, 2), election(3, 2, 2)),
        (kafka_side(3, None, 2), election(3, 1), election(3, 1)),
        (kafka_side(4), election(3, 2), election(4)),
        # The leader may be that of epoch 3, if the 4 is damage (simulation seed 6215).
        (kafka_side(4, None, 2), election(3, None, 2), unsure(4, 2)),
        (kafka_side(4, 1, 2), election(3, 1, 2), unsure(4, 1)),
        (kafka_side(3, 2), election(4, 1), election(4, 1)),
        (kafka_side(3, 2), None, Election(3, ReplicaKey(2, ZERO_UUID))),
        (kafka_side(3, 2), DAMAGED, Election(3, ReplicaKey(2, ZERO_UUID))),
        (None, election(3, 2), election(3, 2)),
        (DAMAGED, election(3, 2), election(3, 2)),
    ],
)
def test_the_newer_or_the_intact_one_is_believed(
    kafka: SavedElection, copy: SavedElection, believed: Election
) -> None:
    assert choose_election(kafka, copy, DIRECTORY) == believed


@pytest.mark.parametrize(
    ("kafka", "copy", "says"),
    [
        (DAMAGED, None, "the vote of this node is lost"),
        (None, DAMAGED, "the vote of this node is lost"),
        (DAMAGED, DAMAGED, "quorum-state: it was damaged; copy: it was damaged"),
        (kafka_side(3, 1), election(3, 2), "another vote in the same epoch"),
        (Election(3, key(2, 9)), election(3, 2), "another vote in the same epoch"),
        (kafka_side(3, None, 1), election(3, None, 2), "another leader in the same epoch: 1 and 2"),
    ],
)
def test_what_cannot_be_known_is_refused_with_a_way_out(
    kafka: SavedElection, copy: SavedElection, says: str
) -> None:
    with pytest.raises(ElectionFileError, match=says) as refused:
        choose_election(kafka, copy, DIRECTORY)
    assert DIRECTORY in str(refused.value)
    assert "move this metadata directory out" in str(refused.value).lower()


def test_a_log_that_has_records_had_an_election() -> None:
    """If both files are missing, the node cannot know that it never voted."""
    with pytest.raises(ElectionFileError, match="quorum-state: missing; copy: missing"):
        election_file(disk_with()).load(has_records=True)
    found = election_file(disk_with(copy=encode_copy(election(3, 2)))).load(has_records=True)
    assert found == election(3, 2)


# -- files ----------------------------------------------------------------------------------------


def test_nothing_is_written_by_a_node_that_never_voted() -> None:
    disk = disk_with()
    assert election_file(disk).load() == Election()
    assert disk.list(DIRECTORY) == []


@pytest.mark.parametrize("kraft_version", [0, 1])
def test_what_is_saved_is_loaded(kraft_version: int) -> None:
    disk = disk_with()
    file = election_file(disk, kraft_version=kraft_version)
    for saved in (election(1), election(1, 2), election(2, 1, 1), election(12, None, 3)):
        file.save(saved)
        calls = disk.calls
        assert file.load() == saved
        assert not any(name.endswith(".tmp") for name in disk.list(DIRECTORY))
        assert disk.calls - calls < 12, "what agrees is not written again"
    version = b'"data_version":%d}' % kraft_version
    assert read(disk, KAFKA_NAME).endswith(version)


def test_a_copy_is_made_when_kafka_wrote_the_file() -> None:
    disk = disk_with(kafka=FIXTURE.read_bytes())
    loaded = election_file(disk).load()
    assert loaded == Election(1, None, 1)
    assert decode_copy(read(disk, COPY_NAME)) == loaded
    assert read(disk, KAFKA_NAME) == FIXTURE.read_bytes()


@pytest.mark.parametrize("name", [KAFKA_NAME, COPY_NAME])
def test_a_damaged_file_is_repaired_from_the_other(name: str) -> None:
    disk = disk_with()
    file = election_file(disk)
    file.save(election(5, 2, 2))
    intact = read(disk, name)
    write(disk, name, intact[:-7])
    loaded = file.load()
    assert (loaded.epoch, loaded.leader_id) == (5, 2)
    assert loaded.voted is not None
    assert loaded.voted.id == 2
    if name == KAFKA_NAME:
        assert loaded == election(5, 2, 2)
        assert read(disk, name) == intact
    assert isinstance(decode_copy(read(disk, COPY_NAME)), Election)


def test_no_flipped_bit_of_kafkas_file_makes_a_leader() -> None:
    """-1 becomes -0, or 1 behind a carriage return. The node followed a leader that nobody had
    elected, and refused the true leader of the epoch."""
    saved = election(3, voted=2)
    for kraft_version in (0, 1):
        content = encode_v1(saved) if kraft_version else encode_v0(saved, [1, 2, 3])
        for bit in range(8 * len(content)):
            flipped = bytearray(content)
            flipped[bit // 8] ^= 1 << bit % 8
            try:
                believed = choose_election(decode_kafka(bytes(flipped)), saved, "/d")
            except ElectionFileError:
                continue
            assert believed.leader_id == -1 and believed.epoch >= 3, flipped
            assert believed.epoch > 3 or believed.voted == saved.voted, flipped


def test_a_crash_at_any_moment_leaves_the_old_or_the_new_election() -> None:
    """R2, hashicorp/raft #661, willemt/raft #47: the term and the vote were two writes."""
    old, new = election(4, 2), election(5, 1, 1)
    outcomes = set()
    for seed in range(40):
        for die_at in range(1, 25):
            disk = SimDisk(random.Random(seed * 100 + die_at))
            disk.make_dirs(DIRECTORY)
            election_file(disk).save(old)
            disk.die_at = disk.calls + die_at
            try:
                election_file(disk).save(new)
            except PowerCut:
                after = election_file(disk.crash()).load()
                assert after in (old, new)
            else:
                disk.die_at = None
                after = election_file(disk.crash()).load()
                assert after == new
            outcomes.add(after)
    assert outcomes == {old, new}
