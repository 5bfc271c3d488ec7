"""Changes of the voters (KIP-853): the checks, catching up, one change at a time, and the effect of
a change on leaders, candidates and restarted nodes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorate.quorum.ids import ZERO_UUID, ReplicaKey
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.raft import effects
from quorate.quorum.raft.control_records import KRaftVersionFeature, Voter, VoterEndpoint
from quorate.quorum.raft.effects import Role
from quorate.quorum.raft.messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    UpdateVoterRequest,
    UpdateVoterResponse,
    VoteRequest,
)
from quorate.quorum.raft.settings import RaftSettings
from tests.unit.raft.harness import CLUSTER_ID, RaftCluster, directory, key, voter

SETTINGS = RaftSettings(may_become_voter=True, hints=False)
JOINING = RaftSettings(may_become_voter=True, hints=False, auto_join=True)


def dynamic(
    voters: int = 3, spares: int = 1, observers: int = 0, settings: RaftSettings = SETTINGS
) -> tuple[RaftCluster, int]:
    """Return a cluster with an elected leader, in which all nodes have caught up, spares
    included."""
    cluster = RaftCluster(voters, observers, settings=settings, spares=spares, dynamic=True)
    cluster.until(
        lambda: (
            any(cluster.role(each) is Role.LEADER for each in cluster.up())
            and cluster.nodes[cluster.leader()].high_watermark > 0
        )
    )
    leader = cluster.leader()
    cluster.append(leader, b"a")
    catch_up(cluster)
    return cluster, leader


def catch_up(cluster: RaftCluster) -> None:
    leader = cluster.leader()
    end = cluster.nodes[leader].log.end_offset
    cluster.until(lambda: all(cluster.nodes[each].high_watermark >= end for each in cluster.up()))
    cluster.run(1500)


def voters_of(cluster: RaftCluster, node_id: int) -> list[int]:
    log = cluster.nodes[node_id].log
    return [each.voter_id for each in cluster.core(node_id).voters_at(log.end_offset).voters]


def answer(cluster: RaftCluster, leader: int, token: int) -> tuple[ErrorCode, str]:
    error, message = cluster.nodes[leader].answers[token]
    return ErrorCode.of(error), message


def test_the_formatted_voters_are_written_into_the_log_by_the_first_leader() -> None:
    """Brokers and new controllers, which were not formatted with the voters, learn them from the
    log."""
    cluster, leader = dynamic(observers=1)
    kinds = [
        type(record).__name__
        for batch in cluster.nodes[leader].log.batches
        for _, record in batch.control_records()
    ]
    assert kinds == ["LeaderChangeMessage", "KRaftVersionRecord", "VotersRecord"]
    assert voters_of(cluster, 101) == voters_of(cluster, 11) == [1, 2, 3]
    cluster.crash(leader)
    cluster.until(lambda: any(cluster.role(each) is Role.LEADER for each in cluster.up()))
    latest = cluster.nodes[cluster.leader()].log.batches[-1]
    assert [type(record).__name__ for _, record in latest.control_records()] == [
        "LeaderChangeMessage"
    ], "once is enough"


def test_a_controller_that_has_caught_up_becomes_a_voter_and_counts() -> None:
    cluster, leader = dynamic()
    token = cluster.add_voter(leader, 11)
    assert token not in cluster.nodes[leader].answers, "answered when the new set has committed it"
    catch_up(cluster)
    assert answer(cluster, leader, token) == (ErrorCode.NONE, "")
    assert {tuple(voters_of(cluster, each)) for each in cluster.up()} == {(1, 2, 3, 11)}
    others = [each for each in (1, 2, 3) if each != leader]
    cluster.isolate(*others)
    cluster.append(leader, b"two of four")
    cluster.run(300)
    assert cluster.nodes[leader].high_watermark < cluster.nodes[leader].log.end_offset
    cluster.heal()
    cluster.isolate(others[0])
    end = cluster.nodes[leader].log.end_offset
    cluster.until(lambda: cluster.nodes[leader].high_watermark >= end)


def test_what_a_new_voter_fetched_as_an_observer_does_not_count_as_durable() -> None:
    """R29, async-raft #62: the acknowledgements of a learner counted for the majority."""
    cluster, leader = dynamic(voters=1)
    cluster.add_voter(leader, 11)
    state = cluster.core(leader)._core.state
    assert getattr(state, "voters")[11].end_offset == -1  # noqa: B009  # of a union
    assert cluster.nodes[leader].high_watermark < cluster.nodes[leader].log.end_offset


