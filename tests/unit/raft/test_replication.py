"""Replication: append, fetch, commit and truncate (KIP-595; R14 to R26 in tests/scenarios)."""

from __future__ import annotations

import errno
from dataclasses import replace

import pytest

from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.batches.batch import batches, build_value_batch
from quorate.quorum.log.files.errors import OutOfFiles
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.raft import effects, leader
from quorate.quorum.raft.effects import Role
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.errors import BatchTooLarge, NotLeader
from quorate.quorum.raft.follower import OBSERVER_PAUSE_MS
from quorate.quorum.raft.messages import FetchRequest, FetchResponse, VoteRequest
from quorate.quorum.raft.settings import RaftSettings
from quorate.quorum.state_in_doubt import StateInDoubt
from tests.unit.raft.harness import CLUSTER_ID, WALL_OFFSET_MS, RaftCluster, key


def filled(cluster: RaftCluster, node_id: int, *epochs: int) -> None:
    """Give a node that is down a durable log with one record of each epoch."""
    log = cluster.nodes[node_id].log
    for epoch in epochs:
        log.append(
            build_value_batch(
                [b"%d" % epoch], base_offset=log.end_offset, leader_epoch=epoch, timestamp_ms=0
            ),
            wall_ms=0,
        )
    log.flush(log.end_offset)
    cluster.nodes[node_id].saved = Election(log.last_epoch)


def epochs(cluster: RaftCluster, node_id: int) -> list[int]:
    return [epoch for epoch, _ in cluster.nodes[node_id].log.entries()]


def fetch_request(
    replica: int,
    offset: int,
    last_fetched_epoch: int,
    *,
    epoch: int = 1,
    max_wait_ms: int = 0,
    high_watermark: int = 99,
    cluster_id: str = CLUSTER_ID,
) -> FetchRequest:
    return FetchRequest(
        cluster_id=cluster_id,
        replica=key(replica),
        epoch=epoch,
        offset=offset,
        last_fetched_epoch=last_fetched_epoch,
        max_wait_ms=max_wait_ms,
        max_bytes=1 << 20,
        high_watermark=high_watermark,
    )


def fetch(cluster: RaftCluster, leader: int, request: FetchRequest) -> FetchResponse:
    response = cluster.inject(leader, request)
    assert isinstance(response, FetchResponse)
    return response


# -- the way of a record --------------------------------------------------------------------------


def test_what_a_leader_appends_is_committed_everywhere() -> None:
    cluster = RaftCluster(voters=3, observers=2)
    cluster.elect(1)
    assert cluster.append(1, b"a", b"b") == 2
    cluster.run(600)
    assert [cluster.role(i) for i in (1, 2, 3)] == [Role.LEADER, Role.FOLLOWER, Role.FOLLOWER]
    assert [node.high_watermark for node in cluster.nodes.values()] == [3] * 5
    assert all(log[1:] == [(1, b"a"), (1, b"b")] for log in cluster.logs())


def test_one_commit_costs_one_fetch_per_replica() -> None:
    """An observer receives the records and their commit in one response."""
    cluster = RaftCluster(voters=3, observers=2)
    cluster.elect(1)
    cluster.run(1000)
    fetches: list[int] = []
    cluster.on_effect = lambda node, effect: (
        fetches.append(node.me.id)
        if isinstance(effect, effects.Send) and isinstance(effect.request, FetchRequest)
        else None
    )
    cluster.append(1, b"a")
    cluster.settle()
    assert sorted(fetches) == [2, 3]
    assert cluster.nodes[101].high_watermark == cluster.nodes[102].high_watermark == 2
    cluster.run(OBSERVER_PAUSE_MS)
    assert sorted(fetches) == [2, 3, 101, 102]


def test_commits_while_an_observer_rests_cost_it_one_fetch() -> None:
    cluster = RaftCluster(voters=3, observers=1)
    cluster.elect(1)
    cluster.run(1000)
    fetches: list[int] = []
    cluster.on_effect = lambda node, effect: (
        fetches.append(node.me.id)
        if isinstance(effect, effects.Send) and isinstance(effect.request, FetchRequest)
        else None
    )
    for value in (b"a", b"b", b"c", b"d"):
        cluster.append(1, value)
        cluster.settle()
    assert cluster.nodes[101].high_watermark == 2
    cluster.run(OBSERVER_PAUSE_MS)
    assert fetches.count(101) == 1
    assert cluster.nodes[101].high_watermark == 5


