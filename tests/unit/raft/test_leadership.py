"""The life of a leadership: its start, announcement, resignation and loss, and hints."""

from __future__ import annotations

import pytest

from quorate.quorum.ids import NO_NODE, ZERO_UUID, ReplicaKey
from quorate.quorum.log.batches.batch import CONTROL, batches, records_of
from quorate.quorum.protocol.codec import decode
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.raft import effects
from quorate.quorum.raft.control_records import ControlType, LeaderChangeMessage, control_key
from quorate.quorum.raft.effects import Role
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.errors import NotLeader
from quorate.quorum.raft.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    LeaderAddress,
    VoteRequest,
    VoteResponse,
)
from quorate.quorum.raft.settings import HINT_DELAY_MAX_MS, RaftSettings
from quorate.quorum.raft.vote import BACKOFF_BASE_MS
from tests.unit.raft.harness import CLUSTER_ID, RaftCluster, key
from tests.unit.raft.test_votes import vote_request


def resigned(cluster: RaftCluster, node_id: int) -> bool:
    return any(isinstance(each, effects.Resigned) for each in cluster.nodes[node_id].seen)


# -- beginning ------------------------------------------------------------------------------------


def test_the_first_record_of_an_epoch_says_who_was_elected_by_whom() -> None:
    cluster = RaftCluster()
    cluster.elect(1)
    data = cluster.nodes[1].log.batches[0].data
    (position, header), *_ = batches(data)
    record = next(records_of(data, position, header))
    assert header.attributes == CONTROL
    assert record.key == control_key(ControlType.LEADER_CHANGE) == b"\x00\x00\x00\x02"
    assert record.value is not None
    message = decode(LeaderChangeMessage, 0, record.value)
    assert (message.version, message.leader_id) == (0, 1)
    assert [each.voter_id for each in message.voters] == [1, 2, 3]
    assert 1 in [each.voter_id for each in message.granting_voters]
    assert len(message.granting_voters) == 2


def test_r21_leadership_is_saved_before_anybody_hears_of_it() -> None:
    """See openraft docs/protocol/io_ordering.md."""
    cluster = RaftCluster(voters=1)
    seen: list[effects.Effect] = []
    cluster.on_effect = lambda node, effect: seen.append(effect)
    cluster.settle()
    kinds = [type(effect) for effect in seen]
    leads = effects.RoleChanged(Role.LEADER, 1, 1)
    persisted = effects.Persist(Election(1, key(1), 1, (key(1),)))
    assert seen.index(persisted) < seen.index(leads) < kinds.index(effects.Flush)


def test_r32_nothing_is_committed_before_the_leaders_own_record_is() -> None:
    """Inherited records become readable with the new leader's LeaderChange record, not earlier.
    etcd #7331, tikv #6340: a read was served before the new leader had committed a record."""
    cluster = RaftCluster()
    cluster.elect(1)
    cluster.append(1, b"a")
    cluster.settle()
    cluster.kill(1)
    cluster.run(200)
    leader = cluster.leader()
    core = cluster.core(leader)
    committed = [e for e in cluster.nodes[leader].seen if isinstance(e, effects.Committed)]
    assert committed[-1].high_watermark == 3
    assert all(each.high_watermark != 2 for each in committed[1:-1])
    assert core.high_watermark == 3


def test_begin_quorum_epoch_is_repeated_until_a_voter_knows() -> None:
    cluster = RaftCluster()
    cluster.elect(1)
    cluster.crash(3)
    sent: list[tuple[int, int]] = []
    cluster.on_effect = lambda node, effect: (
        sent.append((cluster.now_ms, effect.voter_id))
        if isinstance(effect, effects.Send) and isinstance(effect.request, BeginQuorumEpochRequest)
        else None
    )
    cluster.crash(1)
    cluster.start(1)
    cluster.elect(2)
    start_ms = sent[0][0]
    cluster.run(2500)
    assert [each for each in sent if each[1] == 3] == [
        (start_ms, 3),
        (start_ms + 1000, 3),
        (start_ms + 2000, 3),
    ]
    cluster.start(3)
    cluster.run(1000)
    assert (cluster.role(3), cluster.core(3).leader_id) == (Role.FOLLOWER, 2)
    sent.clear()
    cluster.run(5000)
    assert sent == []


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"cluster_id": "other"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"epoch": 0}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"leader_id": -1}, ErrorCode.INVALID_REQUEST),
        ({"voter": key(3)}, ErrorCode.INVALID_VOTER_KEY),
        ({"voter": key(2, 5)}, ErrorCode.INVALID_VOTER_KEY),
    ],
    ids=str,
)
def test_begin_quorum_epoch_that_is_refused_changes_nothing(
    change: dict[str, object], error: ErrorCode
) -> None:
    cluster = RaftCluster()
    cluster.elect(1)
    fields: dict[str, object] = {
        "cluster_id": CLUSTER_ID,
        "voter": key(2),
        "leader_id": 3,
        "epoch": 9,
    }
    request = BeginQuorumEpochRequest(**fields | change)  # type: ignore[arg-type]
    assert cluster.inject(2, request) == BeginQuorumEpochResponse(error=error, epoch=1, leader_id=1)
    assert cluster.core(2).epoch == 1