def test_a_controller_flushes_before_it_fetches_also_while_it_is_no_voter() -> None:
    """The controller may be a voter when its fetch arrives."""
    cluster, leader = dynamic()
    cluster.append(leader, b"b")
    cluster.until(lambda: bool(cluster.nodes[11].flushes))
    asked = [each for each in cluster.letters if each.source == 11]
    assert not [each for each in asked if isinstance(each.message, FetchRequest)]


def test_gates_in_kafkas_order() -> None:
    cluster, leader = dynamic(spares=2)
    follower = next(each for each in (1, 2, 3) if each != leader)
    node = cluster.nodes[leader]

    refused = cluster.add_voter(follower, 11)
    assert answer(cluster, follower, refused)[0] is ErrorCode.NOT_CONTROLLER
    duplicate = cluster.add_voter(leader, follower)
    assert answer(cluster, leader, duplicate)[0] is ErrorCode.DUPLICATE_VOTER
    not_met = cluster.add_voter(leader, 11, meets=False)
    error, message = answer(cluster, leader, not_met)
    assert error is ErrorCode.REQUEST_TIMED_OUT and "did not answer at c11:9093" in message
    unknown = cluster.remove_voter(leader, 11)
    not_found = ErrorCode.VOTER_NOT_FOUND, f"replica {key(11)} is not a voter"
    assert answer(cluster, leader, unknown) == not_found

    first = cluster.add_voter(leader, 11)
    second = cluster.add_voter(leader, 12)
    third = cluster.remove_voter(leader, follower)
    for token in (second, third):
        error, message = answer(cluster, leader, token)
        assert error is ErrorCode.REQUEST_TIMED_OUT and "another change" in message
    assert first not in node.answers
    catch_up(cluster)
    assert answer(cluster, leader, first)[0] is ErrorCode.NONE


def test_while_a_voter_is_met_nothing_else_is_changed() -> None:
    cluster, leader = dynamic(spares=2)
    node = cluster.nodes[leader]
    node.core.add_voter(cluster.now_ms, 77, voter(11))
    node.core.add_voter(cluster.now_ms, 78, voter(12))
    node.core.remove_voter(cluster.now_ms, 79, node.me)
    cluster.collect(node)
    for token in (78, 79):
        error, message = answer(cluster, leader, token)
        assert error is ErrorCode.REQUEST_TIMED_OUT and "another change" in message
    catch_up(cluster)
    assert answer(cluster, leader, 77)[0] is ErrorCode.NONE
    assert voters_of(cluster, leader) == [1, 2, 3, 11]


def test_a_second_result_of_the_same_probe_changes_nothing() -> None:
    """The pending change keeps its place, and is answered when it is committed."""
    cluster, leader = dynamic()
    token = cluster.add_voter(leader, 11)
    node = cluster.nodes[leader]
    node.core.voter_probed(cluster.now_ms, token, False)
    cluster.collect(node)
    assert token not in node.answers
    catch_up(cluster)
    assert answer(cluster, leader, token)[0] is ErrorCode.NONE
    assert voters_of(cluster, leader) == [1, 2, 3, 11]