def test_an_observer_that_waits_for_its_own_commit_ends_its_pause() -> None:
    cluster = RaftCluster(voters=3, observers=1)
    cluster.elect(1)
    cluster.run(1000)
    cluster.append(1, b"a")
    cluster.settle()
    observer = cluster.core(101)
    rested = observer.fetch_paused
    observer.fetch_now(cluster.now_ms)
    cluster.collect(cluster.nodes[101])
    assert (rested, observer.fetch_paused) == (True, False)
    cluster.append(1, b"b")
    cluster.settle()
    assert cluster.nodes[101].high_watermark == 3


def test_an_observer_never_holds_what_is_not_committed() -> None:
    cluster = RaftCluster(voters=3, observers=1)
    cluster.elect(1)
    cluster.run(600)
    for follower in (2, 3):
        cluster.crash(follower)
    cluster.append(1, b"alone")
    cluster.run(1000)
    assert cluster.nodes[1].log.end_offset == 2
    assert cluster.nodes[101].log.end_offset == 1


def test_r20_a_leader_does_not_count_what_it_has_not_flushed() -> None:
    """etcd #14370: a single member lost a record that it had acknowledged."""
    cluster = RaftCluster(voters=1)
    cluster.save_all(1)
    cluster.settle()
    assert cluster.core(1).high_watermark == 1
    cluster.append(1, b"a")
    assert cluster.core(1).high_watermark == 1
    cluster.flush(1)
    assert cluster.core(1).high_watermark == 2


def test_voters_are_served_before_the_leader_has_flushed() -> None:
    cluster = RaftCluster()
    cluster.elect(1)
    cluster.append(1, b"a")
    for follower in (2, 3):
        cluster.deliver(cluster.pick(FetchResponse, 1, follower))
        cluster.flush(follower)
        cluster.deliver(cluster.pick(FetchRequest, follower, 1))
    assert cluster.nodes[1].log.flushed_offset == 1
    assert cluster.core(1).high_watermark == 2  # two of three have it on disk


def test_kafka_10533_a_voter_fetches_again_only_when_it_has_flushed() -> None:
    cluster = RaftCluster()
    cluster.elect(1)
    cluster.append(1, b"a")
    cluster.deliver(cluster.pick(FetchResponse, 1, 2))
    assert not [each for each in cluster.letters if each.source == 2]
    assert cluster.nodes[2].log.end_offset == 2
    cluster.flush(2)
    request = cluster.pick(FetchRequest, 2, 1).message
    assert isinstance(request, FetchRequest)
    assert request.offset == 2


def test_what_a_restart_finds_in_the_log_is_flushed_before_it_is_acknowledged() -> None:
    """If only the process died, the page cache still holds bytes that may not be on the disk."""
    cluster = RaftCluster()
    cluster.elect(1)
    cluster.append(1, b"a")
    cluster.settle()
    cluster.crash(2)
    cluster.nodes[2].log.only_in_page_cache_from(0)
    cluster.start(2)
    cluster.tick(2)
    assert [type(each) for each in cluster.nodes[2].flushes] == [effects.Flush]
    assert not [each for each in cluster.letters if each.source == 2]


def test_a_voter_whose_fetches_fail_asks_its_leader_again() -> None:
    """Only an observer asks other nodes. A voter learns of another leader from that leader, or by
    an election."""
    cluster = RaftCluster()
    cluster.elect(1)
    cluster.isolate(2)
    node, asked = cluster.nodes[2], []
    for _ in range(10):
        ((token, (_, voter_id)),) = node.waiting.items()
        asked.append(voter_id)
        del node.waiting[token]
        node.core.response(cluster.now_ms, token, None)
        cluster.now_ms += cluster.settings.retry_backoff_ms
        cluster.tick(2)
    assert asked == [1] * 10


