"""A voter that lost its log, under the directory id that the others know."""

from __future__ import annotations

import pytest

from quorate.quorum.ids import EpochOffset
from quorate.quorum.raft.effects import CaughtUp, Role
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.messages import FetchRequest, VoteRequest, VoteResponse
from quorate.quorum.raft.settings import RaftSettings
from tests.unit.raft.harness import CLUSTER_ID, RaftCluster, key


def committed_by_1_and_2(cluster: RaftCluster) -> None:
    """Commit a record without voter 3, which is cut off before the append."""
    cluster.connect_all()
    cluster.elect(1)
    cluster.isolate(3)
    cluster.append(1, b"committed by 1 and 2")
    cluster.settle()
    assert cluster.core(1).high_watermark == cluster.nodes[2].log.end_offset > 0


def ask(cluster: RaftCluster, node_id: int, *, pre_vote: bool, epoch: int = 9) -> VoteResponse:
    request = VoteRequest(
        cluster_id=CLUSTER_ID,
        voter=key(node_id),
        candidate=key(3),
        epoch=epoch,
        last=EpochOffset(epoch - 1, 10_000),
        pre_vote=pre_vote,
    )
    response = cluster.inject(node_id, request)
    assert isinstance(response, VoteResponse)
    return response


def test_a_stale_voter_and_one_that_lost_its_log_elect_nobody() -> None:
    """If these two elected a leader, a committed topic would vanish."""
    cluster = RaftCluster()
    committed_by_1_and_2(cluster)
    cluster.crash(1)
    cluster.crash(2)
    cluster.lose_log(2)
    cluster.start(2)
    cluster.heal()
    cluster.run(20_000)
    assert not {cluster.role(2), cluster.role(3)} & {Role.CANDIDATE, Role.LEADER}
    assert cluster.core(3).epoch == 1, "no vote was asked for"
    assert cluster.core(2).catching_up
    cluster.start(1)
    cluster.run(20_000)
    assert cluster.leader() == 1
    assert not cluster.core(2).catching_up
    values = [value for _, value in cluster.nodes[2].log.entries()]
    assert b"committed by 1 and 2" in values
    assert cluster.nodes[2].log.entries() == cluster.nodes[3].log.entries()


@pytest.mark.parametrize("pre_vote", [True, False])
def test_it_grants_no_vote(pre_vote: bool) -> None:
    cluster = RaftCluster()
    committed_by_1_and_2(cluster)
    for node_id in (1, 2):
        cluster.crash(node_id)
    assert ask_again(cluster, lost=False, pre_vote=pre_vote).granted
    cluster.crash(2)
    cluster.nodes[2].lost_log = True
    assert not ask_again(cluster, lost=True, pre_vote=pre_vote).granted


def ask_again(cluster: RaftCluster, *, lost: bool, pre_vote: bool) -> VoteResponse:
    cluster.start(2)
    assert cluster.core(2).catching_up == lost
    return ask(cluster, 2, pre_vote=pre_vote, epoch=19 if lost else 9)


def test_it_starts_no_election() -> None:
    cluster = RaftCluster()
    committed_by_1_and_2(cluster)
    for node_id in (1, 2):
        cluster.crash(node_id)
    cluster.lose_log(2)
    cluster.start(2)
    epoch = cluster.core(2).epoch
    cluster.run(30_000)
    assert not any(isinstance(each.message, VoteRequest) for each in cluster.letters)
    assert cluster.core(2).epoch == epoch and cluster.role(2) is Role.UNATTACHED


def test_it_catches_up_with_the_leader_that_had_counted_it() -> None:
    """In the same epoch, the leader accepts its fetch from offset 0, although it steps back
    (KAFKA-12181)."""
    cluster = RaftCluster()
    committed_by_1_and_2(cluster)
    cluster.crash(2)
    cluster.lose_log(2)
    cluster.heal()
    cluster.start(2)
    cluster.until(lambda: not cluster.core(2).catching_up)
    assert cluster.leader() == 1 and cluster.core(1).epoch == 1
    assert cluster.nodes[2].log.entries() == cluster.nodes[1].log.entries()
    cluster.crash(1)
    cluster.run(20_000)
    assert cluster.leader() in (2, 3), "it votes again"


def test_a_leader_does_not_count_what_it_fetches_before_it_has_caught_up() -> None:
    cluster = RaftCluster()
    committed_by_1_and_2(cluster)
    cluster.crash(2)
    before = cluster.core(1).high_watermark
    offset = cluster.append(1, b"only on 1")
    cluster.settle()
    for catching_up in (True, False):
        request = FetchRequest(
            cluster_id=CLUSTER_ID,
            replica=key(2),
            epoch=1,
            offset=offset + 1,
            last_fetched_epoch=1,
            max_wait_ms=0,
            max_bytes=1000,
            high_watermark=0,
            catching_up=catching_up,
        )
        cluster.deliver_request(1, request)
        assert cluster.core(1).high_watermark == (before if catching_up else offset + 1)