def test_a_voter_probed_for_an_earlier_leadership_is_not_added() -> None:
    """R24. The change failed when that leadership ended."""
    cluster, leader = dynamic()
    node = cluster.nodes[leader]
    node.core.add_voter(cluster.now_ms, 77, voter(11))
    node.core.take_effects()
    cluster.isolate(leader)
    cluster.run(3500)
    assert answer(cluster, leader, 77)[0] is ErrorCode.REQUEST_TIMED_OUT
    cluster.heal()
    cluster.until(lambda: any(cluster.role(each) is Role.LEADER for each in cluster.up()))
    catch_up(cluster)
    node.core.voter_probed(cluster.now_ms, 77, True)
    cluster.run(1000)
    assert voters_of(cluster, leader) == [1, 2, 3]


def test_a_controller_that_joins_by_itself_is_probed_itself() -> None:
    """No administrator waits for these changes. The probe of one leadership was taken for that of
    the next."""
    cluster, leader = dynamic(spares=2)
    first = begin_to_join(cluster, leader, 11)
    cluster.isolate(leader)
    cluster.run(3500)
    cluster.heal()
    cluster.until(lambda: any(cluster.role(each) is Role.LEADER for each in cluster.up()))
    catch_up(cluster)
    second = cluster.leader()
    other = next(each for each in (1, 2, 3) if each not in (leader, second))
    hand_over(cluster, second, leader, other)
    catch_up(cluster)
    begin_to_join(cluster, leader, 12)
    cluster.core(leader).voter_probed(cluster.now_ms, first, True)
    assert voters_of(cluster, leader) == [1, 2, 3]


def begin_to_join(cluster: RaftCluster, leader: int, node_id: int) -> int:
    """Let `node_id` ask to join, and return the token of its probe, which is not answered yet."""
    core = cluster.core(leader)
    request = UpdateVoterRequest(
        cluster_id=CLUSTER_ID,
        replica=key(node_id),
        epoch=core.epoch,
        voter=voter(node_id),
        join=True,
    )
    core.request(cluster.now_ms, 99, request)
    (meeting,) = (each for each in core.take_effects() if isinstance(each, effects.ProbeVoter))
    return meeting.token


def test_a_replica_that_has_not_caught_up_is_not_added() -> None:
    cluster, leader = dynamic(spares=2)
    cluster.crash(12)
    cluster.nodes[12].log.forget_from(0)
    cluster.append(leader, b"b")
    state = cluster.core(leader)._core.state
    del getattr(state, "observers")[cluster.nodes[12].me]  # noqa: B009  # of a union
    token = cluster.add_voter(leader, 12)
    error, message = answer(cluster, leader, token)
    assert error is ErrorCode.REQUEST_TIMED_OUT and "has not caught up" in message
    cluster.settings = replace(SETTINGS, fetch_max_bytes=1)
    cluster.start(12)
    cluster.until(lambda: cluster.nodes[12].log.end_offset > 1)
    cluster.append(leader, b"c")
    assert cluster.nodes[12].me in getattr(state, "observers")  # noqa: B009
    token = cluster.add_voter(leader, 12)
    error, message = answer(cluster, leader, token)
    assert error is ErrorCode.REQUEST_TIMED_OUT, "it fetches, and lags"


def test_a_new_leader_changes_nothing_before_it_has_committed_in_its_own_epoch() -> None:
    """The bug of single-server changes: two leaders could otherwise work with sets that differ by
    two voters (Ongaro, raft-dev, July 2015)."""
    cluster, leader = dynamic()
    cluster.crash(leader)
    cluster.until(lambda: any(cluster.role(each) is Role.LEADER for each in cluster.up()))
    second = cluster.leader()
    cluster.letters.clear()
    cluster.save_all(second)
    cluster.letters.clear()
    token = cluster.add_voter(second, 11)
    error, message = answer(cluster, second, token)
    assert error is ErrorCode.REQUEST_TIMED_OUT and "not committed" in message
    assert voters_of(cluster, second) == [1, 2, 3]


