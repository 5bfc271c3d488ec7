"""The generation of a quorum: its file, and the nodes that follow into a later generation."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from quorate.quorum.ids import NO_NODE, EpochOffset, Uuid
from quorate.quorum.raft.effects import Role
from quorate.quorum.raft.errors import GenerationFileError
from quorate.quorum.raft.generation import (
    FILE_NAME,
    GenerationFile,
    LocalQuorumState,
    Rebuild,
    why_not_follow,
)
from tests.sim.world.disk import PowerCut, SimDisk
from tests.unit.raft.harness import RaftCluster

FIRST = Rebuild(id=Uuid(bytes(15) + b"\1"), epoch=5, offset=100)
SECOND = Rebuild(id=Uuid(bytes(15) + b"\2"), epoch=1006, offset=250)
OTHER = replace(FIRST, id=Uuid(bytes(15) + b"\3"))
BROKER = LocalQuorumState(
    rebuilds=(),
    end=EpochOffset(5, 90),
    is_controller=False,
    voted=False,
    leader_id=NO_NODE,
    directory="/d/__cluster_metadata-0",
)
CONTROLLER = replace(BROKER, is_controller=True)


@pytest.mark.parametrize(
    ("standing", "theirs", "reason"),
    [
        (BROKER, (FIRST,), ""),
        (replace(BROKER, end=FIRST.end), (FIRST,), ""),
        (replace(BROKER, end=EpochOffset(0, 0)), (FIRST,), ""),
        (replace(BROKER, end=EpochOffset(4, 100)), (FIRST,), ""),
        (replace(BROKER, end=EpochOffset(4, 101)), (FIRST,), "committed metadata up to offset 101"),
        (replace(BROKER, end=EpochOffset(5, 101)), (FIRST,), "committed metadata up to offset 101"),
        (replace(BROKER, end=EpochOffset(6, 95)), (FIRST,), "run force-voters again"),
        (replace(BROKER, leader_id=2), (FIRST,), "leader 2 of its own quorum, which lives"),
        (CONTROLLER, (FIRST,), "Format its metadata directory"),
        (replace(CONTROLLER, end=EpochOffset(0, 0)), (FIRST,), ""),
        (
            replace(CONTROLLER, end=EpochOffset(0, 0), voted=True),
            (FIRST,),
            "Format its metadata directory",
        ),
        (replace(BROKER, end=EpochOffset(5, 200)), (FIRST, SECOND), "ends at offset 100"),
        (
            replace(BROKER, rebuilds=(FIRST,), end=EpochOffset(1006, 250)),
            (FIRST, SECOND),
            "",
        ),
        (replace(BROKER, rebuilds=(OTHER,)), (FIRST, SECOND), "apart from each other"),
    ],
)
def test_the_rule_for_following_into_a_later_generation(
    standing: LocalQuorumState, theirs: tuple[Rebuild, ...], reason: str
) -> None:
    found = why_not_follow(standing, theirs)
    assert reason in found and bool(reason) == bool(found)


def test_the_file_says_all_rebuilds_and_survives_a_power_cut_at_every_call() -> None:
    died = 0
    for die_at in range(1, 12):
        disk = SimDisk(random.Random(die_at))
        disk.make_dirs("/d")
        GenerationFile(disk, "/d").save((FIRST,))
        disk.die_at = disk.calls + die_at
        try:
            GenerationFile(disk, "/d").save((FIRST, SECOND))
        except PowerCut:
            died += 1
            assert GenerationFile(disk.crash(), "/d").load() in ((FIRST,), (FIRST, SECOND))
        else:
            assert GenerationFile(disk.crash(), "/d").load() == (FIRST, SECOND)
    assert died > 4


def test_no_file_is_the_first_generation_and_a_damaged_one_is_refused() -> None:
    disk = SimDisk(random.Random(0))
    disk.make_dirs("/d")
    file = GenerationFile(disk, "/d")
    assert file.load() == ()
    file.save((FIRST,))
    disk.flip(f"/d/{FILE_NAME}", 20)
    with pytest.raises(GenerationFileError, match="its checksum does not match"):
        file.load()


def test_a_quorum_without_a_leader_does_not_come_back_once_its_successor_was_met() -> None:
    cluster = RaftCluster()
    cluster.isolate(1)
    for voter in (2, 3):
        cluster.core(voter).superseded()
    cluster.run(20_000)
    assert not leaders(cluster)
    cluster.heal()
    cluster.core(1).superseded()
    cluster.run(20_000)
    assert not leaders(cluster)
    for voter in (2, 3):  # an operator undoes the rebuild: restart the old voters
        cluster.crash(voter)
        cluster.start(voter)
    cluster.run(20_000)
    assert len(leaders(cluster)) == 1


def test_a_quorum_that_lives_lives_on_when_it_meets_its_successor() -> None:
    cluster = RaftCluster()
    cluster.elect(1)
    cluster.run(600)
    for voter in (1, 2, 3):
        cluster.core(voter).superseded()
    cluster.run(20_000)
    assert leaders(cluster) == [1]
    cluster.crash(1)
    cluster.run(20_000)
    assert len(leaders(cluster)) == 1


def leaders(cluster: RaftCluster) -> list[int]:
    return [each for each in cluster.up() if cluster.role(each) is Role.LEADER]
