"""Historic bugs in changes of the voters (README.md of this folder)."""

from __future__ import annotations

import pytest

from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.raft.effects import Role
from tests.unit.raft.harness import RaftCluster
from tests.unit.raft.test_membership import answer, catch_up, dynamic, voters_of
from tests.unit.raft.test_replication import fetch, fetch_request

ADD_11, ADD_12, REMOVE_FIRST, REMOVE_OLD = "add 11", "add 12", "remove 1st", "remove the old leader"


def change(cluster: RaftCluster, leader: int, what: str, others: list[int], old: int) -> int:
    match what:
        case "add 11" | "add 12":
            return cluster.add_voter(leader, int(what[-2:]))
        case "remove 1st":
            return cluster.remove_voter(leader, others[0])
        case _:
            return cluster.remove_voter(leader, old)


@pytest.mark.parametrize(
    ("first", "second"),
    [(ADD_11, REMOVE_OLD), (ADD_11, ADD_12), (REMOVE_FIRST, REMOVE_OLD)],
    ids=["add and remove", "two adds", "two removes"],
)
def test_r27_two_leaders_change_the_voters_of_one_set(first: str, second: str) -> None:
    """Ongaro's bug of single-server changes (raft-dev, July 2015), its three variants: an old
    leader appended a change that nobody has, a new one makes another at once. Their majorities need
    not meet, so the new one waits until a record of its own epoch is committed under the old set.
    """
    cluster, old = dynamic(voters=4, spares=2)
    others = [each for each in (1, 2, 3, 4) if each != old]
    cluster.isolate(old)
    change(cluster, old, first, others, old)
    assert voters_of(cluster, old) != [1, 2, 3, 4], "a set counts from its append"
    cluster.until(lambda: any(cluster.role(each) is Role.LEADER for each in others))
    (new,) = (each for each in others if cluster.role(each) is Role.LEADER)
    cluster.letters.clear()
    cluster.save_all(new)
    cluster.letters.clear()  # what it appended has reached nobody
    token = change(cluster, new, second, others, old)
    assert answer(cluster, new, token) == (
        ErrorCode.REQUEST_TIMED_OUT,
        "this leader has not committed a record of its epoch yet; try again",
    )
    assert voters_of(cluster, new) == [1, 2, 3, 4]
    cluster.until(lambda: committed_own(cluster, new))
    cluster.run(6_000)
    assert cluster.role(new) is Role.LEADER
    token = change(cluster, new, second, others, old)
    cluster.run(1_000)
    cluster.heal()
    cluster.run(8_000)
    assert answer(cluster, new, token) == (ErrorCode.NONE, "")
    expected = {ADD_12: [1, 2, 3, 4, 12], REMOVE_OLD: others}[second]
    assert {tuple(voters_of(cluster, each)) for each in cluster.up()} == {tuple(expected)}


def committed_own(cluster: RaftCluster, node_id: int) -> bool:
    node = cluster.nodes[node_id]
    below = [each for each in node.log.batches if each.next_offset <= node.high_watermark]
    return bool(below) and below[-1].epoch == node.core.epoch


def test_r29_what_observers_have_commits_nothing() -> None:
    """openraft beb0302b and 6c0ccaf3, async-raft #62, camunda #57387: learners counted for the
    majority. Two observers and a controller that does not vote say that they have it all, and no
    voter has."""
    cluster, leader = dynamic(spares=1, observers=2)
    before = cluster.nodes[leader].high_watermark
    cluster.isolate(*(each for each in (1, 2, 3) if each != leader))
    cluster.append(leader, b"a")
    cluster.run(1_000)
    end, epoch = cluster.nodes[leader].log.end_offset, cluster.core(leader).epoch
    assert cluster.nodes[leader].log.flushed_offset == end > before
    cluster.append(leader, b"b")
    for observer in (11, 101, 102):
        assert fetch(cluster, leader, fetch_request(observer, end, epoch, epoch=epoch)).error == 0
    cluster.flush(leader)
    described = cluster.core(leader).describe()
    assert described is not None
    assert [each.log_end_offset for each in described.observers] == [end, end, end]
    assert cluster.nodes[leader].high_watermark == before