def test_static_voters_are_not_changed() -> None:
    cluster = RaftCluster(settings=SETTINGS)
    cluster.until(lambda: any(node.high_watermark for node in cluster.nodes.values()))
    leader = cluster.leader()
    token = cluster.remove_voter(leader, 2)
    error, message = answer(cluster, leader, token)
    assert error is ErrorCode.UNSUPPORTED_VERSION and "quorate features upgrade" in message


def test_a_change_that_is_truncated_never_was() -> None:
    """R28. A set counts from its append. When its record is truncated, the previous set counts
    again."""
    cluster, leader = dynamic()
    cluster.isolate(leader)
    token = cluster.add_voter(leader, 11)
    assert voters_of(cluster, leader) == [1, 2, 3, 11]
    cluster.run(5000)
    cluster.heal()
    cluster.run(5000)
    assert answer(cluster, leader, token)[0] is ErrorCode.REQUEST_TIMED_OUT
    assert {tuple(voters_of(cluster, each)) for each in cluster.up()} == {(1, 2, 3)}
    assert cluster.core(leader)._core.voters.ids == (1, 2, 3)


def test_a_leader_that_removes_itself_leads_uncounted_until_that_is_committed() -> None:
    """The case of KAFKA-16530."""
    cluster, leader = dynamic()
    others = [each for each in (1, 2, 3) if each != leader]
    cluster.isolate(others[0])
    token = cluster.remove_voter(leader, leader)
    cluster.run(100)
    assert token not in cluster.nodes[leader].answers, "one of two is no majority"
    assert cluster.role(leader) is Role.LEADER
    cluster.heal()
    cluster.run(6000)
    assert answer(cluster, leader, token)[0] is ErrorCode.NONE
    assert cluster.leader() in others
    assert cluster.role(leader) is Role.FOLLOWER
    assert {tuple(voters_of(cluster, each)) for each in cluster.up()} == {tuple(others)}


def test_a_removed_voter_does_not_campaign_any_more() -> None:
    cluster, leader = dynamic()
    removed = next(each for each in (1, 2, 3) if each != leader)
    cluster.remove_voter(leader, removed)
    catch_up(cluster)
    epoch = cluster.core(leader).epoch
    cluster.isolate(removed)
    cluster.run(20_000)
    assert cluster.role(removed) in (Role.FOLLOWER, Role.UNATTACHED)
    cluster.heal()
    cluster.run(2000)
    assert cluster.core(leader).epoch == epoch


def test_a_node_that_a_snapshot_removes_during_its_pre_vote_follows_the_known_leader() -> None:
    """The check of a received snapshot ends after the fetch timeout. An Unattached node would ask
    for the leader, but would not adopt the one that it knows already until the next epoch."""
    cluster, leader = dynamic()
    removed = next(each for each in (1, 2, 3) if each != leader)
    cluster.isolate(removed)
    cluster.remove_voter(leader, removed)
    cluster.append(leader, b"b")
    cluster.until(lambda: cluster.role(removed) is Role.PROSPECTIVE)
    snapshot = cluster.take_snapshot(leader)
    assert snapshot is not None
    epoch = cluster.core(leader).epoch
    node = cluster.nodes[removed]
    node.snapshots.parts[snapshot] = cluster.nodes[leader].snapshots.files[snapshot]
    node.installing = snapshot
    cluster.install(removed)
    cluster.heal()
    offset = cluster.append(leader, b"c")
    cluster.run(5000)
    assert (cluster.role(removed), cluster.core(leader).epoch) == (Role.FOLLOWER, epoch)
    assert node.log.end_offset > offset


