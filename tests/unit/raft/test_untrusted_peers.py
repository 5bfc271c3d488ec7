"""False claims of other nodes: the node refuses them and continues as before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorate.quorum.ids import NO_NODE, EpochOffset
from quorate.quorum.log.batches.batch import (
    CONTROL,
    BatchHeader,
    build_batch,
    build_value_batch,
    records_of,
)
from quorate.quorum.log.batches.record import Record
from quorate.quorum.node_message_bounds import INT32_MAX
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.raft import effects
from quorate.quorum.raft.control_records import (
    ControlType,
    VotersRecord,
    control_key,
    encode_control,
)
from quorate.quorum.raft.core import CLAIM_REPORT_INTERVAL_MS, MAX_REPORTED
from quorate.quorum.raft.effects import Role
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.epoch_limits import MAX_EPOCH_JUMP, replaces_unproved_leader
from quorate.quorum.raft.log_view import AcceptedBatches
from quorate.quorum.raft.messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchResponse,
    FetchSnapshotResponse,
    LeaderAddress,
    Request,
    VoteRequest,
    VoteResponse,
)
from quorate.quorum.raft.snapshots import MAX_SNAPSHOT_BYTES
from quorate.quorum.raft.states import Follower
from quorate.quorum.raft.voter_set import VoterSet
from tests.unit.raft.harness import CLUSTER_ID, Letter, RaftCluster, key, voter
from tests.unit.raft.test_snapshots import cut_off

WALL_MS = 1_000


def led() -> RaftCluster:
    """Return three voters. Node 1 leads epoch 1, and two records are committed on all of them."""
    cluster = RaftCluster()
    cluster.elect(1)
    cluster.append(1, b"a")
    cluster.run(600)
    assert all(cluster.core(each).high_watermark == 2 for each in (1, 2, 3))
    return cluster


def doubts(cluster: RaftCluster, node_id: int) -> list[str]:
    return [
        each.reason for each in cluster.nodes[node_id].seen if isinstance(each, effects.PeerProblem)
    ]


def works(cluster: RaftCluster) -> None:
    """Check that the same leader still commits records, on all nodes."""
    cluster.append(1, b"later")
    end = cluster.nodes[1].log.end_offset
    cluster.run(1500)
    for each in (1, 2, 3):
        assert (cluster.core(each).epoch, cluster.core(each).leader_id) == (1, 1)
        assert cluster.core(each).high_watermark == end


def claims(target: int, epoch: int) -> list[Request]:
    vote = VoteRequest(
        cluster_id=CLUSTER_ID,
        voter=key(target),
        candidate=key(3),
        epoch=epoch,
        last=EpochOffset(1, 1000),
        pre_vote=False,
    )
    return [
        vote,
        replace(vote, pre_vote=True),
        BeginQuorumEpochRequest(cluster_id=CLUSTER_ID, voter=key(target), leader_id=3, epoch=epoch),
        EndQuorumEpochRequest(
            cluster_id=CLUSTER_ID, leader_id=3, epoch=epoch, preferred_candidates=()
        ),
    ]


@pytest.mark.parametrize("target", [1, 2])
@pytest.mark.parametrize("epoch", [MAX_EPOCH_JUMP + 2, INT32_MAX - 1, INT32_MAX])
@pytest.mark.parametrize("number", range(4))
def test_an_implausible_epoch_is_refused(target: int, epoch: int, number: int) -> None:
    cluster = led()
    response = cluster.inject(target, claims(target, epoch)[number])
    assert response is not None
    assert response.error == ErrorCode.INVALID_REQUEST
    assert any("claims epoch" in each for each in doubts(cluster, target))
    works(cluster)


@pytest.mark.parametrize("target", [1, 2])
@pytest.mark.parametrize("number", [2, 3])
def test_another_leader_of_the_same_epoch_is_refused(target: int, number: int) -> None:
    """The leader refuses the claim, too. It used to stop."""
    cluster = led()
    response = cluster.inject(target, claims(target, 1)[number])
    assert response is not None
    assert response.error == ErrorCode.INVALID_REQUEST
    assert any("leads epoch 1, whose leader is 1" in each for each in doubts(cluster, target))
    works(cluster)


@pytest.mark.parametrize(
    "answer",
    [
        FetchResponse(error=0, epoch=INT32_MAX, leader_id=3, high_watermark=9),
        FetchResponse(error=0, epoch=1, leader_id=3, high_watermark=9),
        FetchResponse(error=6, epoch=1, leader_id=3, high_watermark=9),
        FetchResponse(error=0, epoch=0, leader_id=1, high_watermark=9),
        FetchResponse(error=0, epoch=1, leader_id=NO_NODE, high_watermark=9),
        FetchResponse(error=0, epoch=1, leader_id=1, high_watermark=9, diverging=EpochOffset(0, 0)),
        FetchResponse(
            error=0, epoch=1, leader_id=1, high_watermark=9, diverging=EpochOffset(7, 1 << 62)
        ),
        FetchResponse(error=0, epoch=1, leader_id=1, high_watermark=9, snapshot=EpochOffset(1, 2)),
        FetchResponse(
            error=0, epoch=1, leader_id=1, high_watermark=9, snapshot=EpochOffset(2, 1 << 62)
        ),
    ],
    ids=repr,
)
def test_a_false_answer_to_a_fetch_changes_nothing(answer: FetchResponse) -> None:
    cluster = led()
    cluster.append(1, b"b")
    letter = cluster.pick(FetchResponse, 1, 2)
    letter.message = answer
    cluster.deliver(letter)
    assert cluster.core(2).high_watermark == 2
    assert cluster.nodes[2].log.end_offset == 2
    works(cluster)


def test_a_divergence_inside_of_a_batch_removes_the_batch() -> None:
    """The log then ends below the offset that the leader named, also for the durable offset."""
    cluster = led()
    cluster.append(1, b"b", b"c", b"d")
    cluster.deliver(cluster.pick(FetchResponse, 1, 2))
    cluster.flush(2)
    assert cluster.nodes[2].log.end_offset == 5
    answer = FetchResponse(
        error=0, epoch=1, leader_id=1, high_watermark=2, diverging=EpochOffset(1, 3)
    )
    cluster.append(1, b"e")  # the leader answers the next fetch immediately
    cluster.deliver(cluster.pick(FetchRequest, 2, 1))
    reply = cluster.pick(FetchResponse, 1, 2)
    reply.message = answer
    cluster.deliver(reply)
    assert cluster.nodes[2].log.end_offset == 2
    cluster.core(2).flushed(cluster.now_ms, 1, 2)  # asserts that the log has all that is durable


def test_a_divergence_inside_of_a_batch_never_removes_committed_records() -> None:
    """The node keeps a batch of which the leader said that a part is committed. It used to stop."""
    cluster = led()
    cluster.append(1, b"b", b"c", b"d")
    reply = cluster.pick(FetchResponse, 1, 2)
    answer = reply.message
    assert isinstance(answer, FetchResponse)
    reply.message = replace(answer, high_watermark=3)
    cluster.deliver(reply)
    assert (cluster.nodes[2].log.end_offset, cluster.core(2).high_watermark) == (5, 3)
    cluster.flush(2)
    cluster.append(1, b"e")  # the leader answers the next fetch immediately
    cluster.deliver(cluster.pick(FetchRequest, 2, 1))
    reply = cluster.pick(FetchResponse, 1, 2)
    reply.message = FetchResponse(
        error=0, epoch=1, leader_id=1, high_watermark=3, diverging=EpochOffset(1, 3)
    )
    cluster.deliver(reply)
    assert cluster.nodes[2].log.end_offset == 5
    assert any("committed records from offset 2 to 3" in each for each in doubts(cluster, 2))
    works(cluster)


def records(end: int, epoch: int = 1) -> dict[str, bytes]:
    value_batch = bytes(
        build_value_batch([b"x"], base_offset=end, leader_epoch=epoch, timestamp_ms=WALL_MS)
    )
    garbage = Record(end, WALL_MS, control_key(ControlType.KRAFT_VOTERS), b"\xff\xff")
    no_key = Record(end, WALL_MS, None, b"")
    later = build_value_batch([b"x"], base_offset=end, leader_epoch=epoch + 1, timestamp_ms=WALL_MS)
    voters = encode_control(VotersRecord(version=0, voters=(voter(1),)))
    twice = [Record(offset, WALL_MS, *voters) for offset in (end, end, end + 2)]
    return {
        "a later epoch": bytes(later),
        "two voters records of one offset": bytes(
            build_batch(twice, leader_epoch=epoch, flags=CONTROL)
        ),
        "a voters record of garbage": bytes(
            build_batch([garbage], leader_epoch=epoch, flags=CONTROL)
        ),
        "a control record without key": bytes(
            build_batch([no_key], leader_epoch=epoch, flags=CONTROL)
        ),
        "cut off": value_batch[:-1],
        "a flipped bit": value_batch[:-1] + bytes([value_batch[-1] ^ 1]),
        "a value that cannot be read": bytes(
            build_value_batch([b"bad"], base_offset=end, leader_epoch=epoch, timestamp_ms=WALL_MS)
        ),
    }


@pytest.mark.parametrize("kind", list(records(0)))
def test_records_that_cannot_be_the_leaders_are_not_appended(kind: str) -> None:
    class Readable(AcceptedBatches):
        def check(self, buffer: memoryview, position: int, header: BatchHeader) -> None:
            if any(each.value == b"bad" for each in records_of(buffer, position, header)):
                raise ZeroDivisionError

    cluster = led()
    cluster.core(2).follow_batches(Readable())
    cluster.append(1, b"b")
    letter = cluster.pick(FetchResponse, 1, 2)
    answer = letter.message
    assert isinstance(answer, FetchResponse)
    letter.message = replace(answer, records=records(2)[kind])
    cluster.deliver(letter)
    assert cluster.nodes[2].log.end_offset == 2
    works(cluster)


@pytest.mark.parametrize("size_bytes", [0, 1, MAX_SNAPSHOT_BYTES + 1, 1 << 62])
def test_a_snapshot_has_one_size_and_it_is_bounded(size_bytes: int) -> None:
    def chunks() -> list[Letter]:
        return [each for each in cluster.letters if isinstance(each.message, FetchSnapshotResponse)]

    cluster, _, snapshot = cut_off(observers=1)
    cluster.start(101)
    cluster.until(lambda: bool(chunks()))
    (letter,) = chunks()
    message = letter.message
    assert isinstance(message, FetchSnapshotResponse)
    assert len(message.data) < message.size_bytes  # one of several
    letter.message = replace(message, size_bytes=size_bytes)
    cluster.deliver(letter)
    assert cluster.nodes[101].snapshots.part_bytes(snapshot) == 0
    cluster.run(2000)
    assert cluster.core(101).high_watermark > snapshot.offset


def test_a_snapshot_does_not_change_its_size() -> None:
    def chunks() -> list[Letter]:
        return [each for each in cluster.letters if isinstance(each.message, FetchSnapshotResponse)]

    cluster, _, snapshot = cut_off(observers=1)
    cluster.start(101)
    cluster.until(lambda: cluster.nodes[101].snapshots.part_bytes(snapshot) > 0)
    received_bytes = cluster.nodes[101].snapshots.part_bytes(snapshot)
    cluster.until(lambda: bool(chunks()))
    (letter,) = chunks()
    message = letter.message
    assert isinstance(message, FetchSnapshotResponse)
    letter.message = replace(message, size_bytes=message.size_bytes + 1)
    cluster.deliver(letter)
    assert cluster.nodes[101].snapshots.part_bytes(snapshot) == received_bytes


def test_a_configured_voter_is_where_the_configuration_says() -> None:
    cluster = led()
    request = BeginQuorumEpochRequest(
        cluster_id=CLUSTER_ID,
        voter=key(2),
        leader_id=1,
        epoch=1,
        leader=LeaderAddress(host="elsewhere", port=1),
    )
    cluster.inject(2, request)
    assert not [each for each in cluster.nodes[2].seen if isinstance(each, effects.LeaderFound)]


def test_nothing_is_elected_beyond_the_last_epoch() -> None:
    cluster = RaftCluster(start=False)
    for each in (1, 2, 3):
        cluster.nodes[each].saved = Election(INT32_MAX)
        cluster.start(each)
    cluster.run(20_000)
    for each in (1, 2, 3):
        assert cluster.core(each).epoch == INT32_MAX
        assert cluster.core(each).role is not Role.LEADER
    said = [text for each in (1, 2, 3) for text in doubts(cluster, each)]
    assert any("repair-epoch" in each for each in said)


def test_a_resigned_leader_of_the_last_epoch_stays() -> None:
    cluster = RaftCluster(start=False)
    for each in (1, 2, 3):
        leader_id = 1 if each == 1 else NO_NODE
        cluster.nodes[each].saved = Election(INT32_MAX, None, leader_id)
        cluster.start(each)
    cluster.run(20_000)
    assert cluster.core(1).role is Role.RESIGNED
    assert cluster.core(1).epoch == INT32_MAX


def test_doubts_are_reported_at_a_bounded_rate() -> None:
    cluster = led()
    for _ in range(1000):
        cluster.inject(2, claims(2, INT32_MAX)[0])
    assert len(doubts(cluster, 2)) == 1
    cluster.run(CLAIM_REPORT_INTERVAL_MS)
    cluster.inject(2, claims(2, INT32_MAX)[0])
    assert doubts(cluster, 2)[-1].endswith("(refused so far: 1001)")


def test_a_vote_response_with_another_leader_changes_nothing() -> None:
    cluster = led()
    state = cluster.core(2)
    cluster.nodes[2].core.link_refused(cluster.now_ms, 1)
    cluster.run(100)
    answer = VoteResponse(error=0, epoch=INT32_MAX, leader_id=2, granted=False)
    for token in list(cluster.nodes[2].waiting):
        state.response(cluster.now_ms, token, answer)
    assert state.epoch < MAX_EPOCH_JUMP


def test_an_observer_in_a_later_epoch_than_the_leader_is_led_again() -> None:
    """One vote request raises the observer's epoch. It never campaigns, so the voters have to
    follow."""
    cluster = RaftCluster(observers=1)
    cluster.elect(1)
    cluster.append(1, b"a")
    cluster.run(600)
    (observer,) = set(cluster.nodes) - {1, 2, 3}
    later = VoteRequest(
        cluster_id=CLUSTER_ID,
        voter=cluster.nodes[observer].me,
        candidate=key(77),
        epoch=5,
        last=EpochOffset(4, 100),
        pre_vote=True,
    )
    assert cluster.inject(observer, later) is not None
    assert cluster.core(observer).epoch == 5
    cluster.run(10_000)
    leader = cluster.leader()
    assert cluster.core(leader).epoch > 5
    assert cluster.core(observer).leader_id == leader
    assert cluster.core(observer).high_watermark == cluster.core(leader).high_watermark > 2


def resignation(leader_id: int, epoch: int) -> EndQuorumEpochRequest:
    return EndQuorumEpochRequest(
        cluster_id=CLUSTER_ID, leader_id=leader_id, epoch=epoch, preferred_candidates=()
    )


def test_a_false_leader_that_never_responded_gives_way_to_a_voter() -> None:
    """The observer learns of the epoch from a liar, before the leader of that epoch reaches it."""
    cluster = RaftCluster(observers=1)
    cluster.elect(1)
    cluster.append(1, b"a")
    cluster.run(600)
    (observer,) = set(cluster.nodes) - {1, 2, 3}
    cluster.isolate(observer)
    cluster.kill(1)
    cluster.until(lambda: Role.LEADER in (cluster.role(2), cluster.role(3)))
    leader = cluster.leader()
    epoch = cluster.core(leader).epoch
    response = cluster.inject(observer, resignation(77, epoch))
    assert response is not None and response.error == ErrorCode.NONE
    assert cluster.core(observer).leader_id == 77
    cluster.heal()
    cluster.append(leader, b"b")
    cluster.run(5_000)
    assert cluster.core(leader).epoch == epoch, "no further election was needed"
    assert cluster.core(observer).leader_id == leader
    assert cluster.core(observer).high_watermark == cluster.core(leader).high_watermark > 2


def test_a_leader_that_has_responded_gives_way_to_no_claim() -> None:
    """Also if it is a voter that this node does not know yet."""
    core = led().core(2)._core
    epoch = core.epoch
    assert isinstance(core.state, Follower) and core.state.has_fetched
    assert not replaces_unproved_leader(core, epoch, 3)
    core.election = replace(core.election, leader_id=77)
    assert not replaces_unproved_leader(core, epoch, 3)
    core.state.has_fetched = False
    assert replaces_unproved_leader(core, epoch, 3)
    for another_epoch, leader_id in ((epoch + 1, 3), (epoch, 78), (epoch, 2)):
        assert not replaces_unproved_leader(core, another_epoch, leader_id)
    core.voters = VoterSet(())
    assert replaces_unproved_leader(core, epoch, 78), "it knows no voter yet"


def test_a_fetch_of_an_epoch_too_far_ahead_deposes_no_leader() -> None:
    cluster = led()
    far = FetchRequest(
        cluster_id=CLUSTER_ID,
        replica=key(77),
        epoch=1 + MAX_EPOCH_JUMP + 1,
        offset=0,
        last_fetched_epoch=0,
        max_wait_ms=0,
        max_bytes=1000,
        high_watermark=0,
    )
    response = cluster.inject(1, far)
    assert response is not None and response.error == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert cluster.role(1) is Role.LEADER
    works(cluster)


def test_problems_of_a_bounded_number_of_replicas_are_remembered() -> None:
    """An observer may have any id, and the node stores the last problem of each id."""
    core = led().core(1)._core
    for replica_id in range(MAX_REPORTED + 10):
        core.report(replica_id, "a problem")
    assert len(core.reported) == 10