def test_it_does_not_vote_before_the_leader_has_committed_in_its_own_epoch() -> None:
    """The high watermark of a new leader may be far below the committed records."""
    cluster = RaftCluster()
    committed_by_1_and_2(cluster)
    cluster.crash(2)
    cluster.lose_log(2)
    cluster.crash(1)
    cluster.heal()
    cluster.start(1)
    cluster.until(lambda: cluster.role(1) is Role.LEADER)
    assert cluster.core(1).high_watermark == 0, "it has committed nothing in its epoch"
    cluster.isolate(3)
    cluster.start(2)
    cluster.run(1_000)
    assert cluster.nodes[2].log.end_offset > 0
    assert cluster.core(2).catching_up
    cluster.heal()
    cluster.until(lambda: not cluster.core(2).catching_up)


def test_an_old_high_watermark_of_a_new_leader_does_not_end_it() -> None:
    """A leader that restarted knows only the records in its snapshot as committed.

    The replica fetches one batch at a time, and the leader's log skips epochs.
    """
    cluster = RaftCluster(settings=RaftSettings(fetch_max_bytes=1))
    cluster.connect_all()
    cluster.elect(1)
    cluster.append(1, b"in the snapshot")
    cluster.run(2_000)
    snapshot = cluster.take_snapshot(1)
    assert snapshot is not None
    cluster.isolate(3)
    cluster.append(1, b"behind it")
    cluster.settle()
    cluster.crash(1)
    cluster.crash(2)
    cluster.lose_log(2)
    cluster.heal()
    cluster.nodes[1].saved = Election(7)
    cluster.start(1)
    cluster.until(lambda: cluster.role(1) is Role.LEADER)
    cluster.isolate(3)
    assert cluster.core(1).high_watermark == snapshot.offset
    cluster.start(2)
    cluster.run(1_000)
    assert cluster.nodes[2].log.end_offset == cluster.nodes[1].log.end_offset
    assert cluster.core(2).high_watermark == snapshot.offset
    assert not any(isinstance(each, CaughtUp) for each in cluster.nodes[2].seen)
    cluster.heal()
    cluster.until(lambda: not cluster.core(2).catching_up)


def test_it_follows_no_leader_of_an_epoch_in_which_it_no_longer_voted() -> None:
    """The replica voted in epoch 2, and the leader of epoch 1 does not know that yet."""
    cluster = RaftCluster()
    cluster.connect_all()
    cluster.elect(1)
    cluster.isolate(1)
    cluster.until(lambda: Role.LEADER in (cluster.role(2), cluster.role(3)))
    cluster.settle()
    leader = cluster.leader()
    lost = 5 - leader
    assert cluster.nodes[lost].saved.epoch > cluster.nodes[1].saved.epoch
    cluster.append(leader, b"committed by 2 and 3")
    cluster.settle()
    cluster.crash(lost)
    cluster.lose_log(lost)
    cluster.heal()
    cluster.isolate(leader)
    cluster.start(lost)
    cluster.run(10_000)
    assert cluster.core(lost).catching_up, "only the other one has what it acknowledged"
    assert b"committed by 2 and 3" not in dict(cluster.nodes[1].log.entries()).values()
    assert cluster.role(1) is not Role.LEADER
    cluster.heal()
    cluster.until(lambda: not cluster.core(lost).catching_up)
    assert all(log == cluster.nodes[leader].log.entries() for log in cluster.logs())


def test_its_only_voter_waits_for_an_operator() -> None:
    cluster = RaftCluster(1)
    cluster.run(5_000)
    assert cluster.role(1) is Role.LEADER
    cluster.crash(1)
    cluster.lose_log(1)
    cluster.start(1)
    cluster.run(30_000)
    assert cluster.role(1) is Role.UNATTACHED and cluster.core(1).catching_up
    cluster.crash(1)
    cluster.nodes[1].lost_log = False  # it is declared new
    cluster.start(1)
    cluster.run(5_000)
    assert cluster.role(1) is Role.LEADER


def test_a_dynamic_voter_learns_from_the_leader_that_it_votes() -> None:
    cluster = RaftCluster(dynamic=True)
    cluster.elect(1)
    cluster.append(1, b"a")
    cluster.run(2_000)
    cluster.crash(2)
    cluster.lose_log(2)
    cluster.start(2)
    cluster.until(lambda: not cluster.core(2).catching_up)
    cluster.crash(1)
    cluster.run(20_000)
    assert cluster.leader() in (2, 3)


def test_it_catches_up_by_a_snapshot() -> None:
    cluster = RaftCluster()
    cluster.connect_all()
    cluster.elect(1)
    cluster.append(1, b"a")
    cluster.run(2_000)
    assert cluster.take_snapshot(1) is not None
    cluster.crash(2)
    cluster.lose_log(2)
    cluster.start(2)
    cluster.until(lambda: not cluster.core(2).catching_up)
    cluster.crash(1)
    cluster.run(20_000)
    assert cluster.leader() in (2, 3)


def test_one_in_a_later_epoch_than_the_leader_is_led_again() -> None:
    """The mark of the replica names an epoch that no other voter has seen. The replica does not
    campaign, so the leader steps down, and the next election passes that epoch."""
    cluster = RaftCluster()
    cluster.connect_all()
    cluster.elect(1)
    cluster.append(1, b"a")
    cluster.run(2_000)
    cluster.crash(2)
    cluster.lose_log(2)
    cluster.nodes[2].saved = Election(9)
    cluster.start(2)
    cluster.run(20_000)
    assert not cluster.core(2).catching_up
    assert cluster.core(cluster.leader()).epoch > 9