def test_a_voter_that_was_away_while_it_was_removed_cannot_disturb() -> None:
    """The node believes that it is a voter. Pre-vote keeps it from deposing the leader (R13)."""
    cluster, leader = dynamic()
    away = next(each for each in (1, 2, 3) if each != leader)
    cluster.isolate(away)
    cluster.remove_voter(leader, away)
    cluster.run(10_000)
    epoch = cluster.core(leader).epoch
    cluster.heal()
    cluster.run(5000)
    assert cluster.core(leader).epoch == epoch
    assert cluster.role(leader) is Role.LEADER
    assert voters_of(cluster, away) == sorted({1, 2, 3} - {away})


def test_the_last_voter_stays() -> None:
    cluster, leader = dynamic(voters=1, spares=0)
    token = cluster.remove_voter(leader, leader)
    error, message = answer(cluster, leader, token)
    assert error is ErrorCode.VOTER_NOT_FOUND and "the only voter" in message


def test_a_node_that_knows_no_voter_finds_the_leader_by_its_bootstrap_servers() -> None:
    cluster, leader = dynamic(observers=1)
    observer = cluster.nodes[101]
    asked = [each for each in observer.seen if isinstance(each, effects.Send)]
    assert asked[0].voter_id < 0
    found = [each for each in observer.seen if isinstance(each, effects.LeaderFound)]
    assert found == [] or found[-1].leader_id == leader
    changed = [each for each in observer.seen if isinstance(each, effects.VotersChanged)]
    assert [each.voter_id for each in changed[-1].voters] == [1, 2, 3]


def test_a_restarted_node_has_the_set_of_its_log() -> None:
    cluster, leader = dynamic()
    cluster.add_voter(leader, 11)
    catch_up(cluster)
    for node_id in cluster.up():
        cluster.crash(node_id)
    for node_id in (11, *(each for each in (1, 2, 3) if each != leader)):
        cluster.start(node_id)
    cluster.until(lambda: any(cluster.role(each) is Role.LEADER for each in cluster.up()))
    catch_up(cluster)
    assert voters_of(cluster, 11) == [1, 2, 3, 11]


def test_a_snapshot_carries_the_set() -> None:
    cluster, leader = dynamic(spares=2)
    cluster.crash(12)
    cluster.add_voter(leader, 11)
    catch_up(cluster)
    cluster.nodes[12].log.forget_from(0)
    snapshot = cluster.take_snapshot(leader)
    assert snapshot is not None
    cluster.start(12)
    catch_up(cluster)
    assert snapshot in cluster.nodes[12].snapshots.files
    assert voters_of(cluster, 12) == [1, 2, 3, 11]
    assert cluster.core(12)._core.voters.ids == (1, 2, 3, 11)


def test_a_voter_at_another_address_says_so() -> None:
    cluster, leader = dynamic()
    moved = next(each for each in (1, 2, 3) if each != leader)
    cluster.core(moved)._core.own_voter = voter(moved, port=9999)
    cluster.run(5000)
    catch_up(cluster)
    quorum = cluster.core(leader).voters_at(cluster.nodes[leader].log.end_offset)
    ports = {each.voter_id: each.endpoints[0].port for each in quorum.voters}
    assert ports == {each: 9999 if each == moved else 9093 for each in (1, 2, 3)}