def test_r22_a_flush_of_an_older_epoch_proves_nothing() -> None:
    """An ABA problem: a flush of offset 4 was requested, offset 4 was truncated, and it holds
    another record now (etcd async_storage_writes_append_aba_race.txt)."""
    cluster = RaftCluster()
    cluster.elect(1)
    core = cluster.core(1)
    cluster.append(1, b"old", b"older", b"oldest")
    late = cluster.nodes[1].flushes.popleft()
    cluster.isolate(1)
    cluster.letters.clear()
    cluster.run(10_000)
    leader = cluster.leader()
    assert leader != 1
    cluster.append(leader, b"new", b"new")
    cluster.settle()
    cluster.heal()
    while not cluster.nodes[1].log.truncations:
        if cluster.letters:
            cluster.deliver(cluster.letters[0])
        elif not cluster.one_step():
            cluster.pass_time(cluster.now_ms + 100)
    log = cluster.nodes[1].log
    while log.end_offset < late.offset:  # it grows as long again, and nothing of that is flushed
        if cluster.letters:
            cluster.deliver(cluster.letters[0])
        else:
            cluster.pass_time(cluster.now_ms + 100)
    assert log.flushed_offset < log.end_offset == late.offset
    core.flushed(cluster.now_ms, late.epoch, late.offset)
    cluster.collect(cluster.nodes[1])
    acknowledged = [
        each.message.offset
        for each in cluster.letters
        if each.source == 1 and isinstance(each.message, FetchRequest)
    ]
    assert acknowledged == []
    cluster.run(1000)
    assert len({tuple(log) for log in cluster.logs()}) == 1


def test_a_flush_that_a_truncation_overtook_is_asked_for_again() -> None:
    """Found by the random walk: the log had the same length again, so no flush was requested."""
    cluster = RaftCluster(start=False)
    filled(cluster, 1, 1, 2)
    filled(cluster, 2, 1, 1)
    filled(cluster, 3, 1, 2)
    cluster.nodes[2].log.only_in_page_cache_from(1)
    for node_id in (1, 3):
        cluster.start(node_id)
    cluster.elect(1)
    cluster.start(2)
    cluster.run(3000)
    assert epochs(cluster, 2) == epochs(cluster, 1)
    assert cluster.nodes[2].log.flushed_offset == cluster.nodes[2].log.end_offset


# -- commit ---------------------------------------------------------------------------------------


def test_r19_figure_8_an_older_epochs_record_is_not_committed_by_counting() -> None:
    """Figure 8 of the Raft paper: in epoch 4, S1 replicates a record of epoch 2 to a majority, and
    may still lose it. See also PySyncObj #169."""
    cluster = RaftCluster(voters=3, start=False)
    filled(cluster, 1, 1, 2)
    filled(cluster, 2, 1)
    filled(cluster, 3, 1)
    settings = RaftSettings(fetch_max_bytes=1)  # one batch per fetch
    cluster.settings = settings
    for node_id in (1, 2):
        cluster.nodes[node_id].saved = Election(3)
        cluster.start(node_id)
    cluster.settle()
    cluster.prompt(1)
    while epochs(cluster, 2) != [1, 2] or cluster.nodes[2].flushes:
        cluster.one_step()
    cluster.deliver(cluster.pick(FetchRequest, 2, 1))
    assert epochs(cluster, 1) == [1, 2, 4]
    assert epochs(cluster, 2) == [1, 2]
    assert cluster.nodes[1].log.flushed_offset == 3
    assert cluster.core(1).high_watermark == 0  # durable on two of three, and still not committed
    cluster.settle()
    assert cluster.core(1).high_watermark == 3  # with a record of its own epoch, all are


def test_r19_records_of_older_epochs_do_not_stop_the_commit_either() -> None:
    """raftos PR #30: the count stopped at the first entry of an older term."""
    cluster = RaftCluster(voters=3, start=False)
    filled(cluster, 1, *[1] * 60, *[3] * 60)
    filled(cluster, 2, *[1] * 20)
    for node_id in (1, 2, 3):
        cluster.start(node_id)
    cluster.elect(1)
    cluster.run(600)
    assert [node.high_watermark for node in cluster.nodes.values()] == [121] * 3


