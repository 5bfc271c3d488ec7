"""Historic bugs of snapshots and disks (README.md of this folder)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from quorate.quorum.ids import EpochOffset
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.log.files.errors import CorruptBatch, CorruptLog
from quorate.quorum.log.files.names import PART_SUFFIX
from quorate.quorum.log.snapshots.snapshots import snapshot_name
from quorate.quorum.metadata.errors import MetadataError
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.loader import Loader
from quorate.quorum.metadata.snapshot_file import read_snapshot
from quorate.quorum.node.replica.committed_image import CommittedImage
from quorate.quorum.raft.effects import Role
from quorate.quorum.raft.messages import FetchRequest
from tests.unit.node.metadata_disk import DIRECTORY, OFTEN, MetadataDisk, image_at
from tests.unit.node.test_metadata_storage import (
    opened,
    received,
    reopened,
    run,
    with_snapshots,
)
from tests.unit.raft.harness import RaftCluster
from tests.unit.raft.test_snapshots import CHUNKS, cut_off, leaders, snapshot_of
from tests.unit.rpc.kafka.fakes import FakeClock


@pytest.mark.parametrize("slices", range(8))
def test_r35_a_snapshot_comes_from_the_leader_while_one_of_its_own_is_written(slices: int) -> None:
    """etcd #18055: two snapshots in quick succession and a panic; openraft eed681d5: what was
    applied went back. Its own, older one must not count once the leader's stands for the log."""
    node = opened(snapshots=replace(OFTEN, retention_bytes=-1))
    node.append(8)
    generator, clock = node.generator()
    while generator._writing is None:
        clock.advance(50)
    for _ in range(slices):
        clock.advance(1)
    received(node)
    node._loader = Loader(image_at(40, node.epochs))
    node.append(2, 2)
    run(clock)
    assert node.failures == []
    earliest = node.storage.snapshots.earliest
    assert earliest is not None and earliest.offset >= node.storage.log.start_offset
    node.storage.close()
    again = reopened(node)
    again.check()
    assert again.storage.log.start_offset == 40
    assert not [name for name in again.names() if name.endswith(".damaged")]


def test_r35_what_was_older_goes_when_a_snapshot_from_the_leader_is_loaded() -> None:
    """openraft eed681d5. This scenario found the bug here: a node's older snapshot outlived the log
    behind it. A follower in the epoch of that snapshot then got the log instead of the snapshot.
    """
    cluster = RaftCluster(settings=CHUNKS)
    cluster.until(lambda: len(leaders(cluster)) == 3)
    first = cluster.leader()
    behind = next(each for each in (1, 2, 3) if each != first)
    old = snapshot_of(cluster, behind, 1)
    cluster.crash(behind)
    cluster.crash(first)
    cluster.start(first)
    cluster.until(lambda: any(cluster.role(each) is Role.LEADER for each in cluster.up()))
    leader = cluster.leader()
    cluster.append(leader, b"a")
    cluster.until(lambda: cluster.nodes[leader].high_watermark == 3)
    new = snapshot_of(cluster, leader, 3)
    cluster.nodes[leader].log.cut_head(3)
    cluster.start(behind)
    node = cluster.nodes[behind]
    cluster.until(lambda: node.log.start_offset == 3)
    assert new.epoch > old.epoch
    assert list(node.snapshots.files) == [new]


def test_r37_a_log_that_ends_below_the_leaders_start_is_not_taken_for_a_conflict() -> None:
    """openraft 71a290cd: the entry before those sent was purged, that was taken for a conflict, and
    a good log was deleted. Here it gives way to the snapshot, which has all of it, and not before.
    """
    cluster = RaftCluster(settings=CHUNKS)
    cluster.until(lambda: len(leaders(cluster)) == 3)
    leader = cluster.leader()
    behind = next(each for each in (1, 2, 3) if each != leader)
    cluster.crash(behind)
    cluster.append(leader, b"a")
    cluster.until(lambda: cluster.nodes[leader].high_watermark == 2)
    snapshot = snapshot_of(cluster, leader, 2)
    cluster.nodes[leader].log.cut_head(2)
    cluster.append(leader, b"b")
    cluster.start(behind)
    node = cluster.nodes[behind]
    assert node.log.end_offset == 1
    cluster.until(lambda: node.installing == snapshot)
    assert node.log.truncations == []
    cluster.until(lambda: node.log.end_offset == cluster.nodes[leader].log.end_offset)
    assert node.log.truncations == []
    assert node.log.start_offset == snapshot.offset


def test_r41_a_snapshot_that_is_old_when_it_arrives_still_helps() -> None:
    """etcd snapshot_succeed_via_app_resp_behind.txt: the follower got an older snapshot than the
    leader had in mind, and was never sent anything again."""
    cluster, leader, old = cut_off(observers=1)
    cluster.start(101)
    observer = cluster.nodes[101]
    cluster.until(lambda: observer.installing == old)
    cluster.append(leader, b"d")
    cluster.until(lambda: cluster.nodes[leader].high_watermark > old.offset + 1)
    new = snapshot_of(cluster, leader, cluster.nodes[leader].high_watermark, b"newer")
    del cluster.nodes[leader].snapshots.files[old]
    cluster.nodes[leader].log.cut_head(new.offset)
    cluster.append(leader, b"e")
    cluster.until(lambda: observer.high_watermark > new.offset)
    assert observer.log.start_offset == new.offset
    assert observer.log.entries() == cluster.nodes[leader].log.entries()