BAD_RANGE = KRaftVersionFeature(min_supported_version=2, max_supported_version=3)
JUST_IN_RANGE = KRaftVersionFeature(min_supported_version=1, max_supported_version=1)
OTHER_LISTENER = (VoterEndpoint(name="OTHER", host="h", port=1),)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"cluster_id": "other"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"epoch": 0}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"epoch": 99}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"replica": key(3)}, ErrorCode.INVALID_REQUEST),
        ({"voter": replace(voter(2), endpoints=())}, ErrorCode.INVALID_REQUEST),
        ({"voter": replace(voter(2), endpoints=OTHER_LISTENER)}, ErrorCode.INVALID_REQUEST),
        ({"voter": replace(voter(2), k_raft_version_feature=BAD_RANGE)}, ErrorCode.INVALID_REQUEST),
        ({"replica": key(11), "voter": voter(11)}, ErrorCode.VOTER_NOT_FOUND),
        ({"replica": key(2, 7), "voter": replace(voter(2), voter_directory_id=directory(2, 7))},
         ErrorCode.VOTER_NOT_FOUND),
        ({"voter": replace(voter(2), k_raft_version_feature=JUST_IN_RANGE)}, ErrorCode.NONE),
        ({}, ErrorCode.NONE),
    ],
    ids=str,
)  # fmt: skip
def test_update_raft_voter_is_checked(change: dict[str, object], error: ErrorCode) -> None:
    """A voter without an address would stop every node that reads its record."""
    cluster, leader = dynamic()
    cluster.crash(11)
    end = cluster.nodes[leader].log.end_offset
    epoch = cluster.core(leader).epoch
    fields = {"cluster_id": CLUSTER_ID, "replica": key(2), "epoch": epoch, "voter": voter(2, 9999)}
    request = UpdateVoterRequest(**fields | change)  # type: ignore[arg-type]
    answered = cluster.inject(leader, request)
    assert answered == UpdateVoterResponse(error=error, epoch=epoch, leader_id=leader)
    assert (cluster.nodes[leader].log.end_offset > end) is (error is ErrorCode.NONE)


@pytest.mark.parametrize(
    "wrong",
    [
        replace(voter(11), endpoints=()),
        replace(voter(11), endpoints=OTHER_LISTENER),
        replace(voter(11), voter_directory_id=ZERO_UUID),
        replace(voter(11), voter_id=-1),
    ],
    ids=str,
)
def test_an_incomplete_voter_is_not_added(wrong: Voter) -> None:
    cluster, leader = dynamic()
    node = cluster.nodes[leader]
    node.core.add_voter(cluster.now_ms, 77, wrong)
    cluster.collect(node)
    assert answer(cluster, leader, 77)[0] is ErrorCode.INVALID_REQUEST
    node.core.remove_voter(cluster.now_ms, 78, ReplicaKey(leader, ZERO_UUID))
    cluster.collect(node)
    assert answer(cluster, leader, 78)[0] is ErrorCode.INVALID_REQUEST


def test_a_controller_joins_by_itself_when_it_may() -> None:
    cluster, leader = dynamic(settings=JOINING)
    cluster.run(5000)
    assert voters_of(cluster, leader) == [1, 2, 3, 11]


def test_an_uninformed_voter_is_told_the_leaders_address() -> None:
    cluster, leader = dynamic()
    cluster.add_voter(leader, 11)
    told = [
        each.request
        for each in cluster.nodes[leader].seen
        if isinstance(each, effects.Send) and isinstance(each.request, BeginQuorumEpochRequest)
    ]
    assert told and all(each.leader is not None for each in told)
    assert {each.leader.host for each in told if each.leader} == {f"c{leader}"}


def test_kraft_version_is_upgraded_from_the_configured_voters() -> None:
    cluster = RaftCluster(settings=SETTINGS)
    cluster.until(lambda: any(node.high_watermark for node in cluster.nodes.values()))
    leader = cluster.leader()
    catch_up(cluster)
    configured = [voter(each) for each in (1, 2, 3)]
    node = cluster.nodes[leader]
    node.core.upgrade(cluster.now_ms, 77, 1, configured)
    cluster.collect(node)
    catch_up(cluster)
    assert answer(cluster, leader, 77)[0] is ErrorCode.NONE
    assert {tuple(voters_of(cluster, each)) for each in cluster.up()} == {(1, 2, 3)}
    node.core.upgrade(cluster.now_ms, 78, 0, configured)
    cluster.collect(node)
    assert answer(cluster, leader, 78)[0] is ErrorCode.INVALID_UPDATE_VERSION


