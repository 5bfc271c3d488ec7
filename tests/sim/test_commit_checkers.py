"""The checks of commits, of controllers that are cut off, and of lost directories find the faults
for which they exist. Each test makes one thing wrong on a healthy cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from random import Random
from typing import Any
from unittest import mock

import pytest

from quorate.quorum.ids import ReplicaKey, random_uuid
from quorate.quorum.raft.effects import Role
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.raft import Raft
from tests.sim.checks.commits import Commits
from tests.sim.checks.invariants import UNCONFIGURED
from tests.sim.checks.persisted_votes import PersistedVotes
from tests.sim.checks.watermarks import Watermarks
from tests.sim.faults import silence as silence_of_controllers
from tests.sim.faults.cut_off import QUIET_S, RESIGNS_S, CutOff
from tests.sim.faults.silence import Silence
from tests.sim.run import PLACES, Simulation, play, simulation
from tests.sim.scripts.staging import settled, writes_some
from tests.sim.test_checkers import ALL_OF_IT, changed, followers, led, log_files, running
from tests.sim.world.shape import Quorum, Shape

WHOLE_LOG = 1 << 20


@pytest.fixture
def stage() -> Iterator[Simulation]:
    async def some_data(stage: Simulation) -> None:
        await settled(stage)
        await writes_some(stage, stage.producer("p1", PLACES), PLACES)

    with simulation("commits", Shape()) as stage:
        play(stage, some_data(stage))
        yield stage


def fault_of(stage: Simulation, commits: Commits, *, leader: str, known: object) -> str:
    """Return the message of the check if the active controller considers its whole log
    committed."""
    process = running(stage.active())
    end = process.core.log.end_offset
    data = process.core.log.read(0, WHOLE_LOG, end=end)
    found: Any = known
    return commits.committed(stage.active(), process, data, found, end, leader)


def test_a_node_that_commits_before_a_leader(stage: Simulation) -> None:
    known = stage.invariants.metadata.batches
    commits, name = Commits(), followers(stage)[0].name
    assert fault_of(stage, commits, leader=name, known=known) == ""
    assert commits.checks["committed by a leader first"] == 1
    assert "no leader has committed it" in fault_of(stage, commits, leader=name, known={})


def test_a_leader_that_commits_through_a_record_of_another_epoch(stage: Simulation) -> None:
    commits, name = Commits(), stage.active().name
    epoch = running(stage.active()).core.replica.raft.epoch
    assert fault_of(stage, commits, leader=name, known={}) == ""
    assert commits.checks["committed through the leader's own epoch"] == 1
    with mock.patch.object(Raft, "epoch", epoch + 1):
        assert "without a record of its own" in fault_of(stage, commits, leader=name, known={})


def test_a_leader_that_changes_the_voters_before_its_first_commit(stage: Simulation) -> None:
    core: Any = running(stage.active()).core.replica.raft._core
    name = stage.active().name
    with changed(core.state, "epoch_start_offset", 1):
        assert fault_of(stage, Commits(), leader=name, known={}) == ""
        with mock.patch.object(type(core.history), "latest_offset", 3):
            problem = fault_of(stage, Commits(), leader=name, known={})
    assert "the voters change at 3, before a commit" in problem


def test_a_record_that_counts_as_durable_and_is_not(stage: Simulation) -> None:
    machine, commits = stage.active(), Commits()
    assert commits.look(machine) == "" and commits.checks["durable records"] == 1
    path = log_files(machine, running(machine).core.log.directory)[-1]
    inode = machine.disk.inode(path)
    file = machine.disk.open(path)
    last = file.pread(1, len(inode.data) - 1)
    file.pwrite(bytes((last[0] ^ 1,)), len(inode.data) - 1)  # and no sync
    assert "counts as durable" in commits.look(machine)
    inode.remember()
    assert commits.look(machine) == ""  # a disk that failed proves nothing


def cut_off(stage: Simulation, name: str) -> None:
    for other in stage.cluster.machines:
        if other != name:
            stage.cluster.network.block(name, other)
            stage.cluster.network.block(other, name)


@pytest.mark.parametrize("leads", [True, False])
def test_a_controller_that_is_cut_off(stage: Simulation, leads: bool) -> None:
    """A controller that is cut off keeps its epoch and resigns. The check finds one that does
    not."""

    async def script() -> None:
        machine = stage.active() if leads else followers(stage)[0]
        process = running(machine)
        check, blind = CutOff(stage.cluster), CutOff(stage.cluster)
        cut_off(stage, machine.name)
        blind.look(machine, process)
        end_s = stage.loop.time() + RESIGNS_S + 0.3
        while stage.loop.time() < end_s:
            assert check.look(machine, process) == ""
            await asyncio.sleep(0.01)
        assert check.checks["epoch of a node that is cut off"] == 1
        epoch = process.core.replica.raft.epoch
        with mock.patch.object(Raft, "epoch", epoch + 2):
            assert f"enters epoch {epoch + 2}" in check.look(machine, process)
        if leads:
            with mock.patch.object(Raft, "role", Role.LEADER):
                assert "leads epoch" in check.look(machine, process)
        assert blind.look(machine, process) == ""  # the first look after QUIET_S sets the epoch
        assert stage.loop.time() > QUIET_S

    play(stage, script())


def test_the_vote_of_a_replica_with_another_directory() -> None:
    """The voters other than the leader have lost their directories. Their votes count if they were
    seen on the disks before."""

    async def script(stage: Simulation) -> None:
        await settled(stage)
        active, epoch = stage.active(), running(stage.active()).core.replica.raft.epoch
        seen, unseen = PersistedVotes(stage.cluster), PersistedVotes(stage.cluster)
        for machine in followers(stage):
            seen.look(machine)
            machine.key = ReplicaKey(machine.id, random_uuid(Random(machine.id)))
        assert seen.elected(active, running(active), epoch) == ""
        assert "with the saved votes of" in unseen.elected(active, running(active), epoch)

    with simulation("other directories", Shape(quorum=Quorum.DYNAMIC)) as stage:
        play(stage, script(stage))


def test_a_high_watermark_above_the_records_of_too_few_replicas(stage: Simulation) -> None:
    machine, hosted = led(stage)
    least = dict.fromkeys(UNCONFIGURED, 2)
    watermarks = Watermarks(stage.cluster, lambda machine, key: False, least)
    assert watermarks.moved(machine, hosted) == ""
    assert watermarks.checks["high watermark and min ISR"] == 1
    with changed(hosted.partition, "high_watermark", ALL_OF_IT):
        assert "ever had the records" in watermarks.moved(machine, hosted)
    unknown = Watermarks(stage.cluster, lambda machine, key: False)
    with changed(hosted.partition, "high_watermark", ALL_OF_IT):
        assert unknown.moved(machine, hosted) == ""


def test_a_vote_of_a_controller_that_lost_its_records(stage: Simulation) -> None:
    """The vote counts as a fault until the log is as long as the committed records before the
    loss."""
    machine = followers(stage)[0]
    other = stage.active().key
    silence = Silence(lambda: stage.invariants.metadata.end.offset)
    stage.cluster.kill(machine)
    silence.losing(machine)
    loss = silence._losses[machine.name]
    assert loss.epoch > 0 < loss.acknowledged == stage.invariants.metadata.end.offset
    stage.cluster.lose_metadata(machine)
    stage.invariants.silence._losses.clear()
    stage.cluster.start(machine)
    assert silence.look(machine) == ""
    vote = Election(loss.epoch + 1, other)
    with mock.patch.object(silence_of_controllers, "durable_election", lambda machine: vote):
        assert "and it voted for" in silence.look(machine)

        async def caught_up() -> None:
            await stage.until(lambda: silence.look(machine) == "", "caught up", 5)

        play(stage, caught_up())
    assert silence.checks["votes of controllers that lost their records"] > 1
    assert silence._losses == {}