@pytest.mark.parametrize(
    ("error", "deposed"),
    [(ErrorCode.FENCED_LEADER_EPOCH, True), (ErrorCode.INCONSISTENT_CLUSTER_ID, False)],
)
def test_a_leader_that_is_answered_from_a_higher_epoch_is_deposed(
    error: ErrorCode, deposed: bool
) -> None:
    """Every response carries the epoch (KIP-595). The leader led until check quorum, 3 s later."""
    cluster = RaftCluster()
    cluster.elect(1)
    cluster.core(1)._core.state.voters[3].knows_leader = False  # type: ignore[union-attr]
    cluster.core(1)._core.state.begin_epoch_ms = cluster.now_ms  # type: ignore[union-attr]
    cluster.letters.clear()
    cluster.tick(1)
    letter = cluster.pick(BeginQuorumEpochRequest, 1, 3)
    answer = BeginQuorumEpochResponse(error=error, epoch=9, leader_id=3)
    cluster.core(1).response(cluster.now_ms, letter.token, answer)
    expected = (Role.FOLLOWER, 9, 3) if deposed else (Role.LEADER, 1, 1)
    core = cluster.core(1)
    assert (core.role, core.epoch, core.leader_id) == expected


def test_a_second_leader_of_one_epoch_is_refused() -> None:
    cluster = RaftCluster()
    cluster.elect(1)
    request = BeginQuorumEpochRequest(cluster_id=CLUSTER_ID, voter=key(2), leader_id=3, epoch=1)
    response = cluster.inject(2, request)
    assert response is not None
    assert response.error == ErrorCode.INVALID_REQUEST
    assert cluster.core(2).leader_id == 1


# -- doubt ----------------------------------------------------------------------------------------


def test_check_quorum_a_leader_that_no_majority_fetches_from_resigns() -> None:
    cluster = RaftCluster()
    cluster.elect(1)
    cluster.run(5000)
    assert cluster.role(1) is Role.LEADER
    cluster.isolate(1)
    cluster.run(2900)
    assert cluster.role(1) is Role.LEADER
    cluster.run(3100 - 2900 + 500)
    assert cluster.role(1) is Role.RESIGNED
    with pytest.raises(NotLeader):
        cluster.append(1, b"a")


def test_check_quorum_one_of_two_followers_is_enough() -> None:
    cluster = RaftCluster()
    cluster.elect(1)
    cluster.crash(3)
    cluster.run(20_000)
    assert cluster.role(1) is Role.LEADER
    assert cluster.core(1).epoch == 1


def test_a_single_voter_leads_at_once_and_for_good() -> None:
    cluster = RaftCluster(voters=1)
    cluster.settle()
    assert cluster.role(1) is Role.LEADER
    cluster.run(60_000)
    assert cluster.core(1).epoch == 1
    cluster.crash(1)
    cluster.start(1)
    cluster.settle()
    assert (cluster.role(1), cluster.core(1).epoch) == (Role.LEADER, 2)


# -- restart --------------------------------------------------------------------------------------


def test_kafka_10527_a_leader_does_not_lead_its_epoch_again_after_a_restart() -> None:
    """Followers may have records of that epoch that the leader lost with its page cache."""
    cluster = RaftCluster()
    cluster.elect(1)
    offset = cluster.append(1, b"fetched, not flushed here")
    for follower in (2, 3):
        letter = next(each for each in cluster.letters if each.target == follower)
        cluster.deliver(letter)
        cluster.flush(follower)
    cluster.crash(1)
    assert cluster.nodes[1].log.end_offset == offset
    cluster.start(1)
    assert (cluster.role(1), cluster.core(1).epoch) == (Role.RESIGNED, 1)
    with pytest.raises(NotLeader):
        cluster.append(1, b"another at the same offset")
    cluster.run(5000)
    assert cluster.core(cluster.leader()).epoch > 1
    assert all((1, b"fetched, not flushed here") in log for log in cluster.logs())


