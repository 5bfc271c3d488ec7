"""Votes and epochs: the rules of KIP-595 and KIP-996, and R1 to R13 of tests/scenarios."""

from __future__ import annotations

import pytest

from quorate.quorum.ids import ZERO_UUID, EpochOffset, ReplicaKey
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.raft import effects
from quorate.quorum.raft.effects import Role
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.messages import (
    BeginQuorumEpochRequest,
    FetchRequest,
    VoteRequest,
    VoteResponse,
)
from tests.unit.raft.harness import CLUSTER_ID, RaftCluster, key


def vote_request(
    candidate: int | ReplicaKey,
    voter: int,
    *,
    epoch: int,
    last: tuple[int, int] = (0, 0),
    pre_vote: bool = False,
    cluster_id: str = CLUSTER_ID,
    voter_key: ReplicaKey | None = None,
) -> VoteRequest:
    return VoteRequest(
        cluster_id=cluster_id,
        voter=voter_key or key(voter),
        candidate=key(candidate) if isinstance(candidate, int) else candidate,
        epoch=epoch,
        last=EpochOffset(*last),
        pre_vote=pre_vote,
    )


def ask(cluster: RaftCluster, voter: int, request: VoteRequest) -> VoteResponse:
    response = cluster.inject(voter, request)
    assert isinstance(response, VoteResponse)
    return response


# -- what is durable, and when (R1, R2) ---------------------------------------------------------


def test_r1_no_vote_is_answered_before_it_is_saved() -> None:
    """PySyncObj #84, barge #5, cornerstone #65: a vote that was not on the disk was given twice."""
    cluster = RaftCluster()
    cluster.settle()
    node = cluster.nodes[2]
    node.core.request(cluster.now_ms, 7, vote_request(1, 2, epoch=1))
    taken = node.core.take_effects()
    kinds = [type(effect) for effect in taken]
    assert kinds.index(effects.Persist) < kinds.index(effects.Reply)
    persisted = next(effect for effect in taken if isinstance(effect, effects.Persist))
    assert (persisted.election.epoch, persisted.election.voted) == (1, key(1))


def test_r1_a_vote_that_was_saved_is_kept_after_a_crash() -> None:
    """PySyncObj #84: after a restart the node voted again."""
    cluster = RaftCluster()
    cluster.settle()
    assert ask(cluster, 2, vote_request(1, 2, epoch=1)).granted
    cluster.crash(2)
    cluster.start(2)
    assert not ask(cluster, 2, vote_request(3, 2, epoch=1)).granted
    assert ask(cluster, 2, vote_request(1, 2, epoch=1)).granted


def test_a_candidate_counts_its_own_vote_only_when_it_is_saved() -> None:
    cluster = RaftCluster(voters=1)
    assert cluster.nodes[1].saving == Election(1, key(1), pinned=(key(1),))
    cluster.tick(1)
    assert cluster.core(1).role is Role.CANDIDATE
    cluster.save(1)
    assert cluster.role(1) is Role.LEADER


def test_r3_an_epoch_is_never_below_the_logs_when_all_elections_were_lost() -> None:
    """PySyncObj #201: all nodes restarted with epoch 0, and committed data was overwritten."""
    cluster = RaftCluster()
    cluster.elect(1)
    cluster.append(1, b"precious")
    cluster.settle()
    for node_id in cluster.voter_ids:
        cluster.crash(node_id)
        cluster.nodes[node_id].saved = Election()
        cluster.start(node_id)
        assert cluster.core(node_id).epoch == 1
        assert cluster.role(node_id) is Role.UNATTACHED
    assert cluster.elect(2) == 2
    assert cluster.core(2).epoch == 2
    cluster.run(600)
    assert all((1, b"precious") in log for log in cluster.logs())


