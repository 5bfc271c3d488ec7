"""Every check of the simulation finds the fault for which it exists.

Each test makes one thing wrong on a healthy cluster, or in a history, and the check must report it.
Before, the same call succeeds. `rulings.py`, `committed_log.py`, `linearizability.py` and
`quorum_history.py` have tests of their own, and test_invariants.py has the test of `durable.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from quorate.broker.replication.partitions.hosted_partition import HostedPartition
from quorate.quorum.ids import METADATA_TOPIC
from quorate.quorum.log.batches.batch import CRC_FROM
from quorate.quorum.metadata.delta import Change
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.raft.effects import Role, RoleChanged
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.quorum_state import COPY_NAME, encode_copy
from tests.sim.campaign import ALL_FAULTS, Tally
from tests.sim.checks.admin_history import AdminHistory, created, deleted
from tests.sim.checks.follower_progress import FollowerProgress
from tests.sim.checks.invariants import Violation
from tests.sim.checks.log_matching import LogMatching
from tests.sim.checks.persisted_votes import PersistedVotes, durable_election
from tests.sim.checks.verdicts import FEWEST_HISTORIES, Verdicts, too_many_undecided
from tests.sim.checks.watermarks import Watermarks, hosted_by
from tests.sim.clients.history import History, Promises
from tests.sim.clients.progress import Progress
from tests.sim.faults.nemesis import CRASH, DAMAGE, EVERYTHING
from tests.sim.run import PLACES, Simulation, play, simulation
from tests.sim.scripts.staging import leader, settled, writes_some
from tests.sim.seeds import SNAPSHOTS, Plan, run_seed
from tests.sim.world.cluster import Machine, NodeStopped, Process
from tests.sim.world.loop import SimLoop
from tests.sim.world.shape import Shape

ALL_OF_IT = 1 << 20


@pytest.fixture(scope="module")
def stage() -> Iterator[Simulation]:
    """A cluster that has records, snapshots and one election behind it. Its time does not pass."""

    async def some_data(stage: Simulation) -> None:
        await settled(stage)
        await writes_some(stage, stage.producer("p1", PLACES), PLACES)
        files = running(stage.cluster.controllers[0]).core.storage.snapshots
        await stage.until(lambda: files.latest is not None, "a snapshot", 30)

    with simulation(1, Shape(overrides=SNAPSHOTS[2])) as stage:
        play(stage, some_data(stage))
        yield stage


def running(machine: Machine) -> Process:
    assert machine.process is not None
    return machine.process


def followers(stage: Simulation) -> list[Machine]:
    active = stage.active()
    return [each for each in stage.cluster.controllers if each is not active]


def led(stage: Simulation) -> tuple[Machine, HostedPartition]:
    """Return a broker, and the replica with the highest high watermark among those that it
    leads."""
    machine = leader(stage)
    replicas = [each for each in hosted_by(machine).values() if each.partition.leadership]
    return machine, max(replicas, key=lambda each: each.partition.high_watermark)


@contextmanager
def changed(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


# -- Raft ----------------------------------------------------------------------------------------


def test_two_leaders_of_an_epoch(stage: Simulation) -> None:
    epoch = running(stage.active()).core.replica.raft.epoch
    own, other = stage.active(), followers(stage)[0]
    running(own).core.listeners.role[0](RoleChanged(Role.LEADER, epoch, own.id))
    with pytest.raises(Violation, match="raft leader of epoch"):
        running(other).core.listeners.role[0](RoleChanged(Role.LEADER, epoch, other.id))


def test_a_leader_without_the_saved_votes_of_a_majority(stage: Simulation) -> None:
    votes = PersistedVotes(stage.cluster)
    epoch = running(stage.active()).core.replica.raft.epoch
    active, other = stage.active(), followers(stage)[0]
    assert votes.elected(active, running(active), epoch) == ""
    assert "with the saved votes of" in votes.elected(other, running(other), epoch)
    assert "with the saved votes of []" in votes.elected(active, running(active), epoch + 1)


@contextmanager
def saved(machine: Machine, election: Election) -> Iterator[None]:
    path = f"{machine.config.metadata_log_dir}/{METADATA_TOPIC}-0/{COPY_NAME}"
    inode = machine.disk.durable_inode(path)
    assert inode is not None
    with changed(inode, "durable", bytearray(encode_copy(election))):
        yield


def test_a_saved_vote_that_changes(stage: Simulation) -> None:
    active, other = stage.active(), followers(stage)[0]
    found = durable_election(active)
    assert found is not None and found.voted == active.key
    votes = PersistedVotes(stage.cluster)
    assert votes.look(active) == votes.look(active) == ""
    with saved(active, replace(found, voted=other.key)):
        assert f"voted in epoch {found.epoch} for" in votes.look(active)
    with saved(active, replace(found, epoch=found.epoch - 1)):
        assert "its saved election goes back" in votes.look(active)
    with saved(active, replace(found, epoch=found.epoch + 1, voted=other.key)):
        assert votes.look(active) == ""


def test_an_epoch_that_goes_back(stage: Simulation) -> None:
    active = stage.active()
    seen = stage.invariants._seen[active.name]
    stage.invariants._sweep_process(active, running(active))
    with (
        changed(seen, "raft_epoch", seen.raft_epoch + 1),
        pytest.raises(Violation, match="raft epoch"),
    ):
        stage.invariants._sweep_process(active, running(active))


def test_a_high_watermark_of_the_quorum_that_goes_back(stage: Simulation) -> None:
    active = stage.active()
    high_watermark = stage.invariants._seen[active.name].raft_high_watermark
    committed = running(active).core.listeners.committed[0]
    committed(high_watermark)
    with pytest.raises(Violation, match="raft high watermark"):
        committed(high_watermark - 1)


def test_a_snapshot_of_other_bytes_or_other_contents(stage: Simulation) -> None:
    active, invariants = stage.active(), stage.invariants
    seen = invariants._seen[active.name]
    snapshot = running(active).core.storage.snapshots.latest
    assert snapshot is not None

    def look() -> None:
        seen.snapshot = None
        invariants.snapshots.look(active, running(active), seen)

    look()
    known = invariants.snapshots.digests[snapshot]
    invariants.snapshots.digests[snapshot] = "other bytes"
    with pytest.raises(Violation, match="bytes of a snapshot"):
        look()
    invariants.snapshots.digests[snapshot] = known
    image = invariants.snapshots.replayed[snapshot.offset]
    invariants.snapshots.replayed[snapshot.offset] = MetadataImage()
    with pytest.raises(Violation, match="replaying says"):
        look()
    invariants.snapshots.replayed[snapshot.offset] = image
    look()


def test_a_refused_claim(stage: Simulation) -> None:
    active = stage.active()
    raft: Any = running(active).core.replica.raft
    core = raft._core
    with changed(core, "refused_claims", 1), pytest.raises(Violation, match="refuses a claim"):
        stage.invariants._sweep_process(active, running(active))


# -- logs ----------------------------------------------------------------------------------------


def log_files(machine: Machine, directory: str) -> list[str]:
    return [each for each in machine.disk.files(directory) if each.endswith(".log")]


@pytest.mark.parametrize("of", ["metadata", "partition"])
def test_logs_that_differ(stage: Simulation, of: str) -> None:
    if of == "metadata":
        one, other = stage.cluster.controllers[:2]
        directory = running(other).core.log.directory
    else:
        one, hosted = led(stage)
        other = next(each for each in stage.cluster.brokers if each is not one)
        directory = hosted_by(other)[hosted.key].log.directory
    matching = LogMatching(stage.cluster)
    assert matching.look(one) == matching.look(other) == ""
    assert matching.checks[f"log matching: {of}"] > 3
    path = log_files(other, directory)[-1]
    data = other.disk.inode(path).data
    data[CRC_FROM - 1] ^= 1  # a bit of its CRC
    try:
        matching = LogMatching(stage.cluster)
        assert matching.look(one) == ""
        assert "log matching" in matching.look(other)
    finally:
        data[CRC_FROM - 1] ^= 1


def test_what_precedes_the_same_batch_differs(stage: Simulation) -> None:
    """The second batch has an epoch that no other log has."""
    one, other = stage.cluster.controllers[:2]
    matching = LogMatching(stage.cluster)
    assert matching.look(one) == ""
    path = log_files(other, running(other).core.log.directory)[-1]
    data = other.disk.inode(path).data
    epoch_at = 12
    data[epoch_at] ^= 0x10
    try:
        assert "follows" in matching.look(other)
    finally:
        data[epoch_at] ^= 0x10


# -- partitions ----------------------------------------------------------------------------------


def test_a_leader_outside_of_its_isr_and_epochs_that_go_back(stage: Simulation) -> None:
    _, hosted = led(stage)
    partition = stage.cluster.newest_image().partition(*hosted.key)
    assert partition is not None
    look = stage.invariants.claims.changed
    look(hosted.key, "data", Change(partition, partition))
    alone = tuple(each for each in partition.isr if each != partition.leader)
    with pytest.raises(Violation, match="is not in the ISR"):
        look(hosted.key, "data", Change(partition, replace(partition, isr=alone)))
    older = replace(partition, leader_epoch=partition.leader_epoch - 1)
    with pytest.raises(Violation, match="epochs go back"):
        look(hosted.key, "data", Change(partition, older))
    with pytest.raises(Violation, match="ISR of"):
        look(hosted.key, "data", Change(None, replace(partition, isr=(partition.leader,))))
    led_by_another = replace(partition, leader=alone[0])
    with pytest.raises(Violation, match="leader of data"):
        look(hosted.key, "data", Change(None, led_by_another))


def test_a_high_watermark_above_the_log_of_an_isr_member(stage: Simulation) -> None:
    machine, hosted = led(stage)
    watermarks = Watermarks(stage.cluster, lambda machine, key: True)
    assert watermarks.moved(machine, hosted) == ""
    assert watermarks.checks["high watermark and ISR"] == 3
    with changed(hosted.partition, "high_watermark", ALL_OF_IT):
        assert "but the log of ISR member" in watermarks.moved(machine, hosted)
        nobody = Watermarks(stage.cluster, lambda machine, key: False)
        assert nobody.moved(machine, hosted) == ""


def test_a_replica_that_may_be_elected_without_a_committed_record(stage: Simulation) -> None:
    machine, hosted = led(stage)
    partition = stage.cluster.newest_image().partition(*hosted.key)
    assert partition is not None
    watermarks = Watermarks(stage.cluster, lambda machine, key: True)
    watermarks.note(hosted)
    assert watermarks.electable(hosted.key, partition) == ""
    assert watermarks.checks["log of a member of the ISR"] == 3
    alone = replace(partition, isr=(machine.id,))
    eligible = replace(alone, elr=tuple(i for i in partition.isr if i != machine.id))
    with changed(hosted.partition, "high_watermark", ALL_OF_IT):
        watermarks.note(hosted)
    assert "may be elected" in watermarks.electable(hosted.key, alone)
    only_it = Watermarks(stage.cluster, lambda other, key: other is not machine)
    with changed(hosted.partition, "high_watermark", ALL_OF_IT):
        only_it.note(hosted)
    assert only_it.electable(hosted.key, alone) == "", "the others may lack it"
    assert "may be elected" in only_it.electable(hosted.key, eligible)
    assert only_it.checks["log of an eligible leader replica"] == 1
    unclean = Watermarks(stage.cluster, lambda machine, key: True, unclean=lambda key: True)
    assert unclean.electable(hosted.key, alone) == ""


def test_a_follower_that_lacks_what_its_leader_counts(stage: Simulation) -> None:
    _, hosted = led(stage)
    leadership = hosted.partition.leadership
    assert leadership is not None
    follower = next(iter(leadership.replicas.values()))
    progress = FollowerProgress(stage.cluster, lambda machine, key: True)
    assert progress.look(hosted) == ""
    assert progress.checks["progress of a follower"] == 2
    with changed(follower, "end_offset", ALL_OF_IT):
        assert f"counts b{follower.broker_id} up to" in progress.look(hosted)
        with changed(leadership, "epoch", -1):
            assert progress.look(hosted) == "", "the follower knows a later epoch"
        process = running(stage.cluster.machines[f"b{follower.broker_id}"])
        with changed(process.core, "incarnation", process.core.cluster_id):
            assert progress.look(hosted) == "", "the leader does not know of the restart"
        lost = FollowerProgress(stage.cluster, lambda machine, key: False)
        assert lost.look(hosted) == ""


def test_a_high_watermark_that_a_restart_raises(stage: Simulation) -> None:
    watermarks = Watermarks(stage.cluster, lambda machine, key: True)
    machine, _ = led(stage)
    for hosted in hosted_by(machine).values():
        watermarks.moved(machine, hosted)
    assert watermarks.restarted(machine) == ""
    assert watermarks.checks["high watermark after a restart"] >= len(PLACES)
    unknown = Watermarks(stage.cluster, lambda machine, key: True)
    assert "the highest was 0" in unknown.restarted(machine)


def test_a_high_watermark_that_is_lower_at_the_end(stage: Simulation) -> None:
    machine, hosted = led(stage)
    watermarks = Watermarks(stage.cluster, lambda machine, key: False)
    watermarks.moved(machine, hosted)
    assert watermarks.at_the_end() == ""
    with changed(hosted.partition, "high_watermark", hosted.partition.high_watermark - 1):
        assert "before" in watermarks.at_the_end()


# -- clients -------------------------------------------------------------------------------------

PLACE = ("data", 0)
RIGHT = [(0, b"p:0"), (1, b"p:1"), (2, b"q:0"), (3, b"p:2")]


def history() -> History:
    """Return a history in which producer p has sent 0, 1 and 2, and knows that 0 and 1 are at 0 and
    1."""
    made = History()
    made.promises["p", PLACE] = Promises(sent=3, acknowledged={0: 0, 1: 1})
    made.promises["q", PLACE] = Promises(sent=1)
    return made


def test_a_partition_is_read_as_far_as_records_were_acknowledged() -> None:
    assert history().end_of(PLACE) == 2
    assert history().end_of(("data", 1)) == 0


@pytest.mark.parametrize(
    ("records", "wrong"),
    [
        ([RIGHT[0], *RIGHT[2:]], "acknowledged at 1 is lost"),
        ([*RIGHT, (4, b"p:1")], "stands twice"),
        ([RIGHT[0], (1, b"p:2"), (2, b"p:1")], "is out of order"),
        ([*RIGHT, (4, b"p:3")], "was never sent"),
        ([RIGHT[0], (2, b"p:1")], "acknowledged at 1, is at 2"),
    ],
)
def test_records_that_break_a_promise(records: list[tuple[int, bytes]], wrong: str) -> None:
    history().check(PLACE, RIGHT)
    with pytest.raises(Violation, match=wrong):
        history().check(PLACE, records)


def test_a_record_without_an_answer_may_be_stored_after_later_ones() -> None:
    """They went over another connection (seed 1541)."""
    made = history()
    records = [RIGHT[0], (1, b"p:2"), (2, b"p:1")]
    made.promises["p", PLACE] = Promises(sent=3, acknowledged={0: 0}, unanswered={1})
    made.check(PLACE, records)


def test_answers_of_administrators_that_no_order_explains() -> None:
    admins = AdminHistory()
    admins.record("t", "create", created(1), 0, 1, ErrorCode.NONE)
    admins.record("t", "delete", deleted, 2, 3, ErrorCode.NONE)
    admins.check(MetadataImage(), 4)
    admins.record("t", "create", created(1), 5, 6, ErrorCode.TOPIC_ALREADY_EXISTS)
    with pytest.raises(Violation, match="but no order explains"):
        admins.check(MetadataImage(), 7)
    assert admins.verdicts.checked == 2


def test_undecided_histories_are_counted_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.sim.checks.linearizability.MAX_VISITED", 0)
    verdicts = Verdicts()
    assert verdicts.explained([], 0) is None
    assert (verdicts.checked, verdicts.undecided) == (1, 1)
    assert too_many_undecided(FEWEST_HISTORIES, 1) == ""
    assert "are undecided" in too_many_undecided(FEWEST_HISTORIES, 2)


def test_clients_that_make_no_progress() -> None:
    loop, done = SimLoop(), {"t-0": 0, "t-1": 0}
    progress = Progress(loop, lambda: done)
    for _ in range(5):
        loop.run_for(2)
        done["t-0"] += 1
        done["t-1"] += 1
    loop.run_for(1)
    progress.require(2.5)
    done["t-0"] += 1
    loop.run_for(2)
    with pytest.raises(Violation, match="t-1: no progress for"):
        progress.require(2.5)
    progress.stop()
    loop.run_for(9)
    assert progress.stall_s < 4
    loop.close()


def test_a_campaign_in_which_the_clients_did_nothing() -> None:
    tally = Tally()
    report = run_seed(1, Plan(faults_s=0.5))
    tally.add(report)
    assert tally.problems() == []
    tally.add(replace(report, consumed=0))
    assert "the clients did nothing" in tally.problems()[0]
    lines = "\n".join(tally.lines())
    assert "acknowledged per seed: least" in lines and "consumed per seed: least 0 " in lines

    tally.reports = [report] * ALL_FAULTS
    tally.effects.clear()
    tally.coverage["links of bytes"] = 1
    assert any("'bridge'" in each for each in tally.problems())
    tally.effects.update([*EVERYTHING, *DAMAGE, CRASH])
    assert tally.problems() == []
    tally.effects["narrow"] = 0
    assert tally.problems() == [f"no fault 'narrow' of {tally.faults['narrow']} had an effect"]
    tally.coverage["links of bytes"] = 0
    assert tally.problems() == []


# -- the whole run -------------------------------------------------------------------------------


def test_what_does_not_come_in_time() -> None:
    with simulation(1, Shape()) as stage, pytest.raises(Violation, match="not within"):
        play(stage, stage.until(lambda: False, "never", 0.5))


def test_an_exception_that_nobody_catches() -> None:
    async def raises(stage: Simulation) -> None:
        stage.cluster.start_all()
        await stage.until(stage.all_serve, "all serve", 10)
        host = running(stage.active()).host
        host.call_soon(lambda: 1 // 0)  # type: ignore[arg-type]
        await stage.until(lambda: False, "never", 5)

    with simulation(1, Shape(brokers=0)) as stage, pytest.raises(NodeStopped):
        play(stage, raises(stage))


def test_a_node_that_starts_without_what_was_durable() -> None:
    async def starts(stage: Simulation, more: int) -> None:
        stage.cluster.start_all()
        await stage.until(stage.all_serve, "all serve", 10)
        machine = stage.active()
        durable = running(machine).core.log.flushed_offset
        stage.cluster.kill(machine)
        stage.faults.damage._start_damaged(machine, durable + more)

    with simulation(1, Shape(brokers=0)) as stage:
        play(stage, starts(stage, 0))
    with simulation(1, Shape(brokers=0)) as stage, pytest.raises(AssertionError, match="was durab"):
        play(stage, starts(stage, 1))