def test_a_candidate_does_not_ask_for_votes_of_its_epoch_again_after_a_restart() -> None:
    """The candidate may have won and led, without having saved that."""
    cluster = RaftCluster()
    cluster.settle()
    cluster.prompt(1)
    while cluster.nodes[1].saved.voted is None:
        cluster.one_step()
    cluster.crash(1)
    cluster.start(1)
    assert (cluster.role(1), cluster.core(1).epoch) == (Role.UNATTACHED, 1)
    epochs: set[int] = set()
    cluster.on_effect = lambda node, effect: (
        epochs.add(effect.request.epoch)
        if isinstance(effect, effects.Send)
        and isinstance(effect.request, VoteRequest)
        and not effect.request.pre_vote
        else None
    )
    cluster.run(8000)
    assert epochs
    assert 1 not in epochs


@pytest.mark.parametrize(
    ("saved", "role"),
    [
        (Election(), Role.UNATTACHED),
        (Election(4, key(3)), Role.UNATTACHED),
        (Election(4, None, 3), Role.FOLLOWER),
        (Election(4, key(1), 1), Role.RESIGNED),
        (Election(4, ReplicaKey(1, ZERO_UUID)), Role.UNATTACHED),
    ],
)
def test_the_role_after_a_restart(saved: Election, role: Role) -> None:
    cluster = RaftCluster(start=False)
    cluster.nodes[1].saved = saved
    cluster.start(1)
    assert (cluster.role(1), cluster.core(1).epoch) == (role, saved.epoch)


def test_all_killed_and_restarted_elect_again_soon() -> None:
    """The restarted leader resigns immediately, so no voter waits for a timeout."""
    cluster = RaftCluster()
    cluster.elect(2)
    cluster.append(2, b"a")
    cluster.settle()
    for node_id in cluster.voter_ids:
        cluster.crash(node_id)
    for node_id in cluster.voter_ids:
        cluster.start(node_id)
    cluster.run(200)
    assert cluster.core(cluster.leader()).epoch == 2
    assert cluster.core(cluster.leader()).high_watermark == 3


# -- handing over ---------------------------------------------------------------------------------


def test_an_orderly_stop_hands_over_to_the_most_caught_up_voter() -> None:
    cluster = RaftCluster(voters=5)
    cluster.elect(1)
    cluster.isolate(2)
    cluster.append(1, b"a")
    cluster.settle()
    cluster.heal()
    core = cluster.core(1)
    core.resign(cluster.now_ms)
    cluster.collect(cluster.nodes[1])
    assert not resigned(cluster, 1)
    request = cluster.pick(EndQuorumEpochRequest, 1).message
    assert isinstance(request, EndQuorumEpochRequest)
    assert request.preferred_candidates == (key(3), key(4), key(5), key(2))
    cluster.settle()
    assert resigned(cluster, 1)
    assert core.deadline_ms() is None
    cluster.crash(1)
    cluster.run(10)
    assert cluster.leader() == 3


def test_a_follower_stops_at_once_and_a_leader_without_followers_soon() -> None:
    cluster = RaftCluster()
    cluster.elect(1)
    cluster.core(2).resign(cluster.now_ms)
    cluster.collect(cluster.nodes[2])
    assert resigned(cluster, 2)
    for node_id in (2, 3):
        cluster.crash(node_id)
    cluster.core(1).resign(cluster.now_ms)
    cluster.collect(cluster.nodes[1])
    cluster.settle()
    assert resigned(cluster, 1)
    cluster.run(5000)
    assert sum(isinstance(each, effects.Resigned) for each in cluster.nodes[1].seen) == 1