def test_r4_learning_of_a_leader_in_the_same_epoch_keeps_the_vote() -> None:
    """etcd PR #2461, CCF PR #8094: stepping down in the same term cleared the vote."""
    cluster = RaftCluster()
    cluster.settle()
    assert ask(cluster, 2, vote_request(1, 2, epoch=1)).granted
    cluster.inject(
        2,
        BeginQuorumEpochRequest(cluster_id=CLUSTER_ID, voter=key(2), leader_id=3, epoch=1),
    )
    saved = cluster.nodes[2].saved
    assert (saved.epoch, saved.voted, saved.leader_id) == (1, key(1), 3)


# -- counting (R5, R6, R10, R24) ------------------------------------------------------------------


def candidate_of_five(seed: int = 0) -> RaftCluster:
    """Return a cluster in which node 1 has won the pre-vote of five, with its vote requests in the
    queue."""
    cluster = RaftCluster(voters=5, directories_known=True, seed=seed)
    cluster.settle()
    cluster.prompt(1)
    for target in (2, 3):
        cluster.deliver(cluster.pick(VoteRequest, 1, target))
        cluster.deliver(cluster.pick(VoteResponse, target, 1))
    cluster.save(1)
    assert cluster.role(1) is Role.CANDIDATE
    cluster.letters = [each for each in cluster.letters if _is_real_vote(each.message)]
    return cluster


def _is_real_vote(message: object) -> bool:
    return isinstance(message, VoteRequest) and not message.pre_vote


def test_r5_a_repeated_grant_counts_once() -> None:
    """coyote-samples #8: repeated responses were counted instead of voters."""
    cluster = candidate_of_five()
    cluster.deliver(cluster.pick(VoteRequest, 1, 2))
    cluster.save(2)
    answer = cluster.pick(VoteResponse, 2, 1)
    for _ in range(3):
        cluster.deliver(answer, keep=True)
    assert cluster.role(1) is Role.CANDIDATE


def test_r24_a_grant_of_an_older_round_does_not_count() -> None:
    """openraft a80579ef: responses of an older round were counted in the current one."""
    cluster = candidate_of_five()
    for target in (2, 3):
        cluster.deliver(cluster.pick(VoteRequest, 1, target))
        cluster.save(target)
    late = [cluster.pick(VoteResponse, 2, 1), cluster.pick(VoteResponse, 3, 1)]
    cluster.now_ms = cluster.core(1).deadline_ms() or 0
    cluster.tick(1)  # timed out: asks anew whether it could win
    assert cluster.role(1) is Role.PROSPECTIVE
    for letter in late:
        cluster.deliver(letter)
    assert cluster.role(1) is Role.PROSPECTIVE
    assert cluster.core(1).epoch == 1


def test_r10_a_win_that_comes_after_a_higher_epoch_is_no_win() -> None:
    """redpanda PR #6546: the votes were counted after the term had changed."""
    cluster = candidate_of_five()
    for target in (2, 3):
        cluster.deliver(cluster.pick(VoteRequest, 1, target))
        cluster.save(target)
    ask(cluster, 1, vote_request(5, 1, epoch=9))
    cluster.deliver(cluster.pick(VoteResponse, 2, 1))
    cluster.deliver(cluster.pick(VoteResponse, 3, 1))
    assert cluster.role(1) is Role.UNATTACHED
    assert cluster.core(1).epoch == 9


def test_r6_only_voters_are_asked() -> None:
    cluster = RaftCluster(voters=3, observers=2)
    asked: set[int] = set()
    cluster.on_effect = lambda node, effect: (
        asked.add(effect.voter_id)
        if isinstance(effect, effects.Send) and isinstance(effect.request, VoteRequest)
        else None
    )
    cluster.elect(1)
    assert asked == {2, 3}


# -- granting (R7, R8, R9, R11, R12) --------------------------------------------------------------


def test_r7_a_node_that_does_not_know_it_is_a_voter_votes() -> None:
    cluster = RaftCluster(voters=3, observers=1)
    cluster.settle()
    assert ask(cluster, 101, vote_request(0, 101, epoch=4)).granted, "nor who else is one"
    assert ask(cluster, 101, vote_request(1, 101, epoch=5)).granted
    assert cluster.nodes[101].saved.voted == key(1)