def test_r16_a_high_watermark_never_goes_back_over_a_change_of_leader() -> None:
    """PySyncObj #166, raft.tla #19: the commit index decreased. The next leader has all committed
    records, but does not know yet that they are committed. A follower may know it."""
    cluster = RaftCluster()
    cluster.elect(1)
    cluster.run(600)
    cluster.append(1, b"a")
    for follower in (2, 3):
        cluster.deliver(cluster.pick(FetchResponse, 1, follower))
        cluster.flush(follower)
    cluster.flush(1)
    for follower in (2, 3):
        cluster.deliver(cluster.pick(FetchRequest, follower, 1))
    cluster.now_ms += cluster.settings.fetch_max_wait_ms
    cluster.tick(1)
    cluster.deliver(cluster.pick(FetchResponse, 1, 3))
    cluster.letters.clear()
    cluster.kill(1)
    assert [cluster.core(each).high_watermark for each in (2, 3)] == [1, 2]
    told: list[int] = []
    cluster.on_effect = lambda node, effect: (
        told.append(effect.response.high_watermark)
        if isinstance(effect, effects.Reply) and isinstance(effect.response, FetchResponse)
        else None
    )
    cluster.prompt(2)
    while cluster.one_step():
        assert cluster.core(3).high_watermark >= 2
    assert cluster.role(2) is Role.LEADER
    assert told[0] == 1 and cluster.core(2).high_watermark == 3


def test_r15_what_is_not_known_to_match_is_not_committed_either() -> None:
    """Found by the random walk: a response that reports a divergence carries the leader's high
    watermark. It was applied to the diverging log."""
    cluster = RaftCluster(start=False)
    filled(cluster, 1, 1, 3, 3)
    filled(cluster, 2, 1, 3, 3)
    filled(cluster, 3, 1, 2, 2, 2)
    for node_id in (1, 2):
        cluster.start(node_id)
    cluster.elect(1)
    assert cluster.core(1).high_watermark == 4
    cluster.start(3)
    while not cluster.nodes[3].log.truncations:
        if not cluster.one_step():
            cluster.pass_time(cluster.now_ms + 100)
    assert cluster.core(3).high_watermark == 0
    cluster.run(1000)
    assert epochs(cluster, 3) == [1, 3, 3, 4]
    assert cluster.core(3).high_watermark == 4


def test_r15_a_follower_commits_only_what_it_has() -> None:
    """openraft 9540c904: a follower committed up to the end of its log, beyond the verified
    part."""
    cluster = RaftCluster()
    cluster.elect(1)
    cluster.append(1, b"a")
    letter = cluster.pick(FetchResponse, 1, 2)
    message = letter.message
    assert isinstance(message, FetchResponse)
    letter.message = FetchResponse(
        error=0, epoch=1, leader_id=1, high_watermark=99, records=message.records
    )
    cluster.deliver(letter)
    assert cluster.core(2).high_watermark == 2


# -- divergence -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "log"),
    [
        ("a", [1, 1, 1, 4, 4, 5, 5, 6, 6]),
        ("b", [1, 1, 1, 4]),
        ("c", [1, 1, 1, 4, 4, 5, 5, 6, 6, 6, 6]),
        ("d", [1, 1, 1, 4, 4, 5, 5, 6, 6, 6, 7, 7]),
        ("e", [1, 1, 1, 4, 4, 4, 4]),
        ("f", [1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3]),
    ],
)
def test_figure_7_every_follower_comes_to_the_leaders_log(name: str, log: list[int]) -> None:
    """Figure 7 of the Raft paper: missing and extra uncommitted records, in all combinations."""
    leaders = [1, 1, 1, 4, 4, 5, 5, 6, 6, 6]
    cluster = RaftCluster(voters=3, start=False)
    filled(cluster, 1, *leaders)
    filled(cluster, 2, *leaders[:7])
    filled(cluster, 3, *log)
    cluster.nodes[1].saved = cluster.nodes[2].saved = Election(7)
    for node_id in (1, 2):
        cluster.start(node_id)
    cluster.elect(1)
    cluster.start(3)
    cluster.run(3000)
    assert epochs(cluster, 3) == [*leaders, 8]
    truncations = cluster.nodes[3].log.truncations
    assert len(truncations) <= len(set(log)), f"{name}: one round per epoch at most (R23)"
    told = [each for each in cluster.nodes[3].seen if isinstance(each, effects.Truncated)]
    assert [each.offset for each in told] == truncations


