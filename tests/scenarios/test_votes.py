"""Historic bugs of elections (README.md of this folder)."""

from __future__ import annotations

from quorate.quorum.raft.effects import Role
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.messages import VoteRequest, VoteResponse
from tests.unit.raft.harness import RaftCluster, key
from tests.unit.raft.test_membership import catch_up, dynamic, end_of_epoch, voters_of
from tests.unit.raft.test_votes import ask, vote_request


def test_r6_the_vote_of_a_removed_voter_elects_nobody() -> None:
    """NATS RemovedPeerVoteDoesNotElectLeader: of {1, 2, 3} one was removed, then the leader died.
    The last of the two that vote needs the dead one, however gladly the removed one would vote."""
    cluster, leader = dynamic(spares=0)
    removed, last = (each for each in (1, 2, 3) if each != leader)
    cluster.remove_voter(leader, removed)
    catch_up(cluster)
    cluster.crash(leader)
    cluster.run(20_000)
    assert cluster.role(last) is not Role.LEADER
    granted = ask(cluster, removed, vote_request(last, removed, epoch=9, last=(8, 99)))
    assert granted.granted, "it would have voted"
    cluster.start(leader)
    cluster.run(5_000)
    assert cluster.leader() in (leader, last)


def test_r6_a_vote_from_before_the_removal_counts_no_more() -> None:
    """NATS RemovedPeerVoteDoesNotElectLeader, the other way round: first the vote, then the news of
    the removal, by a snapshot. Of the four two had promised theirs, of the three that are left only
    the node itself."""
    cluster, leader = dynamic(voters=4, spares=0)
    me, gone, other = (each for each in (1, 2, 3, 4) if each != leader)
    cluster.crash(me)
    cluster.crash(gone)
    cluster.remove_voter(leader, gone)
    catch_up(cluster)
    assert cluster.take_snapshot(leader)
    cluster.start(me)
    cluster.until(lambda: cluster.nodes[me].installing is not None)
    end = end_of_epoch(cluster, leader, me)
    cluster.crash(leader)
    cluster.crash(other)
    cluster.letters.clear()
    cluster.start(gone)
    cluster.inject(me, end)
    cluster.deliver(cluster.pick(VoteRequest, me, gone))
    response = cluster.pick(VoteResponse, gone, me)
    assert isinstance(response.message, VoteResponse) and response.message.granted
    cluster.deliver(response)
    cluster.install(me)
    assert voters_of(cluster, me) == sorted((leader, me, other))
    assert cluster.role(me) is Role.PROSPECTIVE


def test_r7_a_voter_that_has_not_heard_of_its_own_promotion_is_needed_and_votes() -> None:
    """etcd's campaign_learner_must_vote.txt, raft-rs #57: of {1, 2} and the new 11, the leader died
    right after it had promoted 11. The voter that is left has the record and 11 has not. One vote
    of three is no majority."""
    cluster, leader = dynamic(voters=2)
    (other,) = {1, 2} - {leader}
    cluster.isolate(11)
    cluster.add_voter(leader, 11)
    cluster.until(lambda: voters_of(cluster, other) == [1, 2, 11])
    cluster.crash(leader)
    cluster.heal()
    assert voters_of(cluster, 11) == [1, 2]
    cluster.until(lambda: any(cluster.role(each) is Role.LEADER for each in cluster.up()))
    assert cluster.leader() == other
    assert cluster.nodes[11].saved.voted == key(other)


def test_r11_a_node_ahead_of_a_working_leader_comes_back_in() -> None:
    """raft-rs #84: pre-vote and check-quorum. Its epoch is higher than the leader's, so it accepts
    nothing from that leader. All other voters hear the leader and grant no pre-vote. The node must
    nevertheless rejoin the quorum."""
    cluster = RaftCluster(voters=3)
    cluster.elect(1)
    cluster.run(1_000)
    cluster.crash(3)
    cluster.nodes[3].saved = Election(9, key(3))
    cluster.start(3)
    cluster.run(15_000)
    leader = cluster.leader()
    assert cluster.core(leader).epoch >= 9
    assert {cluster.core(each).leader_id for each in (1, 2, 3)} == {leader}
    cluster.append(leader, b"taken by all")
    cluster.run(1_000)
    assert len({node.high_watermark for node in cluster.nodes.values()}) == 1


def test_r11_a_pre_vote_does_not_go_to_a_shorter_log() -> None:
    """redpanda PR #2071: without the check of the log, a node that cannot win gets pre-votes. It
    raises its epoch, deposes the leader and loses, again and again."""
    cluster = RaftCluster(voters=3)
    cluster.elect(1)
    cluster.isolate(3)
    cluster.append(1, b"3 does not have it")
    cluster.run(100)
    cluster.crash(1)
    cluster.heal()
    cluster.crash(2)
    cluster.start(2)  # it has heard of no leader in this life
    epoch = cluster.core(3).epoch
    cluster.prompt(3)
    cluster.settle()
    assert cluster.core(3).epoch == epoch, "no real vote was asked for"
    cluster.run(15_000)
    assert cluster.leader() == 2


def test_r13_two_that_see_only_each_other_do_not_move_the_epoch() -> None:
    """Ongaro's thesis 9.6, KIP-996: two of five, cut off for a minute, come back to the same leader
    in the same epoch."""
    cluster = RaftCluster(voters=5)
    cluster.elect(1)
    cluster.isolate(4, 5)
    cluster.run(60_000)
    asked = [
        each
        for each in cluster.nodes[4].seen
        if isinstance(getattr(each, "request", 0), VoteRequest)
    ]
    assert asked, "they tried"
    cluster.heal()
    cluster.run(5_000)
    assert (cluster.leader(), cluster.core(1).epoch) == (1, 1)