@pytest.mark.parametrize(
    ("preferred", "earliest_ms", "latest_ms"),
    [
        ((2, 3), 0, 0),
        ((3, 2), 500, 500),
        ((4, 3, 2), 500, 500),
        ((3, 2, 4), 250, 250),
        ((3,), 1000, 1000),
        ((), 0, HINT_DELAY_MAX_MS),
    ],
    ids=str,
)
def test_successors_wait_the_longer_the_later_they_stand_in_the_list(
    preferred: tuple[int, ...], earliest_ms: int, latest_ms: int
) -> None:
    cluster = RaftCluster()
    cluster.elect(1)
    cluster.isolate(2)
    start_ms = cluster.now_ms
    campaigns: list[int] = []
    cluster.on_effect = lambda node, effect: (
        campaigns.append(cluster.now_ms - start_ms)
        if isinstance(effect, effects.RoleChanged) and effect.role is Role.PROSPECTIVE
        else None
    )
    answer = cluster.inject(
        2,
        EndQuorumEpochRequest(
            cluster_id=CLUSTER_ID,
            leader_id=1,
            epoch=1,
            preferred_candidates=tuple(map(key, preferred)),
        ),
    )
    assert answer == EndQuorumEpochResponse(error=0, epoch=1, leader_id=1)
    cluster.run(latest_ms)
    assert len(campaigns) == 1
    assert earliest_ms <= campaigns[0] <= latest_ms


# -- hints ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_kill_9_of_the_leader_is_over_in_milliseconds(seed: int) -> None:
    cluster = RaftCluster(voters=3, observers=1, seed=seed)
    cluster.elect(1)
    cluster.run(1000)
    cluster.kill(1)
    cluster.run(2 * HINT_DELAY_MAX_MS + 200)
    leader = cluster.leader()
    assert leader in (2, 3)
    assert cluster.core(leader).high_watermark == cluster.nodes[leader].log.end_offset
    assert cluster.core(101).leader_id == leader


def test_without_hints_the_fetch_timeout_decides() -> None:
    cluster = RaftCluster(settings=RaftSettings(hints=False))
    cluster.connect_all()
    cluster.run(900)
    assert all(cluster.role(i) is Role.UNATTACHED for i in cluster.voter_ids)
    cluster.run(5000)
    leader = cluster.leader()
    cluster.kill(leader)
    cluster.run(1400)
    assert all(cluster.core(i).leader_id == leader for i in cluster.up())
    cluster.run(10_000)
    assert cluster.leader() != leader


def test_a_lost_link_alone_is_no_evidence() -> None:
    cluster = RaftCluster()
    cluster.elect(1)
    before = cluster.core(2).deadline_ms()
    cluster.connect_all()
    cluster.core(2).link_lost(cluster.now_ms, 1)
    assert cluster.core(2).deadline_ms() == before
    cluster.connect_all()
    cluster.core(2).link_refused(cluster.now_ms, 1)  # an attempt from before the link came back
    assert cluster.core(2).deadline_ms() == before


def test_false_hints_do_not_depose_a_leader_that_others_hear() -> None:
    cluster = RaftCluster()
    cluster.elect(1)
    for _ in range(20):
        cluster.core(2).link_lost(cluster.now_ms, 1)
        cluster.core(2).link_refused(cluster.now_ms, 1)
        cluster.collect(cluster.nodes[2])
        cluster.run(100)
    cluster.run(5000)
    assert (cluster.leader(), cluster.core(1).epoch) == (1, 1)
    assert cluster.role(2) is Role.FOLLOWER


def test_a_leader_that_answers_again_ends_the_doubt() -> None:
    cluster = RaftCluster()
    cluster.elect(1)
    cluster.isolate(2)
    cluster.core(2).link_lost(cluster.now_ms, 1)
    cluster.core(2).link_refused(cluster.now_ms, 1)
    cluster.run(HINT_DELAY_MAX_MS)
    assert cluster.role(2) is Role.PROSPECTIVE
    cluster.heal()
    cluster.core(2).voter_connected(cluster.now_ms, key(1))
    assert cluster.role(2) is Role.FOLLOWER
    assert cluster.core(2).leader_id == 1


def test_a_follower_whose_leader_is_linked_again_refuses_pre_votes_again() -> None:
    cluster = RaftCluster()
    cluster.elect(1)
    cluster.isolate(2)
    cluster.core(2).link_lost(cluster.now_ms, 1)
    cluster.core(2).link_refused(cluster.now_ms, 1)
    request = vote_request(3, 2, epoch=1, last=(1, 99), pre_vote=True)
    response = cluster.inject(2, request)
    assert isinstance(response, VoteResponse) and response.granted
    cluster.core(2).voter_connected(cluster.now_ms, key(1))
    response = cluster.inject(2, request)
    assert isinstance(response, VoteResponse) and not response.granted


