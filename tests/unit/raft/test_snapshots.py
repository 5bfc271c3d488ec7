"""Snapshots in place of a log that was cut off (KIP-630): the replicas that need one, its chunks,
and the log that continues after it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quorate.quorum.ids import EpochOffset
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.raft import effects
from quorate.quorum.raft.effects import Role
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.messages import (
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
)
from quorate.quorum.raft.settings import RaftSettings
from tests.unit.raft.disk_log import DiskLog
from tests.unit.raft.harness import CLUSTER_ID, RaftCluster, key
from tests.unit.raft.memory_log import MemoryMetadataLog
from tests.unit.raft.test_replication import fetch_request, filled

CONTENT = bytes(range(25))
CHUNKS = RaftSettings(fetch_snapshot_max_bytes=10, hints=False)


def cut_off(*, observers: int = 0, down: int | None = None) -> tuple[RaftCluster, int, EpochOffset]:
    """Return a cluster whose leader has a snapshot in place of all records but the last. The voter
    `down` is absent from the beginning."""
    cluster = RaftCluster(observers=observers, settings=CHUNKS, start=False)
    for node_id in cluster.nodes:
        if node_id not in (down, 101):
            cluster.start(node_id)
    cluster.until(lambda: bool(leaders(cluster)))
    leader = cluster.leader()
    cluster.append(leader, b"a")
    cluster.append(leader, b"b")
    cluster.settle()
    snapshot = snapshot_of(cluster, leader, cluster.nodes[leader].high_watermark)
    cluster.nodes[leader].log.cut_head(snapshot.offset)
    cluster.append(leader, b"c")
    cluster.settle()
    return cluster, leader, snapshot


def leaders(cluster: RaftCluster) -> list[int]:
    return [each for each in cluster.up() if cluster.nodes[each].high_watermark > 0]


def snapshot_of(
    cluster: RaftCluster, node_id: int, offset: int, content: bytes = CONTENT
) -> EpochOffset:
    snapshot = EpochOffset(cluster.core(node_id).epoch, offset)
    cluster.nodes[node_id].snapshots.files[snapshot] = content
    return snapshot


def chunks_sent(cluster: RaftCluster, node_id: int) -> list[int]:
    return [
        each.request.position
        for each in cluster.nodes[node_id].seen
        if isinstance(each, effects.Send) and isinstance(each.request, FetchSnapshotRequest)
    ]


def ask(cluster: RaftCluster, leader: int, request: FetchSnapshotRequest) -> FetchSnapshotResponse:
    response = cluster.inject(leader, request)
    assert isinstance(response, FetchSnapshotResponse)
    return response


def request_of(
    cluster: RaftCluster,
    leader: int,
    snapshot: EpochOffset,
    position: int,
    *,
    replica: int = 101,
    epoch: int | None = None,
    max_bytes: int = 100,
    cluster_id: str = CLUSTER_ID,
) -> FetchSnapshotRequest:
    return FetchSnapshotRequest(
        cluster_id=cluster_id,
        replica=key(replica),
        epoch=cluster.core(leader).epoch if epoch is None else epoch,
        snapshot=snapshot,
        position=position,
        max_bytes=max_bytes,
    )


def test_an_observer_that_is_too_far_behind_gets_the_snapshot_in_chunks_and_then_the_log() -> None:
    cluster, leader, snapshot = cut_off(observers=1)
    cluster.start(101)
    cluster.until(lambda: cluster.nodes[101].high_watermark > snapshot.offset)
    observer = cluster.nodes[101]
    assert observer.snapshots.files == {snapshot: CONTENT}
    assert chunks_sent(cluster, 101) == [0, 10, 20]
    assert observer.log.start_offset == snapshot.offset
    assert observer.log.entries() == cluster.nodes[leader].log.entries()
    assert observer.high_watermark == cluster.nodes[leader].high_watermark
    loaded = [each for each in observer.seen if isinstance(each, effects.SnapshotInstalled)]
    assert loaded == [effects.SnapshotInstalled(snapshot)]


def test_a_voter_counts_again_once_it_has_the_snapshot() -> None:
    cluster, leader, snapshot = cut_off(down=3)
    (other,) = {1, 2} - {leader}
    cluster.start(3)
    cluster.until(lambda: cluster.nodes[3].log.start_offset == snapshot.offset)
    cluster.isolate(other)
    offset = cluster.append(leader, b"d")
    cluster.until(lambda: cluster.nodes[leader].high_watermark > offset)
    assert cluster.nodes[3].log.flushed_offset > offset


def test_receiving_goes_on_where_it_stopped_after_a_restart() -> None:
    cluster, _, snapshot = cut_off(observers=1)
    cluster.start(101)
    observer = cluster.nodes[101]
    cluster.until(lambda: len(observer.snapshots.parts.get(snapshot, b"")) == 10)
    cluster.crash(101)
    observer.seen.clear()
    cluster.start(101)
    cluster.until(lambda: snapshot in observer.snapshots.files)
    assert chunks_sent(cluster, 101) == [10, 20]


def test_a_snapshot_that_is_gone_is_given_up_for_the_next_one() -> None:
    """R35, etcd #18055: the next snapshot is taken while a replica fetches the previous one."""
    cluster, leader, old = cut_off(observers=1)
    cluster.start(101)
    observer = cluster.nodes[101]
    cluster.until(lambda: len(observer.snapshots.parts.get(old, b"")) == 10)
    del cluster.nodes[leader].snapshots.files[old]
    new = snapshot_of(cluster, leader, cluster.nodes[leader].high_watermark, b"newer")
    cluster.until(lambda: new in observer.snapshots.files)
    assert old not in observer.snapshots.parts
    assert observer.log.start_offset == new.offset


