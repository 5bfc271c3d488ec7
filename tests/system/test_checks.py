"""The instruments themselves: schedules are what they say, and disks that disagree are noticed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from quorate.quorum.ids import EpochOffset, Uuid
from quorate.quorum.log.batches.batch import CONTROL, build_batch, build_value_batch
from quorate.quorum.log.batches.record import Record
from quorate.quorum.log.disks.disk import OsDisk
from quorate.quorum.log.log import Log
from quorate.quorum.log.snapshots.snapshots import snapshot_name
from quorate.quorum.metadata.framing import encode_record
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.records import (
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
)
from quorate.quorum.metadata.replay import replay
from quorate.quorum.metadata.snapshot_file import write_snapshot
from quorate.quorum.raft.control_records import LeaderChangeMessage, encode_control
from quorate.quorum.raft.voter_history import STATIC_VOTERS
from quorate.quorum.seams import Buffer
from tests.sim.checks.invariants import Violation
from tests.sim.clients.history import Promises, value_of
from tests.system import run
from tests.system.admin_load import Fate, Told
from tests.system.disks import SETTINGS, Disks
from tests.system.faults import CLIENTS, ENDS, Action, Step, schedule
from tests.system.load import UNKNOWN, Writer
from tests.system.nodes import HurtCluster
from tests.system.run import PART_S, Progress, require_nothing_lost

CONTROLLERS, BROKERS = (1, 2, 3), (4, 5, 6)
TOPIC_ID = Uuid(bytes(range(16)))
TOPIC = TopicRecord(name="orders", topic_id=TOPIC_ID)
CREATED = PartitionRecord(
    partition_id=0,
    topic_id=TOPIC_ID,
    replicas=(4, 5),
    isr=(4, 5),
    leader=4,
    leader_epoch=0,
    partition_epoch=0,
)
MOVED = PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, leader=5)
WALL_MS = 1_700_000_000_000


@pytest.mark.parametrize("disks_and_links", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_every_fault_ends_and_nothing_is_hurt_twice_at_once(
    seed: int, disks_and_links: bool
) -> None:
    ends = (CONTROLLERS, BROKERS)
    steps = schedule(seed, 30.0, *ends, disks_and_links=disks_and_links)
    assert steps == schedule(seed, 30.0, *ends, disks_and_links=disks_and_links)
    hurt: dict[frozenset[int], Action] = {}
    for step in steps:
        assert 0.0 < step.at_s <= 30.0
        for peer in step.peers or (step.node_id,):
            what = frozenset((step.node_id, peer))
            if step.action in ENDS:
                assert what not in hurt
                hurt[what] = ENDS[step.action]
            else:
                assert hurt.pop(what) is step.action
    assert steps and not hurt


@pytest.mark.parametrize("seed", range(20))
def test_two_minutes_have_every_kind_of_fault(seed: int) -> None:
    parts = [
        schedule(seed * 3 + part, PART_S, CONTROLLERS, BROKERS, disks_and_links=True)
        for part in range(3)
    ]
    drawn = Counter(step.action for part in parts for step in part)
    assert all(drawn[kind] >= 3 for kind in ENDS), drawn


def test_clients_have_links_to_brokers_only() -> None:
    steps = schedule(1, 120.0, CONTROLLERS, BROKERS, disks_and_links=True)
    links = {frozenset((step.node_id, peer)) for step in steps for peer in step.peers}
    assert {CLIENTS, *CONTROLLERS, *BROKERS} == {end for link in links for end in link}
    assert not [link for link in links if CLIENTS in link and link & set(CONTROLLERS)]
    assert all(len(link) == 2 for link in links)


def test_a_kind_of_fault_without_an_effect_fails_the_run(tmp_path: Path) -> None:
    cluster = HurtCluster(tmp_path)
    steps = [Step(1.0, 0, Action.KILL, 4), Step(2.0, 1, Action.START, 4)]
    with pytest.raises(AssertionError, match="kill -9"):
        cluster.require_effects(steps)
    cluster.effects[Action.KILL] += 1
    cluster.require_effects(steps)


def test_a_cluster_that_acknowledges_nothing_after_the_faults_fails_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Acknowledged:
        def __init__(self, *counts: int) -> None:
            self.counts = list(counts)

        @property
        def acknowledged(self) -> int:
            return self.counts.pop(0) if len(self.counts) > 1 else self.counts[0]

    def progress(*counts: int) -> Progress:
        writer = SimpleNamespace(history=Acknowledged(*counts))
        return Progress([cast(Writer, writer)])

    monkeypatch.setattr(run, "HEAL_S", 0.05)
    moves = progress(5, 5, 6)
    moves.look()
    moves.wait()
    assert moves.acknowledged == 6
    stuck = progress(5)
    stuck.look()
    with pytest.raises(AssertionError, match="a record is acknowledged"):
        stuck.wait()


def test_an_acknowledged_record_that_is_not_there_is_lost() -> None:
    promises = Promises(sent=3, acknowledged={0: 0, 1: UNKNOWN, 2: 3})
    again = [value_of("writer", number) for number in (0, 1, 0, 2, 1)]
    require_nothing_lost("writer", ("orders", 0), promises, again)
    for lost in ([*again[:3], again[0], again[4]], [again[0], again[3], again[2], again[3]]):
        with pytest.raises(Violation, match="lost"):
            require_nothing_lost("writer", ("orders", 0), promises, lost)


def test_a_request_without_an_answer_makes_the_opposite_uncertain() -> None:
    created, deleted, zombie = (Fate(Told(1), Told(5, {6}), created=True) for _ in range(3))
    deleted.deleted = zombie.deleted = zombie.perhaps_created = True
    fates = (created, deleted, zombie)
    assert [fate.must_exist for fate in fates] == [True, False, False]
    assert [fate.must_be_gone for fate in fates] == [False, True, False]
    assert [value for value in range(9) if created.setting.allows(value)] == [5, 6]


def batch(offset: int, records: list[MetadataRecord], epoch: int = 1) -> Buffer:
    values = [encode_record(record) for record in records]
    return build_value_batch(values, base_offset=offset, leader_epoch=epoch, timestamp_ms=WALL_MS)


def leader_change(offset: int, epoch: int, leader_id: int) -> Buffer:
    message = LeaderChangeMessage(version=0, leader_id=leader_id, voters=(), granting_voters=())
    record = Record(offset, WALL_MS, *encode_control(message))
    return build_batch([record], leader_epoch=epoch, flags=CONTROL)


def directory_of(root: Path, *content: Buffer) -> Path:
    root.mkdir()
    disk = OsDisk()
    log = Log.open(disk, str(root), SETTINGS, wall_ms=WALL_MS, clean=False)
    for each in content:
        log.append(each, wall_ms=WALL_MS)
    log.flush()
    log.close()
    disk.close()
    return root


def write_snapshot_of(directory: Path, records: list[MetadataRecord]) -> None:
    last = EpochOffset(1, len(records))
    image, _ = replay(MetadataImage(), records, last, WALL_MS)
    path = directory / snapshot_name(EpochOffset(1, last.offset + 1))
    path.write_bytes(b"".join(write_snapshot(image, STATIC_VOTERS)))


GOOD = (leader_change(0, 1, 1), batch(1, [TOPIC, CREATED]), batch(3, [MOVED]))


def test_nodes_that_agree(tmp_path: Path) -> None:
    disks = Disks(high_watermark=4)
    disks.take("one", directory_of(tmp_path / "1", *GOOD))
    with_snapshot = directory_of(tmp_path / "2", *GOOD, batch(4, [MOVED]))
    write_snapshot_of(with_snapshot, [TOPIC, CREATED])
    disks.take("two", with_snapshot)
    disks.take_active(1, "... active controller of epoch 1 at offset 0")
    assert disks.leaders == {((TOPIC_ID, 0), 0): 4, ((TOPIC_ID, 0), 1): 5}
    assert disks.image.topic_names() == ["orders"]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param((*GOOD[:2], batch(3, [CREATED])), id="another record is committed"),
        pytest.param((*GOOD[:2], batch(3, [MOVED], epoch=2)), id="in another epoch"),
        pytest.param((leader_change(0, 1, 2), *GOOD[1:]), id="another leader of the epoch"),
        pytest.param(GOOD[:2], id="something committed is missing"),
    ],
)
def test_nodes_that_do_not_agree(tmp_path: Path, other: tuple[Buffer, ...]) -> None:
    disks = Disks(high_watermark=4)
    disks.take("one", directory_of(tmp_path / "1", *GOOD))
    directory = directory_of(tmp_path / "2", *other)
    with pytest.raises(Violation):
        disks.take("two", directory)


def test_a_snapshot_that_says_something_else_than_the_log(tmp_path: Path) -> None:
    directory = directory_of(tmp_path / "1", *GOOD)
    write_snapshot_of(directory, [TOPIC, CREATED])
    Disks(high_watermark=4).take("one", directory)
    other = directory_of(tmp_path / "2", *GOOD)
    moved = PartitionRecord(
        partition_id=0,
        topic_id=TOPIC_ID,
        replicas=(4, 5),
        isr=(5,),
        leader=5,
        leader_epoch=0,
        partition_epoch=0,
    )
    write_snapshot_of(other, [TOPIC, moved])
    with pytest.raises(Violation, match="the image at"):
        Disks(high_watermark=4).take("two", other)


def test_two_active_controllers_of_one_epoch(tmp_path: Path) -> None:
    disks = Disks(high_watermark=4)
    disks.take("one", directory_of(tmp_path / "1", *GOOD))
    with pytest.raises(Violation, match="active controller"):
        disks.take_active(2, "... active controller of epoch 1 at offset 0")