@pytest.mark.parametrize("hints", [True, False])
def test_a_candidate_does_not_wait_for_a_voter_that_is_known_to_be_dead(hints: bool) -> None:
    """After one refusal and the death of the leader, no candidate of the three can win this
    election."""
    cluster = RaftCluster(settings=RaftSettings(hints=hints), directories_known=True)
    cluster.settle()
    cluster.now_ms = cluster.core(2).deadline_ms() or 0
    cluster.tick(2)
    cluster.deliver(cluster.pick(VoteRequest, 2, 3))
    cluster.deliver(cluster.pick(VoteResponse, 3, 2))
    cluster.save(2)
    assert cluster.role(2) is Role.CANDIDATE
    cluster.core(2).link_refused(cluster.now_ms, 1)
    cluster.inject(3, vote_request(1, 3, epoch=1))
    cluster.deliver(cluster.pick(VoteRequest, 2, 3))
    cluster.deliver(cluster.pick(VoteResponse, 3, 2))
    deadline_ms = cluster.core(2).deadline_ms()
    assert deadline_ms is not None
    assert (deadline_ms - cluster.now_ms <= 2 * BACKOFF_BASE_MS) is hints


def end_quorum_epoch(cluster: RaftCluster, node_id: int, *preferred: int) -> None:
    """Tell `node_id` that leader 1 of epoch 1 has resigned."""
    request = EndQuorumEpochRequest(
        cluster_id=CLUSTER_ID,
        leader_id=1,
        epoch=1,
        preferred_candidates=tuple(map(key, preferred)),
    )
    cluster.inject(node_id, request)


def test_a_link_to_a_leader_that_resigned_is_no_sign_of_life() -> None:
    """A leader that restarted has links again, but it never leads this epoch again. Its successor
    followed it once more, until the fetch timeout."""
    cluster = RaftCluster()
    cluster.elect(1)
    end_quorum_epoch(cluster, 2, 2, 3)
    assert cluster.role(2) is Role.PROSPECTIVE
    cluster.core(2).voter_connected(cluster.now_ms, key(1))
    assert cluster.role(2) is Role.PROSPECTIVE
    end_quorum_epoch(cluster, 3, 2, 3)
    cluster.core(3).voter_connected(cluster.now_ms, key(1))
    cluster.settle()
    assert cluster.leader() == 2 and cluster.core(2).epoch == 2


def test_the_first_election_starts_when_a_majority_is_connected() -> None:
    cluster = RaftCluster(voters=5)
    for other in (2, 3):
        deadline_ms = cluster.core(1).deadline_ms()
        assert deadline_ms is not None
        assert deadline_ms - cluster.now_ms >= 1000
        cluster.core(1).voter_connected(cluster.now_ms, key(other))
    deadline_ms = cluster.core(1).deadline_ms()
    assert deadline_ms is not None
    assert 1 <= deadline_ms - cluster.now_ms <= HINT_DELAY_MAX_MS
    cluster.connect_all()
    cluster.run(100)
    assert cluster.core(cluster.leader()).epoch == 1


def test_a_node_that_has_voted_gives_its_candidate_time_whoever_connects() -> None:
    cluster = RaftCluster(start=False)
    cluster.nodes[1].saved = Election(4, key(3))
    cluster.start(1)
    before = cluster.core(1).deadline_ms()
    for other in (2, 3):
        cluster.core(1).voter_connected(cluster.now_ms, key(other))
    assert cluster.core(1).deadline_ms() == before


# -- observers ------------------------------------------------------------------------------------


def test_an_observer_finds_the_leader_by_asking_any_voter() -> None:
    cluster = RaftCluster(voters=3, observers=1, start=False)
    for node_id in cluster.voter_ids:
        cluster.start(node_id)
    cluster.elect(2)
    cluster.start(101)
    asked: list[int] = []
    cluster.on_effect = lambda node, effect: (
        asked.append(effect.voter_id)
        if isinstance(effect, effects.Send) and isinstance(effect.request, FetchRequest)
        else None
    )
    cluster.run(100)
    assert (cluster.role(101), cluster.core(101).leader_id) == (Role.FOLLOWER, 2)
    assert asked[-1] == 2


def test_an_observer_does_not_believe_that_it_leads() -> None:
    """A leader that was removed and came back asks for the leader. A voter that does not know the
    successor names this node, with its address."""
    cluster = RaftCluster(observers=1, start=False)
    cluster.start(101)
    node = cluster.nodes[101]
    (token,) = node.waiting
    response = FetchResponse(
        error=ErrorCode.NOT_LEADER_OR_FOLLOWER,
        epoch=1,
        leader_id=101,
        high_watermark=0,
        leader=LeaderAddress(host="c101", port=9093),
    )
    node.core.response(cluster.now_ms, token, response)
    cluster.collect(node)
    assert not [each for each in node.seen if isinstance(each, effects.LeaderFound)]
    assert (node.core.role, node.core.leader_id) == (Role.UNATTACHED, NO_NODE)