def test_r14_a_late_answer_truncates_nothing() -> None:
    """A late response to an older fetch, with records that the log already holds, is ignored.
    openraft 9540c904, raftos #26, willemt/raft PR #118."""
    cluster = RaftCluster()
    cluster.elect(1)
    cluster.append(1, b"a")
    late = cluster.pick(FetchResponse, 1, 2)
    cluster.deliver(late, keep=True)
    cluster.settle()
    cluster.append(1, b"b")
    cluster.settle()
    before = cluster.nodes[2].log.entries()
    cluster.letters.append(late)
    cluster.deliver(late)
    assert cluster.nodes[2].log.entries() == before
    assert cluster.nodes[2].log.truncations == []


def test_a_follower_never_truncates_what_is_committed() -> None:
    cluster = RaftCluster()
    cluster.elect(1)
    cluster.append(1, b"a")
    cluster.run(600)
    assert cluster.core(2).high_watermark == 2
    cluster.append(1, b"b")
    letter = cluster.pick(FetchResponse, 1, 2)
    letter.message = FetchResponse(
        error=0, epoch=1, leader_id=1, high_watermark=2, diverging=EpochOffset(0, 0)
    )
    cluster.deliver(letter)
    assert cluster.nodes[2].log.end_offset == 2
    refused = [each for each in cluster.nodes[2].seen if isinstance(each, effects.PeerProblem)]
    assert "committed records from offset 0 to 2" in refused[-1].reason


def test_an_answer_with_damaged_records_is_asked_for_again() -> None:
    cluster = RaftCluster()
    cluster.elect(1)
    cluster.append(1, b"a")
    letter = cluster.pick(FetchResponse, 1, 2)
    message = letter.message
    assert isinstance(message, FetchResponse)
    damaged = bytearray(message.records)
    damaged[-2] ^= 1
    letter.message = FetchResponse(
        error=0, epoch=1, leader_id=1, high_watermark=1, records=bytes(damaged)
    )
    cluster.deliver(letter)
    assert cluster.nodes[2].log.end_offset == 1
    assert isinstance(cluster.nodes[2].seen[-1], effects.PeerProblem)
    cluster.run(600)
    assert cluster.nodes[2].log.end_offset == 2


# -- what a leader answers ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (fetch_request(2, 1, 1, cluster_id="other"), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (fetch_request(2, 0, 0, epoch=0), ErrorCode.FENCED_LEADER_EPOCH),
        (fetch_request(2, 1, 1, epoch=2), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (fetch_request(2, -1, 1), ErrorCode.INVALID_REQUEST),
        (fetch_request(2, 1, -1), ErrorCode.INVALID_REQUEST),
        (fetch_request(2, -1, 1, epoch=0), ErrorCode.INVALID_REQUEST),  # as in Kafka, before epochs
        (fetch_request(2, 1, 2), ErrorCode.INVALID_REQUEST),
        (fetch_request(2, 1, 1, max_wait_ms=-1), ErrorCode.INVALID_REQUEST),
        (fetch_request(-1, 1, 1), ErrorCode.INVALID_REQUEST),
        (fetch_request(2, 0, 0), ErrorCode.INVALID_REQUEST),  # a step back
    ],
    ids=str,
)
def test_fetches_that_are_refused(request_: FetchRequest, error: ErrorCode) -> None:
    cluster = RaftCluster()
    cluster.elect(1)
    response = fetch(cluster, 1, request_)
    assert (response.error, response.epoch, response.leader_id) == (error, 1, 1)


def test_r17_kafka_12181_a_step_back_is_refused_and_uncounted() -> None:
    """The disk lost acknowledged records. The acknowledgement stays, and the voter gets no records.
    PySyncObj #167, raftos #25: the match index decreased."""
    cluster = RaftCluster()
    cluster.elect(1)
    cluster.append(1, b"a")
    cluster.settle()
    cluster.crash(2)
    cluster.nodes[2].log.forget_from(0)
    cluster.start(2)
    cluster.run(1500)
    assert cluster.nodes[2].log.end_offset == 0
    description = cluster.core(1).describe()
    assert description is not None
    assert [each.log_end_offset for each in description.voters] == [2, 2, 2]
    assert cluster.core(1).high_watermark == 2
    reasons = [e.reason for e in cluster.nodes[1].seen if isinstance(e, effects.PeerProblem)]
    assert "KAFKA-12181" in reasons[0]


def test_a_fetch_at_a_node_that_does_not_lead_says_who_does() -> None:
    cluster = RaftCluster()
    cluster.elect(1)
    response = fetch(cluster, 2, fetch_request(101, 0, 0))
    assert (response.error, response.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 1)