def test_what_is_no_whole_snapshot_is_fetched_again_and_the_log_stays() -> None:
    cluster, leader, snapshot = cut_off(observers=1)
    cluster.nodes[leader].snapshots.files[snapshot] = b"damaged"
    cluster.start(101)
    observer = cluster.nodes[101]
    cluster.until(
        lambda: (
            any(isinstance(each, effects.InstallSnapshot) for each in observer.seen)
            and observer.installing is None
        )
    )
    assert observer.snapshots.files == {} and observer.log.start_offset == 0
    cluster.nodes[leader].snapshots.files[snapshot] = CONTENT
    cluster.until(lambda: snapshot in observer.snapshots.files)
    assert observer.log.start_offset == snapshot.offset


def test_a_snapshot_that_the_leader_finds_damaged_is_given_up_for_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster, leader, old = cut_off(observers=1)
    snapshots = cluster.nodes[leader].snapshots
    read = snapshots.read
    monkeypatch.setattr(
        snapshots,
        "read",
        lambda snapshot, position, size: (
            None if snapshot == old and position > 0 else read(snapshot, position, size)
        ),
    )
    refused = ask(cluster, leader, request_of(cluster, leader, old, 10))
    assert ErrorCode.of(refused.error) is ErrorCode.SNAPSHOT_NOT_FOUND
    cluster.start(101)
    observer = cluster.nodes[101]
    cluster.until(lambda: len(chunks_sent(cluster, 101)) > 3)
    new = snapshot_of(cluster, leader, cluster.nodes[leader].high_watermark, b"newer")
    cluster.until(lambda: new in observer.snapshots.files)
    assert old not in observer.snapshots.parts


def test_while_a_snapshot_is_checked_nothing_else_is_fetched() -> None:
    cluster, _, snapshot = cut_off(observers=1)
    cluster.start(101)
    observer = cluster.nodes[101]
    cluster.until(lambda: observer.installing == snapshot)
    before = len(observer.seen)
    cluster.now_ms += 60_000
    observer.core.tick(cluster.now_ms)
    cluster.collect(observer)
    assert not [each for each in observer.seen[before:] if isinstance(each, effects.Send)]