@pytest.mark.parametrize(
    ("last", "granted"),
    [((1, 3), True), ((1, 4), True), ((2, 1), True), ((1, 2), False), ((0, 9), False)],
)
def test_r8_the_longest_log_has_the_greatest_epoch_and_then_offset(
    last: tuple[int, int], granted: bool
) -> None:
    """openraft a48a3282: epoch and offset were compared one by one, so no candidate could win."""
    cluster = RaftCluster()
    cluster.elect(1)
    cluster.append(1, b"a", b"b")
    cluster.settle()
    for pre_vote in (True, False):
        cluster.crash(2)
        cluster.start(2)  # it has not fetched from this leader in this life
        request = vote_request(3, 2, epoch=7, last=last, pre_vote=pre_vote)
        assert ask(cluster, 2, request).granted is granted


def test_r9_a_leader_and_a_candidate_vote_for_nobody_else_in_their_epoch() -> None:
    """DaosRaft PR #70, found by SandTable: a leader voted for another in its own term."""
    cluster = candidate_of_five()
    assert not ask(cluster, 1, vote_request(5, 1, epoch=1, last=(0, 99))).granted
    cluster = RaftCluster()
    cluster.elect(1)
    assert not ask(cluster, 1, vote_request(2, 1, epoch=1, last=(0, 99))).granted
    longest = vote_request(2, 1, epoch=1, last=(1, 99), pre_vote=True)
    assert not ask(cluster, 1, longest).granted
    assert cluster.role(1) is Role.LEADER


def test_a_follower_that_has_fetched_refuses_pre_votes_one_that_has_not_grants_them() -> None:
    cluster = RaftCluster()
    cluster.elect(1)
    request = vote_request(3, 2, epoch=1, last=(1, 99), pre_vote=True)
    assert not ask(cluster, 2, request).granted
    cluster.crash(2)
    cluster.start(2)
    assert ask(cluster, 2, request).granted
    assert not ask(cluster, 2, vote_request(3, 2, epoch=1, last=(0, 99))).granted


def test_r11_a_pre_vote_of_a_lower_epoch_learns_the_epoch_and_can_then_win() -> None:
    """etcd #8243, canonical/raft #279: a node with a lower term repeated its requests without end.
    Here no other node can win, and the response is the only way to learn the other epoch."""
    cluster = RaftCluster(voters=3)
    cluster.elect(1)
    cluster.isolate(2)
    cluster.append(1, b"2 does not have it")
    cluster.run(100)
    for node_id in (1, 2):
        cluster.crash(node_id)
    cluster.heal()
    cluster.nodes[2].saved = Election(9, key(2))
    cluster.start(2)
    cluster.prompt(3)
    request = cluster.pick(VoteRequest, 3, 2).message
    assert isinstance(request, VoteRequest)
    assert request.pre_vote and request.epoch == 1
    cluster.settle()
    assert cluster.core(3).epoch == 9
    cluster.prompt(3)
    cluster.settle()
    assert cluster.role(3) is Role.LEADER
    assert cluster.core(3).epoch == 10


def test_r12_a_vote_that_is_refused_does_not_put_off_the_election() -> None:
    """Only a granted vote delays the voter's own election (Raft, Figure 2)."""
    cluster = RaftCluster()
    cluster.elect(1)
    cluster.append(1, b"a")
    cluster.settle()
    cluster.crash(1)
    before = cluster.core(2).deadline_ms()
    cluster.now_ms += 1
    assert not ask(cluster, 2, vote_request(3, 2, epoch=2, last=(0, 0))).granted
    assert cluster.role(2) is Role.UNATTACHED
    after = cluster.core(2).deadline_ms()
    assert before is not None
    assert after is not None
    assert after <= before + 2000