def test_r29_a_change_is_committed_by_the_set_that_it_makes() -> None:
    """openraft beb0302b: a configuration was committed by the quorum before it. With the third
    voter added to two, the two old ones are a majority; with the fourth added to three, the leader
    and one more are not."""
    cluster, leader = dynamic()
    first, second = (each for each in (1, 2, 3) if each != leader)
    cluster.isolate(first, 11)
    token = cluster.add_voter(leader, 11)
    cluster.run(1_000)
    assert cluster.nodes[second].log.end_offset == cluster.nodes[leader].log.end_offset
    assert token not in cluster.nodes[leader].answers
    cluster.heal()
    cluster.until(lambda: token in cluster.nodes[leader].answers)
    assert answer(cluster, leader, token)[0] is ErrorCode.NONE


def test_r31_a_leader_that_removes_itself_hands_on_an_available_quorum() -> None:
    """etcd confchange_v1_remove_leader*.txt, openraft 0023cff1: the leader left before the other
    voters knew of its removal, or it never left. Here one of two voters removes itself. The other
    one then leads alone and commits."""
    cluster, leader = dynamic(voters=2, spares=0)
    (other,) = {1, 2} - {leader}
    cluster.isolate(other)
    cluster.remove_voter(leader, leader)
    cluster.run(500)
    assert cluster.role(leader) is Role.LEADER, "the other has not heard of it"
    cluster.heal()
    cluster.run(8_000)
    assert cluster.leader() == other
    assert cluster.role(leader) is Role.FOLLOWER
    cluster.crash(leader)
    offset = cluster.append(other, b"alone")
    cluster.settle()
    assert cluster.nodes[other].high_watermark == offset + 1


def test_r39_a_snapshot_says_who_voted_at_its_end_and_not_later() -> None:
    """NATS: a snapshot held a change of the members that was not committed, and a node that began
    with it kept the change after it had been truncated everywhere else."""
    cluster, leader = dynamic(spares=2, observers=0)
    cluster.crash(12)
    cluster.nodes[12].log.forget_from(0)
    cluster.append(leader, b"committed")
    catch_up(cluster)
    cluster.isolate(leader)
    cluster.add_voter(leader, 11)
    assert voters_of(cluster, leader) == [1, 2, 3, 11]
    snapshot = cluster.take_snapshot(leader)
    assert snapshot is not None
    content = cluster.nodes[leader].snapshots.files[snapshot]
    assert content.endswith(b" 1 1,2,3")
    assert cluster.core(leader).voters_at(snapshot.offset).voters[-1].voter_id == 3


def test_r30_a_replaced_disk_neither_votes_nor_acknowledges() -> None:
    """Apache Kafka's RaftEventSimulationTest with a wiped disk, KIP-853: the same id with another
    directory is another replica. It catches up, and counts once it has been added as such."""
    cluster, leader = dynamic(spares=0)
    wiped, other = (each for each in (1, 2, 3) if each != leader)
    cluster.wipe(wiped)
    cluster.start(wiped)
    cluster.crash(other)
    before = cluster.nodes[leader].high_watermark
    cluster.append(leader, b"on the leader and the wiped disk")
    cluster.until(lambda: cluster.nodes[wiped].log.end_offset > 0, 1_000)
    cluster.run(300)
    assert cluster.nodes[leader].high_watermark == before


def test_r28_the_set_before_counts_again_in_elections() -> None:
    """NATS TruncateWALRevertsUncommittedAddPeer: after the truncation of a change the node still
    counted with the set of the change. Cut back to three voters it is elected with two votes."""
    cluster, old = dynamic()
    cluster.isolate(old)
    cluster.add_voter(old, 11)
    cluster.run(5_000)
    cluster.heal()
    cluster.run(5_000)
    assert voters_of(cluster, old) == [1, 2, 3]
    new = cluster.leader()
    (third,) = {1, 2, 3} - {old, new}
    cluster.isolate(11)
    cluster.crash(third)
    cluster.append(new, b"the third does not have it")
    cluster.run(1_000)
    cluster.crash(new)
    cluster.start(third)
    cluster.run(15_000)
    assert cluster.leader() == old
    assert cluster.nodes[old].high_watermark == cluster.nodes[old].log.end_offset