def test_kraft_version_is_not_upgraded_before_all_voters_are_met() -> None:
    cluster = RaftCluster(settings=SETTINGS, start=False)
    for node_id in (1, 2):
        cluster.start(node_id)
    cluster.until(lambda: any(node.high_watermark for node in cluster.nodes.values()))
    leader = cluster.leader()
    node = cluster.nodes[leader]
    node.core.upgrade(cluster.now_ms, 77, 1, [voter(each) for each in (1, 2, 3)])
    cluster.collect(node)
    error, message = answer(cluster, leader, 77)
    assert error is ErrorCode.INVALID_UPDATE_VERSION and "[3]" in message


def test_a_leader_that_removed_itself_can_still_be_elected_until_that_is_committed() -> None:
    """Of two voters, one removed itself and lost its leadership before the other had the record.
    Only its own log could win, and it did not campaign, so there was no leader any more (Ongaro's
    thesis, 4.2.2)."""
    cluster, leader = dynamic(voters=2, spares=0)
    (other,) = {1, 2} - {leader}
    cluster.isolate(leader)
    cluster.remove_voter(leader, leader)
    cluster.run(10_000)
    assert cluster.role(leader) is not Role.LEADER
    assert cluster.nodes[leader].log.end_offset > cluster.nodes[other].log.end_offset
    cluster.heal()
    cluster.run(10_000)
    assert cluster.leader() == other
    assert {tuple(voters_of(cluster, each)) for each in cluster.up()} == {(other,)}


def test_a_removed_voter_finds_a_leader_of_which_it_does_not_know_where_it_is() -> None:
    """The node was down when its successor was added, and BeginQuorumEpoch is sent to voters only.
    It learns the new leader's id from the responses to its pre-votes."""
    cluster, leader = dynamic()
    away, other = (each for each in (1, 2, 3) if each != leader)
    cluster.crash(away)
    cluster.add_voter(leader, 11)
    catch_up(cluster)
    cluster.remove_voter(leader, away)
    catch_up(cluster)
    hand_over(cluster, leader, 11, other)
    cluster.cut |= {(away, 11)}
    cluster.start(away)
    seen = cluster.nodes[away].seen
    found = effects.LeaderFound(11, "c11", 9093)
    cluster.until(lambda: found in seen)
    cluster.heal()
    cluster.until(lambda: voters_of(cluster, away) == sorted((leader, other, 11)))
    told = seen.count(found)
    cluster.run(2000)
    assert seen.count(found) == told, "who fetches knows it by now"


def end_of_epoch(cluster: RaftCluster, leader: int, *preferred: int) -> EndQuorumEpochRequest:
    return EndQuorumEpochRequest(
        cluster_id=CLUSTER_ID,
        leader_id=leader,
        epoch=cluster.core(leader).epoch,
        preferred_candidates=tuple(cluster.nodes[each].me for each in preferred),
    )


def hand_over(cluster: RaftCluster, leader: int, successor: int, other: int) -> None:
    """Let `leader` resign and stop, and let `successor` be elected."""
    request = end_of_epoch(cluster, leader, successor, other)
    cluster.crash(leader)
    for node_id in (other, successor):
        cluster.inject(node_id, request)
    cluster.until(lambda: cluster.role(successor) is Role.LEADER)


def test_a_removed_voter_is_not_asked_again() -> None:
    """A snapshot removed the voter between two requests. Its retry stayed due, and the node woke up
    without end."""
    cluster, leader = dynamic(voters=4, spares=0)
    me, gone, other = (each for each in (1, 2, 3, 4) if each != leader)
    cluster.crash(me)
    cluster.remove_voter(leader, gone)
    catch_up(cluster)
    cluster.crash(gone)
    assert cluster.take_snapshot(leader)
    cluster.start(me)
    cluster.until(lambda: cluster.nodes[me].installing is not None)
    cluster.inject(me, end_of_epoch(cluster, leader, me))
    cluster.deliver(cluster.pick(VoteRequest, me, gone))
    cluster.install(me)
    assert voters_of(cluster, me) == sorted((leader, me, other))
    assert cluster.role(me) is Role.PROSPECTIVE
    cluster.now_ms += SETTINGS.retry_backoff_ms
    cluster.tick(me)