def test_a_new_replica_gets_the_snapshot_even_while_the_log_goes_back_to_the_start() -> None:
    cluster = RaftCluster()
    cluster.until(lambda: bool(leaders(cluster)))
    leader = cluster.leader()
    snapshot = snapshot_of(cluster, leader, cluster.nodes[leader].high_watermark)
    epoch = cluster.core(leader).epoch
    response = cluster.inject(leader, fetch_request(101, 0, 0, epoch=epoch))
    assert isinstance(response, FetchResponse)
    assert response.snapshot == snapshot


def test_a_log_that_went_on_in_an_epoch_before_the_cut_is_replaced() -> None:
    """The leader cannot find the divergence, because it no longer knows the epochs before its log
    start."""
    cluster, leader, _ = cut_off()
    log = cluster.nodes[leader].log
    cluster.crash(leader)
    cluster.until(lambda: any(cluster.role(each) is Role.LEADER for each in cluster.up()))
    second = cluster.leader()
    cluster.append(second, b"d")
    cluster.settle()
    later = snapshot_of(cluster, second, cluster.nodes[second].high_watermark)
    cluster.nodes[second].log.cut_head(later.offset)
    far = fetch_request(101, later.offset + 5, 1, epoch=cluster.core(second).epoch)
    response = cluster.inject(second, far)
    assert isinstance(response, FetchResponse)
    assert (response.snapshot, response.diverging) == (later, None)
    assert log.last_epoch < later.epoch


@pytest.mark.parametrize("cut", [3, 4], ids=["at the cut", "beyond it"])
@pytest.mark.parametrize("log", [lambda _: MemoryMetadataLog(), DiskLog], ids=["memory", "disk"])
def test_a_log_that_ends_in_an_epoch_between_the_snapshot_and_the_cut_log_is_no_prefix(
    cut: int, log: Callable[[int], MemoryMetadataLog]
) -> None:
    """The leader's log starts after a snapshot of epoch 3, with records of epoch 5. Voter 3 led
    epoch 4, and no other node has its records. Its log ends at the start of the leader's log or
    later, and its last epoch is not older than the snapshot's."""
    cluster = RaftCluster(start=False, settings=CHUNKS, log=log)
    for node_id in (1, 2):
        filled(cluster, node_id, 1, 1, 3)
        cluster.nodes[node_id].saved = Election(4)
        cluster.start(node_id)
    cluster.elect(1)
    cluster.append(1, b"a")
    cluster.settle()
    snapshot = EpochOffset(3, 3)
    cluster.nodes[1].snapshots.files[snapshot] = CONTENT
    cluster.nodes[1].log.cut_head(snapshot.offset)
    filled(cluster, 3, 1, 1, *[4] * (cut - 2))
    cluster.start(3)
    cluster.until(lambda: cluster.nodes[3].high_watermark == cluster.nodes[1].high_watermark)
    assert snapshot in cluster.nodes[3].snapshots.files
    assert cluster.nodes[3].log.entries() == cluster.nodes[1].log.entries()


def test_an_empty_log_behind_a_snapshot_ends_in_its_epoch() -> None:
    """Found by simulation seed 2: the node asked with epoch 0, and was offered the snapshot that it
    had."""
    cluster, leader, snapshot = cut_off()
    log = cluster.nodes[leader].log
    log.truncate_to(snapshot.offset)
    log.start = EpochOffset(-1, snapshot.offset)
    assert log.last_epoch == -1
    assert cluster.core(leader)._core.log_end() == snapshot