def test_a_newer_fetch_of_a_replica_replaces_the_parked_one() -> None:
    cluster = RaftCluster()
    cluster.elect(1)
    waiting = len(cluster.nodes[1].incoming)
    cluster.deliver_request(1, fetch_request(2, 1, 1, max_wait_ms=500))
    assert len(cluster.nodes[1].incoming) == waiting
    assert isinstance(cluster.letters[-1].message, FetchResponse)


@pytest.mark.parametrize("asked", [200, 1 << 40])
def test_an_answer_is_bounded_by_both_sides(asked: int) -> None:
    cluster = RaftCluster(settings=RaftSettings(fetch_max_bytes=300), directories_known=True)
    cluster.elect(1)
    for _ in range(5):
        cluster.append(1, b"x" * 20)
    answered = fetch(cluster, 1, replace(fetch_request(2, 1, 1), max_bytes=asked))
    assert 0 < len(answered.records) <= min(asked, 300)


def test_what_was_read_for_a_voter_is_not_served_to_an_observer() -> None:
    """The leader keeps the last slice, which ends where the voter's fetch ended."""
    cluster = RaftCluster(observers=1, directories_known=True)
    cluster.elect(1)
    cluster.crash(3)
    cluster.crash(101)
    cluster.append(1, b"a")
    cluster.append(1, b"b")
    cluster.flush(1)
    both = fetch(cluster, 1, fetch_request(2, 1, 1))
    fetch(cluster, 1, fetch_request(2, 2, 1))
    assert cluster.core(1).high_watermark == 2
    committed = fetch(cluster, 1, fetch_request(101, 1, 1, high_watermark=0))
    assert [each.base_offset for _, each in batches(both.records)] == [1, 2]
    assert [each.base_offset for _, each in batches(committed.records)] == [1]


def test_a_parked_fetch_ends_after_max_wait() -> None:
    cluster = RaftCluster()
    cluster.elect(1)
    start_ms = cluster.now_ms
    cluster.pass_time(start_ms + 10_000)
    assert cluster.now_ms == start_ms + cluster.settings.fetch_max_wait_ms
    assert {each.target for each in cluster.letters} == {2, 3}


def test_a_parked_fetch_that_may_wait_less_ends_before_earlier_ones() -> None:
    cluster = RaftCluster(voters=1, observers=2)
    cluster.elect(1)
    for replica, max_wait_ms in ((201, 400), (202, 100)):
        request = fetch_request(replica, 1, 1, max_wait_ms=max_wait_ms)
        assert cluster.inject(1, request, source=replica) is None
    cluster.letters.clear()
    cluster.now_ms += 100
    cluster.tick(1)
    assert [each.target for each in cluster.letters if each.target > 200] == [202]


def test_r25_whoever_waits_at_a_deposed_leader_is_told_at_once() -> None:
    """openraft 43dd8b6f, #1761: a client that waited at a deposed leader never got a response."""
    cluster = RaftCluster(voters=3, observers=1)
    cluster.elect(1)
    cluster.run(600)
    assert len(cluster.nodes[1].incoming) == 3
    cluster.inject(
        1,
        VoteRequest(
            cluster_id=CLUSTER_ID,
            voter=key(1),
            candidate=key(3),
            epoch=5,
            last=EpochOffset(1, 1),
            pre_vote=False,
        ),
    )
    answers = [each.message for each in cluster.letters if each.source == 1]
    assert len(answers) == 3
    for answer in answers:
        assert isinstance(answer, FetchResponse)
        assert (answer.error, answer.epoch) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 5)


def test_observers_are_bounded_and_forgotten_when_they_are_gone() -> None:
    settings = RaftSettings(max_observers=2, observer_session_timeout_ms=10_000)
    cluster = RaftCluster(settings=settings)
    cluster.elect(1)
    for observer in (101, 102):
        assert fetch(cluster, 1, fetch_request(observer, 0, 0)).error == ErrorCode.NONE
    refused = fetch(cluster, 1, fetch_request(103, 0, 0))
    assert refused.error == ErrorCode.REQUEST_TIMED_OUT
    cluster.run(12_000)
    assert fetch(cluster, 1, fetch_request(103, 0, 0)).error == ErrorCode.NONE