def test_a_prospective_that_learns_of_its_removal_gives_up() -> None:
    cluster, leader = dynamic()
    me, other = (each for each in (1, 2, 3) if each != leader)
    cluster.crash(me)
    cluster.remove_voter(leader, me)
    catch_up(cluster)
    assert cluster.take_snapshot(leader)
    cluster.start(me)
    node = cluster.nodes[me]
    cluster.until(lambda: node.installing is not None)
    cluster.letters.clear()
    cluster.isolate(me)
    cluster.inject(me, end_of_epoch(cluster, leader, me))
    assert cluster.role(me) is Role.PROSPECTIVE
    cluster.install(me)
    assert cluster.role(me) is Role.FOLLOWER
    cluster.heal()
    catch_up(cluster)
    assert cluster.leader() == leader and voters_of(cluster, me) == sorted((leader, other))


def test_a_leader_that_is_not_alone_any_more_needs_a_majority() -> None:
    cluster, leader = dynamic(voters=1)
    cluster.add_voter(leader, 11)
    catch_up(cluster)
    cluster.crash(11)
    cluster.run(2999)
    assert cluster.role(leader) is Role.LEADER
    cluster.run(1)
    assert cluster.role(leader) is Role.RESIGNED


def test_a_controller_with_a_new_disk_takes_the_place_of_its_old_self() -> None:
    """Auto-join first removes the old voter of that id, then adds the new one."""
    cluster, leader = dynamic(spares=0, settings=JOINING)
    wiped = next(each for each in (1, 2, 3) if each != leader)
    cluster.crash(wiped)
    cluster.wipe(wiped)
    cluster.start(wiped)
    cluster.core(wiped)._core.own_voter = replace(
        voter(wiped), voter_directory_id=cluster.nodes[wiped].me.directory_id
    )
    cluster.until(lambda: cluster.nodes[wiped].me in cluster.core(leader)._core.voters)
    catch_up(cluster)
    assert voters_of(cluster, wiped) == [1, 2, 3]


def test_a_removed_voter_that_never_fetched_from_this_leader_is_no_observer() -> None:
    cluster, first = dynamic()
    away = next(each for each in (1, 2, 3) if each != first)
    for node_id in (away, first):
        cluster.crash(node_id)
    cluster.start(first)
    cluster.until(lambda: any(cluster.role(each) is Role.LEADER for each in cluster.up()))
    catch_up(cluster)
    leader = cluster.leader()
    cluster.remove_voter(leader, away)
    catch_up(cluster)
    described = cluster.core(leader).describe()
    assert described is not None
    assert [each.replica.id for each in described.observers] == [11]


@pytest.mark.parametrize("lost", [True, False])
def test_a_replica_that_lost_its_log_is_not_added_before_it_has_caught_up_again(lost: bool) -> None:
    """Two silent voters of four would leave no majority (simulation, seed 4401)."""
    cluster, leader = dynamic(spares=2)
    core = cluster.core(leader)
    request = FetchRequest(
        cluster_id=CLUSTER_ID,
        replica=key(12),
        epoch=core.epoch,
        offset=cluster.nodes[leader].log.end_offset,
        last_fetched_epoch=core.epoch,
        max_wait_ms=0,
        max_bytes=1000,
        high_watermark=0,
        catching_up=lost,
    )
    cluster.inject(leader, request)
    token = cluster.add_voter(leader, 12)
    cluster.settle()
    if lost:
        error, message = answer(cluster, leader, token)
        assert error is ErrorCode.REQUEST_TIMED_OUT and "has not caught up" in message
    assert voters_of(cluster, leader) == ([1, 2, 3] if lost else [1, 2, 3, 12])
