"""Historic bugs of replication and commit (README.md of this folder)."""

from __future__ import annotations

import pytest

from quorate.quorum.ids import ZERO_UUID, ReplicaKey
from quorate.quorum.raft.effects import Role
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.messages import FetchRequest, FetchResponse
from quorate.quorum.raft.voter_set import VoterSet, majority_offset
from tests.unit.raft.harness import RaftCluster, RaftNode, key
from tests.unit.raft.memory_log import MemoryMetadataLog
from tests.unit.raft.test_replication import epochs, fetch, fetch_request, filled
from tests.unit.raft.test_votes import ask, vote_request


def test_r17_an_answer_that_says_how_far_logs_diverge_acknowledges_nothing() -> None:
    """CCF #5325: the hint of a refusal was taken for how far the follower's log matches, and what
    it does not have was committed. Here a follower with a longer, other log asks: the leader has
    as many records as it, and none of them is there."""
    cluster = RaftCluster(voters=3, start=False)
    filled(cluster, 1, 1, 3, 3)
    filled(cluster, 2, 1)
    filled(cluster, 3, 1, 2, 2, 2, 2)
    for node_id in (1, 2):
        cluster.start(node_id)
    cluster.elect(1)
    cluster.isolate(2)
    cluster.append(1, b"only here")
    cluster.run(100)
    end = cluster.nodes[1].log.end_offset
    before = cluster.core(1).high_watermark
    assert before < end
    response = fetch(cluster, 1, fetch_request(3, end, 2, epoch=cluster.core(1).epoch))
    assert response.diverging is not None
    assert cluster.core(1).high_watermark == before


def test_r23_sixty_conflicting_epochs_are_sorted_out_without_waiting() -> None:
    """openraft 6d53aa12, cubefs PR #2428: with more than fifty conflicting entries the back-off
    between leader and follower never came to an end. Each epoch costs one round trip at most, and
    no round waits for a timer."""
    odd = [each for each in range(1, 121, 2) for _ in range(2)]
    even = [1, 1, *(each for each in range(2, 121, 2) for _ in range(3))]
    cluster = RaftCluster(voters=3, start=False)
    filled(cluster, 1, *odd, 121)
    filled(cluster, 2, *odd, 121)
    filled(cluster, 3, *even)
    for node_id in (1, 2):
        cluster.start(node_id)
    cluster.elect(1)
    cluster.start(3)
    cluster.until(lambda: bool(cluster.nodes[3].log.truncations))
    start_ms = cluster.now_ms
    cluster.settle()
    assert epochs(cluster, 3) == epochs(cluster, 1)
    assert len(cluster.nodes[3].log.truncations) <= len(set(even))
    assert cluster.now_ms == start_ms


@pytest.mark.parametrize("order", [(1, 2, 3, 4), (4, 3, 2, 1), (2, 4, 1, 3), (3, 1, 4, 2)])
def test_r26_the_majority_does_not_depend_on_the_order_of_acknowledgements(
    order: tuple[int, ...],
) -> None:
    """openraft #1802: the sorted list of progress lost its order by an update in place, and what
    no majority had was committed."""
    reached = {1: 7, 2: 3, 3: 9, 4: 3, 5: 0}
    offsets = dict.fromkeys(reached, 0)
    for step in range(1, 10):
        for voter_id in order:
            offsets[voter_id] = min(reached[voter_id], step)
            by_counting = max(
                each
                for each in range(10)
                if sum(offset >= each for offset in offsets.values()) >= 3
            )
            assert majority_offset(list(offsets.values())) == by_counting
    assert majority_offset([offsets[each] for each in (*order, 5)]) == 3


@pytest.mark.parametrize(("voters", "needed"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (6, 4)])
def test_r34_half_is_no_majority(voters: int, needed: int) -> None:
    """openraft d60f1e85: a quorum that was one too small. Commit, elections and check-quorum each
    need more than half, also of an even number."""
    assert VoterSet(key(each) for each in range(1, voters + 1)).majority == needed
    cluster = RaftCluster(voters=voters)
    cluster.run(10_000)
    leader = cluster.leader()
    alive = [leader, *(each for each in cluster.voter_ids if each != leader)][: needed - 1]
    for node_id in cluster.voter_ids:
        if node_id not in alive:
            cluster.crash(node_id)
    if needed == 1:
        return
    cluster.append(leader, b"half have it")
    cluster.settle()
    assert cluster.core(leader).high_watermark < cluster.nodes[leader].log.end_offset
    cluster.run(30_000)
    assert not any(cluster.role(each) is Role.LEADER for each in cluster.up())