def test_the_leader_checks_what_is_asked_of_a_snapshot() -> None:
    cluster, leader, snapshot = cut_off()
    other = EpochOffset(snapshot.epoch, snapshot.offset - 1)
    epoch = snapshot.epoch
    table = [
        (request_of(cluster, leader, other, 0), ErrorCode.SNAPSHOT_NOT_FOUND),
        (request_of(cluster, leader, snapshot, -1), ErrorCode.POSITION_OUT_OF_RANGE),
        (request_of(cluster, leader, snapshot, 25), ErrorCode.POSITION_OUT_OF_RANGE),
        (request_of(cluster, leader, snapshot, 0, max_bytes=0), ErrorCode.INVALID_REQUEST),
        (request_of(cluster, leader, snapshot, 0, replica=-1), ErrorCode.INVALID_REQUEST),
        (
            request_of(cluster, leader, snapshot, 0, epoch=epoch - 1),
            ErrorCode.FENCED_LEADER_EPOCH,
        ),
        (
            request_of(cluster, leader, snapshot, 0, epoch=epoch + 1),
            ErrorCode.UNKNOWN_LEADER_EPOCH,
        ),
        (
            request_of(cluster, leader, snapshot, 0, cluster_id="other"),
            ErrorCode.INCONSISTENT_CLUSTER_ID,
        ),
    ]
    for request, error in table:
        assert ErrorCode.of(ask(cluster, leader, request).error) is error, request
    follower = next(each for each in cluster.voter_ids if each != leader)
    refused = ask(cluster, follower, request_of(cluster, leader, snapshot, 0))
    assert refused.error == ErrorCode.NOT_LEADER_OR_FOLLOWER and refused.leader_id == leader


def test_a_chunk_is_bounded_by_both_sides() -> None:
    cluster, leader, snapshot = cut_off()
    for max_bytes, sent in ((3, 3), (10, 10), (1000, 10)):
        request = request_of(cluster, leader, snapshot, 5, max_bytes=max_bytes)
        response = ask(cluster, leader, request)
        assert (response.size_bytes, bytes(response.data)) == (25, CONTENT[5 : 5 + sent])


def test_fetching_a_snapshot_keeps_the_leader_in_office() -> None:
    """Check quorum counts FetchSnapshot (KIP-630), because a large snapshot takes longer than the
    timeout."""
    cluster, leader, snapshot = cut_off()
    for _ in range(10):
        cluster.letters.clear()
        cluster.now_ms += 1000
        for voter in cluster.voter_ids:
            if voter != leader:
                request = request_of(cluster, leader, snapshot, 0, replica=voter)
                assert ask(cluster, leader, request).error == ErrorCode.NONE
        cluster.core(leader).tick(cluster.now_ms)
        cluster.collect(cluster.nodes[leader])
        assert cluster.leader() == leader


def test_a_snapshot_of_what_is_committed_here_is_not_fetched() -> None:
    cluster, leader, _ = cut_off(observers=1)
    cluster.start(101)
    cluster.until(lambda: cluster.nodes[101].high_watermark > 0)
    node = cluster.nodes[101]
    old = EpochOffset(1, node.high_watermark)
    cluster.until(lambda: bool(node.waiting))
    (token,) = node.waiting
    response = FetchResponse(
        error=0, epoch=1, leader_id=leader, high_watermark=node.high_watermark, snapshot=old
    )
    node.core.response(cluster.now_ms, token, response)
    cluster.collect(node)
    refused = [each for each in node.seen if isinstance(each, effects.PeerProblem)]
    assert "committed" in refused[-1].reason
    assert not [each for each in cluster.letters if isinstance(each.message, FetchSnapshotRequest)]


def test_a_voter_that_has_not_heard_of_its_removal_gets_what_is_committed() -> None:
    """The node asks like a voter, for records that may be uncommitted. Found by simulation seed
    460: its fetch waited until the log was cut off after it."""
    cluster = RaftCluster(settings=CHUNKS)
    cluster.until(lambda: bool(leaders(cluster)))
    leader = cluster.leader()
    cluster.append(leader, b"a")
    cluster.settle()
    epoch = cluster.core(leader).epoch
    request = fetch_request(99, 1, epoch, epoch=epoch, max_wait_ms=500, high_watermark=2**63 - 1)
    answer = cluster.inject(leader, request)
    assert isinstance(answer, FetchResponse) and bytes(answer.records)