def test_r42_the_log_is_cut_while_a_followers_question_is_under_way() -> None:
    """etcd slow_follower_after_compaction.txt: the leader was still looking for where a follower's
    log matches when that part of its own log went."""
    cluster, leader, _ = cut_off(down=3)
    log = cluster.nodes[leader].log
    slow = next(each for each in (1, 2) if each != leader)
    cluster.settle()
    cluster.crash(slow)
    cluster.start(slow)
    cluster.tick(slow)
    cluster.save_all(slow)
    while not (asked := [each for each in cluster.letters if each.source == slow]):
        if not cluster.one_step():
            cluster.pass_time(cluster.now_ms + 50)
    (question,) = asked
    assert isinstance(question.message, FetchRequest) and question.target == leader
    cluster.letters.remove(question)
    cluster.start(3)
    cluster.until(lambda: cluster.nodes[3].log.end_offset == log.end_offset)
    for value in (b"d", b"e"):
        cluster.append(leader, value)
    cluster.until(lambda: cluster.nodes[leader].high_watermark == log.end_offset)
    later = snapshot_of(cluster, leader, log.end_offset, b"later")
    log.cut_head(later.offset)
    assert question.message.offset < log.start_offset
    cluster.letters.append(question)
    cluster.append(leader, b"f")
    cluster.run(8_000)
    assert cluster.leader() == leader or cluster.role(leader) is Role.FOLLOWER
    ends = {node.high_watermark for node in cluster.nodes.values()}
    assert len(ends) == 1 and ends.pop() > later.offset


def test_r40_what_was_never_finished_is_no_snapshot() -> None:
    """NATS SetupLastSnapshotIgnoresTmpFile: a half-written file was loaded at the start. Neither a
    part of the leader's nor one of its own counts, whatever it holds."""
    node = with_snapshots()
    whole = node.disk.content(f"{DIRECTORY}/{snapshot_name(node.latest())}")
    later = EpochOffset(1, 99)
    file = node.disk.open(f"{DIRECTORY}/{snapshot_name(later)}{PART_SUFFIX}", create=True)
    file.pwrite(whole, 0)
    again = reopened(node)
    assert later not in again.storage.snapshots
    assert again.latest() == node.latest()
    again.check()


def behind_a_snapshot() -> MetadataDisk:
    """The log below the snapshot is gone."""
    node = opened()
    received(node)
    node.append(6, 2)
    node.storage.close()
    return node


@pytest.mark.parametrize("made", [with_snapshots, behind_a_snapshot])
def test_r51_damage_to_any_file_of_the_metadata_is_repaired_or_refused(
    made: Callable[[], MetadataDisk],
) -> None:
    """Jepsen on NATS 2.12.1: one flipped bit on a minority and half of what was acknowledged was
    gone, because the damaged node went on with less. A node goes on with all of it or not at all;
    the majority has it."""
    refused = repaired = 0
    for name in made().names():
        size = len(made().disk.content(f"{DIRECTORY}/{name}"))
        for position in range(0, size, 19):
            node = made()
            node.disk.flip(f"{DIRECTORY}/{name}", position)
            try:
                again = reopened(node)
                again.check()
            except (CorruptLog, CorruptBatch, MetadataError):
                refused += 1
            else:
                files = again.storage.snapshots
                read_snapshot(again.latest(), files.chunks(again.latest()))
                repaired += 1
    assert refused > 10 and repaired >= 5, (refused, repaired)


def followed(image: MetadataImage) -> IncrementalWork[Callable[[], None]]:
    """Prepare nothing, because nothing depends on the image."""
    yield from ()
    return lambda: None


def test_r51_what_was_damaged_after_it_was_flushed_is_not_replayed() -> None:
    """Jepsen on NATS 2.12.1. Found here by these scenarios: a log that was flushed is not read when
    it is opened, and its replay did not look at checksums. A flipped bit in a value became part of
    that node's image."""
    node = opened()
    node.append(16)
    node.storage.close()
    path = f"{DIRECTORY}/{0:020}.log"
    node.disk.flip(path, node.disk.content(path).index(b"v1"))
    log = reopened(node).storage.log
    images: list[object] = []
    failures: list[BaseException] = []
    image = CommittedImage(
        FakeClock(),
        log,
        lambda image, delta: images.append(image),
        followed,
        failures.append,
    )
    image.load(node.storage.beginning.image)
    images.clear()
    image.committed(log.end_offset)
    assert images == []
    (failure,) = failures
    assert isinstance(failure, CorruptLog) and failure.path == path