def test_r12_unattached_nodes_keep_their_timer_over_epochs_they_cannot_vote_in() -> None:
    cluster = RaftCluster(directories_known=True)
    cluster.nodes[2].log.append(b"", wall_ms=0)
    cluster.settle()
    before = cluster.core(2).deadline_ms()
    for epoch in range(1, 5):
        cluster.now_ms += 10
        request = vote_request(3, 2, epoch=epoch, last=(0, 0), pre_vote=True)
        ask(cluster, 2, request)
    assert cluster.core(2).epoch == 4
    assert cluster.core(2).deadline_ms() == before


def test_r13_a_node_that_was_cut_off_does_not_depose_the_leader_when_it_returns() -> None:
    """See Ongaro's thesis, 9.6."""
    cluster = RaftCluster(voters=3)
    cluster.elect(1)
    cluster.isolate(3)
    cluster.run(20_000)
    assert cluster.role(3) is not Role.FOLLOWER or cluster.core(3).epoch == 1
    assert cluster.core(3).epoch == 1
    cluster.heal()
    cluster.run(5_000)
    assert cluster.leader() == 1
    assert cluster.core(1).epoch == 1
    assert cluster.role(3) is Role.FOLLOWER


def test_kip_996_a_leader_stays_while_a_majority_reaches_it() -> None:
    """The links are 1-3, 2-4, 3-4, 3-5 and 4-5 only. Without pre-vote, nodes 3 and 4 depose each
    other again and again."""
    cluster = RaftCluster(voters=5)
    edges = {(1, 3), (2, 4), (3, 4), (3, 5), (4, 5)}
    cluster.cut = {
        (a, b)
        for a in cluster.voter_ids
        for b in cluster.voter_ids
        if a != b and (min(a, b), max(a, b)) not in edges
    }
    cluster.run(30_000)
    leader, epoch = cluster.leader(), cluster.core(cluster.leader()).epoch
    cluster.run(60_000)
    assert (cluster.leader(), cluster.core(leader).epoch) == (leader, epoch)


# -- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (vote_request(3, 2, epoch=9, cluster_id="other"), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (vote_request(3, 2, epoch=9, last=(0, -1)), ErrorCode.INVALID_REQUEST),
        (vote_request(3, 2, epoch=9, last=(-1, 0)), ErrorCode.INVALID_REQUEST),
        (vote_request(3, 2, epoch=9, last=(9, 5)), ErrorCode.INVALID_REQUEST),
        (vote_request(3, 2, epoch=9, last=(10, 5), pre_vote=True), ErrorCode.INVALID_REQUEST),
        (vote_request(3, 2, epoch=0, pre_vote=True), ErrorCode.FENCED_LEADER_EPOCH),
        (vote_request(ReplicaKey(-1, ZERO_UUID), 2, epoch=9), ErrorCode.INVALID_REQUEST),
        (vote_request(3, 2, epoch=9, voter_key=key(1)), ErrorCode.INVALID_VOTER_KEY),
        (vote_request(3, 2, epoch=9, voter_key=key(2, 7)), ErrorCode.INVALID_VOTER_KEY),
        (vote_request(key(3, 7), 2, epoch=9, last=(1, 99)), ErrorCode.INVALID_VOTER_KEY),
    ],
    ids=str,
)
def test_a_vote_request_that_is_refused_changes_nothing(
    request_: VoteRequest, error: ErrorCode
) -> None:
    """The epoch stays, too. In Kafka, a request for another node raises it."""
    cluster = RaftCluster(directories_known=True)
    cluster.elect(1)
    before = cluster.nodes[2].saved
    response = ask(cluster, 2, request_)
    assert response == VoteResponse(error=error, epoch=1, leader_id=1, granted=False)
    assert cluster.nodes[2].saved == before
    assert cluster.role(2) is Role.FOLLOWER