@pytest.mark.parametrize("flushed", [(1, 2), (1, 3), (2, 3), (1, 2, 3)])
def test_r46_power_lost_everywhere_at_once_takes_nothing_committed(
    flushed: tuple[int, ...],
) -> None:
    """lazyfs on etcd (#14143): every node loses all that was not synced, at the moment of the
    commit. Whichever majority made the record durable, it is there afterwards."""
    cluster = RaftCluster(voters=3)
    cluster.elect(1)
    cluster.run(600)
    offset = cluster.append(1, b"precious")
    for follower in (2, 3):
        cluster.deliver(cluster.pick(FetchResponse, 1, follower))
    for node_id in flushed:
        cluster.flush(node_id)
        if node_id != 1:
            cluster.deliver(cluster.pick(FetchRequest, node_id, 1))
    assert cluster.core(1).high_watermark == offset + 1
    for node_id in cluster.voter_ids:
        cluster.crash(node_id)
    assert [len(log) for log in cluster.logs()] == [
        offset + 1 if node_id in flushed else offset for node_id in cluster.voter_ids
    ]
    for node_id in cluster.voter_ids:
        cluster.start(node_id)
    cluster.run(15_000)
    assert all((1, b"precious") in log for log in cluster.logs())


@pytest.mark.parametrize("alone", [1, 2, 3])
def test_r46_what_one_node_had_flushed_was_never_committed(alone: int) -> None:
    """The other side of lazyfs on etcd (#14143): durable on one of three may go, and nobody was
    told of it."""
    cluster = RaftCluster(voters=3)
    cluster.elect(1)
    cluster.run(600)
    offset = cluster.append(1, b"loose")
    for follower in (2, 3):
        cluster.deliver(cluster.pick(FetchResponse, 1, follower))
    cluster.flush(alone)
    if alone != 1:
        cluster.deliver(cluster.pick(FetchRequest, alone, 1))
    assert cluster.core(1).high_watermark == offset


class NodesFromZero(RaftCluster):
    """Voters 0, 1 and 2: an id that is false in Python is an id like any other."""

    def __init__(self) -> None:
        super().__init__(voters=3, start=False)
        self.voter_ids = [0, 1, 2]
        self.voters = tuple(ReplicaKey(each, ZERO_UUID) for each in self.voter_ids)
        self.nodes = {each: RaftNode(key(each), MemoryMetadataLog()) for each in self.voter_ids}
        for node_id in self.voter_ids:
            self.start(node_id)


def test_r50_node_0_votes_leads_and_is_voted_for() -> None:
    """openraft cc8af8cd: none and zero are not the same. Node 0 is elected, is followed, and a vote
    for it is no free vote after a restart."""
    cluster = NodesFromZero()
    cluster.elect(0)
    cluster.append(0, b"a")
    cluster.run(600)
    assert [cluster.core(each).leader_id for each in (0, 1, 2)] == [0, 0, 0]
    assert {node.high_watermark for node in cluster.nodes.values()} == {2}
    cluster.crash(1)
    cluster.nodes[1].saved = Election(7, key(0))
    cluster.start(1)
    assert not ask(cluster, 1, vote_request(2, 1, epoch=7, last=(6, 99))).granted
    assert ask(cluster, 1, vote_request(0, 1, epoch=7, last=(6, 99))).granted
    cluster.crash(0)
    cluster.run(10_000)
    assert cluster.leader() in (1, 2)
    assert cluster.core(cluster.leader()).epoch > 7


def test_r50_offset_0_is_a_record_and_an_empty_log_has_none() -> None:
    """openraft cc8af8cd: the first record has offset 0 and is committed with a high watermark of 1.
    The leader distinguishes an empty follower from one with one record."""
    cluster = RaftCluster(voters=3)
    cluster.elect(1)
    cluster.crash(3)
    cluster.nodes[3].log.forget_from(0)
    cluster.run(100)
    assert cluster.nodes[1].log.entries()[0][0] == 1
    assert cluster.core(1).high_watermark == 1
    for offset, last_epoch, count in ((0, 0, 1), (1, 1, 0)):
        response = fetch(cluster, 1, fetch_request(101, offset, last_epoch, high_watermark=0))
        assert (response.error, response.diverging) == (0, None)
        assert bool(response.records) is bool(count)