def test_an_observer_never_campaigns() -> None:
    cluster = RaftCluster(voters=3, observers=1)
    cluster.elect(1)
    cluster.run(500)
    for node_id in cluster.voter_ids:
        cluster.crash(node_id)
    cluster.run(60_000)
    assert {each.role for each in cluster.nodes[101].roles} <= {Role.UNATTACHED, Role.FOLLOWER}
    assert cluster.core(101).leader_id in (1, NO_NODE)


def test_the_end_of_a_higher_epoch_is_learnt_with_it() -> None:
    cluster = RaftCluster()
    cluster.elect(1)
    request = EndQuorumEpochRequest(
        cluster_id=CLUSTER_ID, leader_id=0, epoch=4, preferred_candidates=(key(2),)
    )
    answer = cluster.inject(2, request)
    assert answer == EndQuorumEpochResponse(error=0, epoch=4, leader_id=0)
    assert (cluster.role(2), cluster.core(2).epoch) == (Role.PROSPECTIVE, 4)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"cluster_id": "other"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"epoch": 0}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"leader_id": -1}, ErrorCode.INVALID_REQUEST),
    ],
    ids=str,
)
def test_end_quorum_epoch_that_is_refused_changes_nothing(
    change: dict[str, object], error: ErrorCode
) -> None:
    cluster = RaftCluster()
    cluster.elect(1)
    before = cluster.core(2).deadline_ms()
    fields: dict[str, object] = {
        "cluster_id": CLUSTER_ID,
        "leader_id": 1,
        "epoch": 1,
        "preferred_candidates": (key(2),),
    }
    request = EndQuorumEpochRequest(**fields | change)  # type: ignore[arg-type]
    answer = cluster.inject(2, request)
    assert answer == EndQuorumEpochResponse(error=error, epoch=1, leader_id=1)
    assert (cluster.role(2), cluster.core(2).deadline_ms()) == (Role.FOLLOWER, before)


def test_a_voter_that_refuses_what_no_retry_will_mend_is_named_once() -> None:
    cluster = RaftCluster()
    cluster.settle()
    cluster.prompt(1)
    refusal = VoteResponse(
        error=ErrorCode.INCONSISTENT_CLUSTER_ID, epoch=99, leader_id=3, granted=False
    )
    for letter in [each for each in cluster.letters if each.target in (2, 3)]:
        cluster.core(1).response(cluster.now_ms, letter.token, refusal)
    cluster.collect(cluster.nodes[1])
    said = [each for each in cluster.nodes[1].seen if isinstance(each, effects.PeerProblem)]
    assert [each.replica_id for each in said] == [2, 3]
    assert "refuses this node" in said[0].reason and "INCONSISTENT_CLUSTER_ID" in said[0].reason
    assert cluster.core(1).epoch == 0, "what another cluster says is not learnt"


def test_an_answer_from_before_the_leader_resigned_does_not_put_off_the_election() -> None:
    """Responses and requests use different links, so a response may arrive after EndQuorumEpoch."""
    cluster = RaftCluster()
    cluster.elect(1)
    cluster.append(1, b"a")
    late = cluster.pick(FetchResponse, 1, 2)
    request = EndQuorumEpochRequest(
        cluster_id=CLUSTER_ID, leader_id=1, epoch=1, preferred_candidates=(key(3), key(2))
    )
    cluster.inject(2, request)
    before = cluster.core(2).deadline_ms()
    cluster.deliver(late)
    assert cluster.core(2).deadline_ms() == before
    assert cluster.nodes[2].log.end_offset == 1


def test_what_an_operator_has_to_mend_is_said_once() -> None:
    cluster = RaftCluster()
    cluster.connect_all()
    cluster.elect(1)
    cluster.wipe(3)
    cluster.start(3)
    cluster.run(20_000)
    said = [each for each in cluster.nodes[1].seen if isinstance(each, effects.PeerProblem)]
    assert [each.replica_id for each in said] == [3]
    assert f"replica {key(3, 2)} is not voter {key(3)}" in said[0].reason
    # Only the leader can tell the replica, because the configuration names no directory ids.
    assert cluster.core(3).replaced_voter == key(3)
    assert cluster.core(2).replaced_voter is None