def test_a_wiped_voter_may_watch_but_not_vote() -> None:
    """R30, KAFKA-12181: the other nodes still count its earlier vote and acknowledgements."""
    cluster = RaftCluster()
    cluster.connect_all()
    cluster.elect(1)
    cluster.append(1, b"committed by 1 and 2")
    cluster.settle()
    cluster.wipe(2)
    cluster.start(2)
    cluster.run(8_000)
    assert cluster.leader() == 1
    assert cluster.role(2) is Role.FOLLOWER
    assert cluster.nodes[2].log.entries() == cluster.nodes[1].log.entries()
    description = cluster.core(1).describe()
    assert description is not None
    assert [each.replica for each in description.observers] == [key(2, 2)]
    assert [each.replica for each in description.voters] == [key(1), key(2), key(3)]
    reasons = [e.reason for e in cluster.nodes[1].seen if isinstance(e, effects.PeerProblem)]
    assert len(reasons) == 1
    assert str(key(2)) in reasons[0]
    cluster.crash(3)  # 1 and the wiped 2 are no majority
    offset = cluster.append(1, b"not committed")
    cluster.run(1_000)
    assert cluster.core(1).high_watermark <= offset
    assert not ask(cluster, 1, vote_request(key(2, 2), 1, epoch=9, last=(8, 99))).granted
    assert cluster.core(1).epoch == 1


def test_a_directory_id_that_changed_under_an_old_election_file_is_noticed() -> None:
    cluster = RaftCluster()
    cluster.elect(1)
    cluster.crash(2)
    cluster.nodes[2].me = key(2, 9)
    cluster.start(2)
    reasons = [e.reason for e in cluster.nodes[2].seen if isinstance(e, effects.PeerProblem)]
    assert len(reasons) == 1
    cluster.run(3_000)
    assert cluster.role(2) is Role.FOLLOWER
    assert cluster.nodes[2].saved.voted != key(2, 9)


def test_pins_survive_a_restart() -> None:
    cluster = RaftCluster()
    cluster.connect_all()
    cluster.settle()
    assert cluster.nodes[2].saved.pinned == (key(1), key(2), key(3))
    assert len(cluster.nodes[2].roles) == 1, "its role is as before, and not said again"
    cluster.crash(2)
    cluster.start(2)
    response = ask(cluster, 2, vote_request(key(3, 5), 2, epoch=3))
    assert response.error == ErrorCode.INVALID_VOTER_KEY


def test_fetches_do_not_raise_the_epoch() -> None:
    cluster = RaftCluster()
    cluster.elect(1)
    response = cluster.inject(
        1,
        FetchRequest(
            cluster_id=CLUSTER_ID,
            replica=key(2),
            epoch=7,
            offset=0,
            last_fetched_epoch=0,
            max_wait_ms=0,
            max_bytes=100,
            high_watermark=0,
        ),
    )
    assert response is not None
    assert (response.error, response.epoch) == (ErrorCode.UNKNOWN_LEADER_EPOCH, 1)
    assert cluster.role(1) is Role.LEADER


@pytest.mark.parametrize(("lost", "limit_ms"), [(0, 200), (1, 400), (2, 800), (3, 1000), (9, 1000)])
def test_the_backoff_after_a_lost_election_doubles_up_to_its_maximum(
    lost: int, limit_ms: int
) -> None:
    """The backoff is random below its bound (KIP-595)."""
    backoffs = []
    refusal = VoteResponse(error=ErrorCode.NONE, epoch=1, leader_id=-1, granted=False)
    for seed in range(20):
        cluster = candidate_of_five(seed)
        core = cluster.core(1)
        core._core.lost_elections = lost
        for letter in cluster.letters:
            core.response(cluster.now_ms, letter.token, refusal)
        backoffs.append((core.deadline_ms() or 0) - cluster.now_ms)
    assert limit_ms // 2 < max(backoffs) < limit_ms


def test_split_votes_end() -> None:
    """All nodes campaign at the same time. The random backoff lets one of them win."""
    for seed in range(20):
        cluster = RaftCluster(voters=4, seed=seed)
        cluster.settle()
        cluster.now_ms += 2000
        for node_id in cluster.voter_ids:
            cluster.tick(node_id)
        cluster.run(15_000)
        assert cluster.leader()
