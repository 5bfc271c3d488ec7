"""The leader's end of the followers' fetch sessions, request by request (KIP-227)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from quorate.broker.replication.fetches import replica_session
from quorate.broker.replication.fetches import replica_sessions as sessions
from quorate.broker.replication.partitions.partition_registry import PartitionRegistry
from quorate.quorum.ids import EpochOffset, Uuid
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.hot import FetchPartition, FetchPartitionResult
from quorate.quorum.protocol.hot.fetch_request import FetchRequest
from tests.unit.replication.cluster import ReplicaCluster, led_by

PARTITIONS = 5


class Leader:
    """Broker 1 of a cluster of one process; the test takes the part of follower 2."""

    def __init__(self) -> None:
        self.cluster = ReplicaCluster(brokers=1)
        self.cluster.register(2, epoch=100)
        self.topic = self.cluster.create("t", [led_by(1, 2)] * PARTITIONS)
        self.cluster.run(20)
        self.session = 0
        self.answers: list[tuple[int, int, list[FetchPartitionResult]]] = []

    def ask(
        self,
        epoch: int,
        *partitions: FetchPartition,
        max_bytes: int = 1 << 20,
        max_wait_ms: int = 500,
        forgotten: list[tuple[str, Uuid, int]] | None = None,
        session: int | None = None,
        replica_id: int = 2,
        client_id: str | None = None,
    ) -> None:
        request = FetchRequest(
            replica_id,
            -1,
            max_wait_ms,
            1,
            max_bytes,
            0,
            self.session if session is None else session,
            epoch,
            list(partitions),
            forgotten or [],
            "",
        )
        self.cluster.nodes[1].replicas.replica_sessions.fetch(
            request,
            lambda *answer: self.answers.append((answer[0], answer[1], list(answer[2]))),
            client_id,
        )

    def begin(self) -> None:
        self.ask(0, *(self.at(0, index) for index in range(PARTITIONS)), max_wait_ms=0)
        self.cluster.run(20)
        _, self.session, partitions = self.answers.pop()
        assert [each.partition for each in partitions] == list(range(PARTITIONS))

    def at(self, offset: int, partition: int = 0, **fields: Any) -> FetchPartition:
        wanted = FetchPartition("", self.topic, partition, offset, 1 << 20, 0)
        return wanted._replace(**fields)

    def produce(self, partition: int = 0, count: int = 1) -> None:
        for _ in range(count):
            self.cluster.produce(1, self.topic, partition_id=partition, acks=1)

    @property
    def sessions(self) -> sessions.ReplicaSessions:
        return self.cluster.nodes[1].replicas.replica_sessions

    def run(self, ms: float = 20) -> None:
        self.cluster.run(ms)

    def answer(self) -> dict[int, FetchPartitionResult]:
        assert len(self.answers) == 1, self.answers
        error, session, partitions = self.answers.pop()
        assert (error, session) == (0, self.session)
        return {each.partition: each for each in partitions}


@pytest.fixture
def leader() -> Iterator[Leader]:
    leader = Leader()
    leader.begin()
    yield leader
    leader.cluster.close()


def test_a_parked_fetch_is_answered_with_what_was_appended_only(leader: Leader) -> None:
    leader.ask(1)
    leader.run()
    assert not leader.answers
    leader.produce(3)
    leader.run()
    answer = leader.answer()
    assert list(answer) == [3]
    assert len(answer[3].records) > 0


def test_appends_of_one_iteration_are_one_answer(leader: Leader) -> None:
    leader.ask(1)
    for partition in range(PARTITIONS):
        leader.produce(partition, 2)
    leader.run()
    assert list(leader.answer()) == list(range(PARTITIONS))


def test_nothing_new_is_an_empty_answer_when_the_time_is_over(leader: Leader) -> None:
    leader.ask(1)
    leader.run(480)
    assert not leader.answers
    leader.run(40)
    assert leader.answer() == {}


def test_answered_records_are_not_sent_again_before_they_are_asked_for(leader: Leader) -> None:
    leader.produce(0)
    leader.ask(1)
    leader.run()
    assert list(leader.answer()) == [0]
    leader.produce(0)
    leader.ask(2)
    leader.run()
    assert not leader.answers, "its follower has not said yet that it has the first"
    leader.ask(3, leader.at(1))
    assert leader.answer() == {}, "one fetch at a time: the older one is let go"
    leader.run()
    answer = leader.answer()
    assert answer[0].high_watermark == 1
    assert len(answer[0].records) > 0


def test_a_moved_high_watermark_travels_with_the_next_answer_but_wakes_nobody(
    leader: Leader,
) -> None:
    leader.produce(0)
    leader.ask(1)
    leader.run()
    leader.answer()
    leader.ask(2, leader.at(1))
    leader.run(480)
    assert not leader.answers
    leader.run(40)
    answer = leader.answer()
    assert (answer[0].high_watermark, len(answer[0].records)) == (1, 0)
    leader.ask(3)
    leader.run(520)
    assert leader.answer() == {}


def test_a_follower_in_a_new_epoch_gets_the_high_watermark_again(leader: Leader) -> None:
    """It may have ignored the answer that held it, because its epoch had changed meanwhile."""
    leader.produce(0)
    leader.ask(1)
    leader.run()
    leader.answer()
    leader.ask(2, leader.at(1))
    leader.run(520)
    assert leader.answer()[0].high_watermark == 1
    leader.cluster.change(leader.topic, leader=1)
    leader.cluster.spread()
    leader.ask(3, leader.at(1, current_leader_epoch=1))
    leader.run(520)
    answer = leader.answer()
    assert (answer[0].error, answer[0].high_watermark, len(answer[0].records)) == (0, 1, 0)
    leader.ask(4)
    leader.run(520)
    assert leader.answer() == {}, "it is sent once"


def test_the_byte_limit_leaves_partitions_for_the_next_answer(leader: Leader) -> None:
    leader.produce(0)
    leader.produce(1)
    leader.ask(1, max_bytes=1)
    leader.run()
    assert list(leader.answer()) == [0], "one batch always goes"
    leader.ask(2, leader.at(1, 0), max_bytes=1)
    leader.run()
    assert [key for key, each in leader.answer().items() if len(each.records)] == [1]


def test_epochs_and_ids_of_sessions(leader: Leader) -> None:
    leader.ask(2)
    assert leader.answers.pop()[0] == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    leader.ask(1, session=leader.session + 1)
    assert leader.answers.pop()[0] == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    old = leader.session
    leader.begin()
    assert leader.session != old
    leader.ask(1, session=old)
    assert leader.answers.pop()[0] == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    leader.ask(-1)
    assert leader.answers.pop() == (0, 0, [])
    leader.ask(1)
    assert leader.answers.pop()[0] == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_forgotten_partitions_are_silent(leader: Leader) -> None:
    leader.ask(1, forgotten=[("", leader.topic, 0)])
    leader.produce(0)
    leader.run()
    assert not leader.answers
    leader.produce(1)
    leader.run()
    assert list(leader.answer()) == [1]


def test_errors_are_told_once_and_at_once(leader: Leader) -> None:
    leader.ask(1, leader.at(9))
    leader.run()
    assert leader.answer()[0].error == ErrorCode.OFFSET_OUT_OF_RANGE
    leader.ask(2)
    leader.run()
    assert not leader.answers


def test_failed_reads_of_followers_are_counted(leader: Leader) -> None:
    traffic = leader.cluster.hosted(1, leader.topic).traffic
    leader.ask(1, leader.at(9))
    leader.run()
    assert (traffic.fetch_requests, traffic.failed_fetch_requests) == (1, 1)
    leader.ask(2, leader.at(0))
    leader.produce(0)
    leader.run()
    assert (traffic.fetch_requests, traffic.failed_fetch_requests) == (2, 1)


def test_divergence_is_told_and_not_counted(leader: Leader) -> None:
    """KAFKA-13141."""
    leader.produce(0, 2)
    leader.cluster.change(leader.topic, leader=1)
    leader.cluster.spread()
    leader.run()
    leader.produce(0, 2)
    leader.ask(1, leader.at(3, current_leader_epoch=1, last_fetched_epoch=0))
    leader.run()
    assert leader.answer()[0].diverging == EpochOffset(0, 2)
    assert leader.cluster.offsets(leader.topic) == {1: (4, 0)}


def test_r58_fenced_by_a_new_epoch_while_parked(leader: Leader) -> None:
    leader.ask(1)
    leader.cluster.change(leader.topic, leader=1)
    leader.cluster.spread()
    leader.run()
    answer = leader.answer()
    assert answer[0].error == ErrorCode.FENCED_LEADER_EPOCH
    assert answer[0].leader == (1, 1)


def test_newer_epochs_wait_for_the_leaders_metadata_and_give_up_in_the_end(
    leader: Leader,
) -> None:
    leader.ask(1, leader.at(0, current_leader_epoch=1))
    leader.run(520)
    assert leader.answer() == {}
    leader.ask(2, leader.at(0, 1, current_leader_epoch=7))
    leader.cluster.change(leader.topic, leader=1)
    leader.cluster.spread()
    leader.produce(0)
    leader.run()
    assert len(leader.answer()[0].records) > 0
    answers = []
    for epoch in range(3, 13):
        leader.ask(epoch)
        leader.run(520)
        answers.append(leader.answer())
    assert [1 in each for each in answers] == [False] * 9 + [True], "after five seconds"
    assert answers[-1][1].error == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_deleted_partition(leader: Leader) -> None:
    leader.ask(1)
    leader.cluster.delete("t")
    leader.run()
    assert leader.answer()[0].error == ErrorCode.UNKNOWN_TOPIC_ID


def test_only_registered_brokers_have_sessions(leader: Leader) -> None:
    """Sessions are kept by replica id, so an invented id must leave nothing on the broker."""
    for replica_id in (-1, 0, 3, 2**31 - 1):
        leader.ask(0, leader.at(0), session=0, replica_id=replica_id)
        leader.run()
        error, session, partitions = leader.answers.pop()
        assert (error, session, partitions) == (ErrorCode.BROKER_ID_NOT_REGISTERED, 0, [])
    assert len(leader.sessions._cache) == 1, "the one of broker 2"


def test_invented_partitions_are_not_kept(leader: Leader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica_session, "MAX_UNKNOWN", 10)
    monkeypatch.setattr(PartitionRegistry, "__len__", lambda registry: 1000)
    invented = [leader.at(0, partition) for partition in range(1000, 1100)]
    leader.ask(0, leader.at(0), *invented, session=0)
    leader.run(1000)
    _, leader.session, partitions = leader.answers.pop()
    refused = [each for each in partitions if each.error == ErrorCode.UNKNOWN_TOPIC_ID]
    assert len(refused) == 90, "those beyond the bound are answered immediately"
    (session,) = leader.sessions._sessions.values()
    assert len(session) == 1 + 10
    leader.run(replica_session.AWAIT_METADATA_MAX_MS)
    leader.ask(1)
    leader.run(1000)
    assert len(leader.answer()) == 10
    assert len(session) == 1, "nothing remains of them after their error"
    assert session._answered <= session._partitions.keys()
    assert session._awaiting == {}


def test_more_partitions_than_can_exist_are_refused(
    leader: Leader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MAX_UNKNOWN", 10)
    named = [leader.at(0, partition) for partition in range(PARTITIONS + 11)]
    leader.ask(0, *named, session=0)
    leader.run()
    assert leader.answers.pop() == (ErrorCode.INVALID_REQUEST, 0, [])


def test_the_sessions_of_a_follower_together_are_bounded(
    leader: Leader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MAX_UNKNOWN", 0)
    named = [leader.at(0, partition) for partition in range(PARTITIONS)]
    for fetcher in range(10):
        leader.ask(0, *named, session=0, client_id=f"broker-2-fetcher-{fetcher}", max_wait_ms=0)
        leader.run()
    errors = [error for error, *_ in leader.answers]
    assert errors == [ErrorCode.NONE] * 4 + [ErrorCode.INVALID_REQUEST] * 6
    assert leader.sessions._counted == {2: 4 * PARTITIONS}
    leader.answers.clear()
    leader.run(sessions.SILENT_SESSION_MS + 1)
    leader.ask(0, *named, session=0, client_id="broker-2-fetcher-9", max_wait_ms=0)
    leader.run()
    assert leader.answers.pop()[0] == ErrorCode.NONE, "silent sessions make room"
    assert leader.sessions._counted == {2: PARTITIONS}
    leader.run(sessions.IDLE_SESSION_MAX_MS)
    leader.run(20_000)
    assert leader.sessions._counted == {}, "ended sessions do not count"
    leader.ask(0, *named, session=0, client_id="broker-2-fetcher-9", max_wait_ms=0)
    leader.run()
    assert leader.answers[0][0] == ErrorCode.NONE