def test_only_a_leader_appends_and_within_a_bound() -> None:
    cluster = RaftCluster(settings=RaftSettings(max_batch_bytes=200))
    with pytest.raises(NotLeader):
        cluster.append(1, b"a")
    cluster.elect(1)
    with pytest.raises(NotLeader, match="node 1 does"):
        cluster.append(2, b"a")
    with pytest.raises(BatchTooLarge, match="at most 200 bytes"):
        cluster.append(1, b"a" * 200)
    assert cluster.nodes[1].log.end_offset == 1


def test_a_leader_without_a_descriptor_for_its_log_resigns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The log is unchanged, so nothing is in doubt. Another voter may have descriptors."""
    cluster = RaftCluster(voters=3)
    cluster.elect(1)
    log = cluster.nodes[1].log
    end_offset = log.end_offset

    def refuse(*arguments: object, **options: object) -> None:
        raise OutOfFiles(errno.EMFILE, "Too many open files", "0.log")

    with monkeypatch.context() as patched:
        patched.setattr(log, "append", refuse)
        with pytest.raises(NotLeader):
            cluster.append(1, b"a")
    assert log.end_offset == end_offset
    cluster.run(10_000)
    leaders = [each for each in (1, 2, 3) if cluster.core(each).role is Role.LEADER]
    assert len(leaders) == 1
    cluster.append(leaders[0], b"b")


def test_a_lack_of_descriptors_after_an_append_stops_the_leader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """NotLeader would say that nothing was appended."""
    cluster = RaftCluster(voters=3)
    cluster.elect(1)
    end_offset = cluster.nodes[1].log.end_offset

    def refuse(*arguments: object) -> None:
        raise OutOfFiles(errno.EMFILE, "Too many open files", "0.log")

    monkeypatch.setattr(leader, "complete_voter_fetches", refuse)
    with pytest.raises(StateInDoubt, match="after an append"):
        cluster.append(1, b"a")
    assert cluster.nodes[1].log.end_offset == end_offset + 1


def test_a_follower_without_a_descriptor_for_its_log_fetches_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = RaftCluster(voters=3)
    cluster.elect(1)
    cluster.run(600)
    log = cluster.nodes[2].log
    end_offset = log.end_offset

    def refuse(*arguments: object, **options: object) -> None:
        raise OutOfFiles(errno.EMFILE, "Too many open files", "0.log")

    with monkeypatch.context() as patched:
        patched.setattr(log, "append", refuse)
        cluster.append(1, b"a")
        cluster.run(600)
        assert log.end_offset == end_offset
    cluster.run(2000)
    assert log.end_offset == end_offset + 1


def test_descriptions_tell_who_has_what() -> None:
    cluster = RaftCluster(voters=3, observers=1)
    cluster.elect(1)
    cluster.append(1, b"a")
    cluster.run(600)
    cluster.crash(3)
    cluster.append(1, b"b")
    cluster.run(600)
    description = cluster.core(1).describe()
    assert description is not None
    assert (description.leader_id, description.epoch, description.high_watermark) == (1, 1, 3)
    assert [each.log_end_offset for each in description.voters] == [3, 3, 2]
    assert [each.log_end_offset for each in description.observers] == [3]
    late, early = description.voters[1], description.voters[2]
    assert late.last_caught_up_ms > early.last_caught_up_ms > 1_700_000_000_000
    assert late.last_fetch_ms > early.last_fetch_ms
    stepped_ms = cluster.now_ms + WALL_OFFSET_MS + 3_600_000
    cluster.core(1).append(cluster.now_ms, stepped_ms, [b"c"])
    stepped = cluster.core(1).describe()
    assert stepped is not None and stepped.voters[0].last_fetch_ms == stepped_ms
    assert cluster.core(2).describe() is None


def test_a_fetch_counts_from_when_it_came() -> None:
    """A fetch counts from its arrival. Otherwise the leader would resign too early."""
    cluster = RaftCluster(voters=3)
    cluster.elect(1)
    cluster.now_ms += 300
    fetch(cluster, 1, fetch_request(2, 1, 1))
    description = cluster.core(1).describe()
    assert description is not None
    assert description.voters[1].last_fetch_ms == cluster.now_ms + WALL_OFFSET_MS
