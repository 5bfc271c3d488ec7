"""Incremental fetches of consumers, request by request (KIP-227)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from quorate.broker.replication.fetches import consumer_sessions
from quorate.broker.replication.fetches import fetch_session_cache as session_cache
from quorate.broker.replication.fetches.fetch_session_cache import EVICTION_MS
from quorate.quorum.ids import ZERO_UUID, Uuid
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.hot import FetchPartition, FetchPartitionResult
from quorate.quorum.protocol.hot.fetch_request import FetchRequest
from tests.unit.replication.cluster import ReplicaCluster, led_by

PARTITIONS = 4
SLOTS = 2


class Broker:
    """One broker; the test takes the part of its consumers."""

    def __init__(self) -> None:
        self.cluster = ReplicaCluster(brokers=1, max_fetch_sessions=SLOTS)
        self.topic = self.cluster.create("t", [led_by(1)] * PARTITIONS)
        self.cluster.run(20)
        self.answers: list[tuple[int, int, list[FetchPartitionResult]]] = []

    def send(
        self,
        session: int,
        epoch: int,
        *partitions: FetchPartition,
        max_wait_ms: int = 0,
        max_bytes: int = 1 << 20,
        forgotten: tuple[tuple[str, Uuid, int], ...] = (),
        by_name: bool = False,
    ) -> None:
        request = FetchRequest(
            -1, -1, max_wait_ms, 1, max_bytes, 0, session, epoch, [*partitions], [*forgotten], ""
        )
        self.cluster.nodes[1].replicas.fetch_as_consumer(
            request,
            55 << 20,
            lambda *answer: self.answers.append((answer[0], answer[1], list(answer[2]))),
            uses_topic_ids=not by_name,
        )

    def ask(self, session: int, epoch: int, *partitions: FetchPartition, **options: Any) -> Any:
        """Return (error, session id, {partition: (error, True if it has records)})."""
        self.send(session, epoch, *partitions, **options)
        self.cluster.run(20)
        error, session_id, results = self.answers.pop(0)
        return error, session_id, [each.partition for each in results]

    def errors(self, session: int, epoch: int, *partitions: FetchPartition) -> list[int]:
        self.send(session, epoch, *partitions)
        self.cluster.run(20)
        return [each.error for each in self.answers.pop(0)[2]]

    def begin(self, *partitions: int) -> int:
        error, session, told = self.ask(0, 0, *(self.at(0, each) for each in partitions))
        assert (error, told) == (0, list(partitions))
        return int(session)

    def at(self, offset: int, partition: int = 0, **fields: Any) -> FetchPartition:
        wanted = FetchPartition("", self.topic, partition, offset, 1 << 20, -1)
        return wanted._replace(**fields)

    def produce(self, partition: int = 0) -> None:
        self.cluster.produce(1, self.topic, partition_id=partition)
        self.cluster.run(20)


@pytest.fixture
def broker() -> Iterator[Broker]:
    broker = Broker()
    yield broker
    broker.cluster.close()


def test_the_first_answer_tells_everything_and_the_next_what_has_changed(broker: Broker) -> None:
    session = broker.begin(0, 1, 2, 3)
    assert session > 0
    assert broker.ask(session, 1) == (0, session, [])
    broker.produce(2)
    assert broker.ask(session, 2) == (0, session, [2])
    assert broker.ask(session, 3) == (0, session, [2]), "records are told until they are passed"
    assert broker.ask(session, 4, broker.at(1, 2)) == (0, session, [])


def test_a_parked_fetch_without_any_partition_named_is_woken_by_an_append(broker: Broker) -> None:
    session = broker.begin(0, 1)
    broker.send(session, 1, max_wait_ms=500)
    broker.cluster.run(20)
    assert not broker.answers
    broker.produce(1)
    ((error, _, results),) = broker.answers
    assert error == 0
    assert [(each.partition, len(each.records) > 0) for each in results] == [(1, True)]


def test_a_moved_high_watermark_or_log_start_is_told_once(broker: Broker) -> None:
    session = broker.begin(0, 1)
    broker.produce(0)
    assert broker.ask(session, 1, broker.at(1, 0)) == (0, session, [0])
    assert broker.ask(session, 2) == (0, session, [])
    hosted = broker.cluster.hosted(1, broker.topic, 0)
    hosted.log.advance_start(1)
    assert broker.ask(session, 3) == (0, session, [0])
    assert broker.ask(session, 4) == (0, session, [])


def test_errors_are_told_every_time_and_then_everything(broker: Broker) -> None:
    session = broker.begin(0, 1)
    assert broker.errors(session, 1, broker.at(9)) == [ErrorCode.OFFSET_OUT_OF_RANGE]
    assert broker.errors(session, 2) == [ErrorCode.OFFSET_OUT_OF_RANGE]
    assert broker.errors(session, 3, broker.at(0)) == [ErrorCode.NONE], "told: the error is gone"
    assert broker.errors(session, 4) == []


def test_epochs_are_counted_and_ids_are_known(broker: Broker) -> None:
    session = broker.begin(0)
    assert broker.ask(session, 2) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0, [])
    assert broker.ask(session, 1)[0] == 0
    assert broker.ask(session, 1) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0, [])
    assert broker.ask(session ^ 1, 2) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0, [])
    assert broker.ask(session, 2)[0] == 0, "none of these harmed the session"


def test_after_the_last_epoch_comes_1(broker: Broker) -> None:
    session = broker.begin(0)
    cache = broker.cluster.nodes[1].replicas.session_cache
    held = cache.get(session)
    assert held is not None
    held.next_epoch = 2**31 - 1
    assert broker.ask(session, 2**31 - 1)[0] == 0
    assert broker.ask(session, 1)[0] == 0


def test_forgotten_partitions_are_not_read_and_the_last_one_ends_the_session(
    broker: Broker,
) -> None:
    session = broker.begin(0, 1)
    broker.produce(0)
    forget_0 = ("", broker.topic, 0)
    assert broker.ask(session, 1, forgotten=(forget_0,)) == (0, session, [])
    assert broker.ask(session, 2, broker.at(0)) == (0, session, [0]), "named again"
    forget_1 = ("", broker.topic, 1)
    assert broker.ask(session, 3, forgotten=(forget_0, forget_1)) == (0, 0, [])
    assert broker.ask(session, 4)[0] == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_the_final_epoch_ends_a_session_and_answers_what_it_names(broker: Broker) -> None:
    session = broker.begin(0)
    assert broker.ask(session, -1, broker.at(0, 3)) == (0, 0, [3])
    assert broker.ask(session, 1)[0] == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_full_fetch_replaces_the_session_that_it_names(broker: Broker) -> None:
    session = broker.begin(0)
    error, other, _ = broker.ask(session, 0, broker.at(0))
    assert error == 0 and other not in (0, session)
    assert broker.ask(session, 1)[0] == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_names_and_topic_ids_are_not_mixed(broker: Broker) -> None:
    session = broker.begin(0)
    assert broker.ask(session, 1, by_name=True)[0] == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    by_name = broker.at(0, topic="t", topic_id=ZERO_UUID)
    _, named, _ = broker.ask(0, 0, by_name, by_name=True)
    assert broker.ask(named, 1)[0] == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    broker.produce(0)
    assert broker.ask(named, 1, by_name=True) == (0, named, [0])
    gone = ("t", ZERO_UUID, 0)
    assert broker.ask(named, 2, forgotten=(gone,), by_name=True) == (0, 0, [])


def test_full_answers_take_turns(broker: Broker) -> None:
    """One answer has room for one batch. Without turns, the first partition would starve the
    others."""
    session = broker.begin(0, 1, 2)
    for partition in (0, 1, 2):
        broker.produce(partition)
    seen = []
    for epoch in range(1, 7):
        broker.send(session, epoch, max_bytes=1)
        broker.cluster.run(20)
        results = broker.answers.pop(0)[2]
        seen += [each.partition for each in results if len(each.records)]
    assert seen == [0, 1, 2, 0, 1, 2]


def test_an_answer_that_was_not_waited_for_is_an_error(broker: Broker) -> None:
    session = broker.begin(0)
    broker.send(session, 1, max_wait_ms=500)
    broker.send(session, 2, max_wait_ms=0)
    broker.cluster.run(600)
    answers = [(error, session_id) for error, session_id, _ in broker.answers]
    assert answers == [(0, session), (ErrorCode.INVALID_FETCH_SESSION_EPOCH, session)]


def test_topics_that_go_and_come_again(broker: Broker) -> None:
    session = broker.begin(0)
    unknown = broker.at(0, topic_id=Uuid(bytes(15) + b"\x01"))
    assert broker.errors(session, 1, unknown) == [ErrorCode.UNKNOWN_TOPIC_ID]
    assert broker.errors(0, -1, unknown) == [ErrorCode.UNKNOWN_TOPIC_ID]
    broker.cluster.delete("t")
    broker.cluster.run(20)
    gone = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID]
    assert broker.errors(session, 2) == gone, "by the name that it had"
    assert broker.errors(0, -1, broker.at(0)) == [ErrorCode.UNKNOWN_TOPIC_ID]
    broker.cluster.create("t", [led_by(1)])
    broker.cluster.run(20)
    again = [ErrorCode.INCONSISTENT_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_ID]
    assert broker.errors(session, 3) == again


def test_without_a_free_slot_a_consumer_goes_on_without_a_session(broker: Broker) -> None:
    first, second = broker.begin(0), broker.begin(1)
    assert broker.ask(0, 0, broker.at(0), broker.at(0, 1)) == (0, 0, [0, 1])
    broker.cluster.run(EVICTION_MS)
    assert broker.ask(first, 1)[0] == 0
    assert broker.ask(0, 0, broker.at(0, 2))[1] > 0, "in the place of the one that is stale"
    assert broker.ask(second, 1)[0] == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert broker.ask(first, 2)[0] == 0


def test_a_session_holds_so_many_partitions(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer_sessions, "MAX_PARTITIONS", 2)
    assert broker.ask(0, 0, *(broker.at(0, each) for each in range(3)))[:2] == (0, 0)
    session = broker.begin(0, 1)
    grown = broker.ask(session, 1, broker.at(0, 2))
    assert grown == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0, [])


def test_sessions_together_are_bounded_and_the_largest_ends_first(broker: Broker) -> None:
    cache = broker.cluster.nodes[1].replicas.session_cache
    cache.max_consumer_bytes = 6 * session_cache.PARTITION_BYTES
    large = broker.begin(0, 1, 2, 3)
    small = broker.begin(0, 1)
    assert cache.consumer_bytes == cache.max_consumer_bytes
    broker.ask(small, 1, broker.at(0, 2))
    assert cache.get(small) is not None, "it is smaller than the other one, so it may grow"
    assert cache.get(large) is None
    assert cache.consumer_bytes == 3 * session_cache.PARTITION_BYTES
    error, session, told = broker.ask(0, 0, *(broker.at(0, each % 4) for each in range(4)))
    assert (error, session, told) == (0, 0, [0, 1, 2, 3]), "answered, but not kept"
    broker.ask(small, 2, forgotten=(("", broker.topic, 2), ("", broker.topic, 1)))
    assert cache.consumer_bytes == session_cache.PARTITION_BYTES
    cache.remove(small)
    assert cache.consumer_bytes == 0


def test_a_session_that_grows_beyond_the_budget_ends(broker: Broker) -> None:
    cache = broker.cluster.nodes[1].replicas.session_cache
    cache.max_consumer_bytes = 3 * session_cache.PARTITION_BYTES
    session = broker.begin(0, 1)
    error, session_id, _ = broker.ask(session, 1, broker.at(0, 2), broker.at(0, 3))
    assert (error, session_id) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)
    assert cache.get(session) is None
    assert (cache.consumer_bytes, cache.evicted_for_bytes) == (0, 1)


class Client:
    """A double of a client's request, which runs long work when the test calls it."""

    def __init__(self) -> None:
        self.on_abandoned: Callable[[], None] | None = None
        self.work: list[IncrementalWork[None]] = []

    def run(self, steps: IncrementalWork[None]) -> None:
        self.work.append(steps)

    def finish(self) -> int:
        """Run all work, and return the number of its steps."""
        steps = 0
        while self.work:
            for _ in self.work.pop(0):
                steps += 1
        return steps


def waiting(broker: Broker) -> tuple[Client, list[Any]]:
    """Return a client whose fetch waits for records, and the list of its answers."""
    replicas = broker.cluster.nodes[1].replicas
    request = FetchRequest(-1, -1, 2**31 - 1, 1, 1 << 20, 0, 0, -1, [broker.at(0)], [], "")
    answers: list[Any] = []
    client = Client()
    replicas.fetch_as_consumer(
        request, 1 << 20, lambda *answer: answers.append(answer), uses_topic_ids=True, client=client
    )
    return client, answers


def test_an_answered_fetch_leaves_no_reference_cycle(broker: Broker) -> None:
    client, answers = waiting(broker)
    abandon = client.on_abandoned
    assert abandon is not None
    broker.produce()
    assert answers
    assert client.on_abandoned is None, "the client would refer to the fetch, which refers to it"


def test_a_fetch_of_a_client_that_has_gone_waits_no_longer(broker: Broker) -> None:
    replicas = broker.cluster.nodes[1].replicas
    client, answers = waiting(broker)
    assert len(replicas.consumer_fetches.delayed) == 1
    abandon = client.on_abandoned
    assert abandon is not None
    abandon()
    abandon()
    assert client.on_abandoned is None
    assert len(replicas.consumer_fetches.delayed) == 0
    assert len(replicas._delayed_operations) == 0
    broker.produce()
    assert answers == []


@pytest.mark.parametrize("waits", [False, True])
def test_a_large_fetch_is_answered_in_steps_like_a_small_one(broker: Broker, waits: bool) -> None:
    replicas = broker.cluster.nodes[1].replicas
    if not waits:
        broker.produce(1)
    unknown = [] if waits else [broker.at(0, number) for number in range(4, 5000)]
    repeated = [broker.at(0, number % PARTITIONS) for number in range(1000)]
    request = FetchRequest(-1, -1, 10_000, 1, 1 << 20, 0, 0, -1, [*repeated, *unknown], [], "")
    answers: list[Any] = []
    client = Client()
    replicas.fetch_as_consumer(
        request, 1 << 20, lambda *answer: answers.append(answer), uses_topic_ids=True, client=client
    )
    assert client.finish() > len(request.partitions) // 100
    if waits:
        assert len(replicas.consumer_fetches.delayed) == 1
        broker.produce(1)
        broker.produce(1)
        assert len(client.work) == 1, "woken twice, it reads once"
        client.finish()
    ((error, _, results),) = answers
    assert error == 0
    assert [each.partition for each in results] == [each.partition for each in request.partitions]
    assert sum(bool(len(each.records)) for each in results) > 0
    assert len(replicas.consumer_fetches.delayed) == 0


def test_a_large_fetch_learns_of_records_that_come_before_it_watches(broker: Broker) -> None:
    replicas = broker.cluster.nodes[1].replicas
    repeated = [broker.at(0, number % PARTITIONS) for number in range(1000)]
    request = FetchRequest(-1, -1, 10_000, 1, 1 << 20, 0, 0, -1, repeated, [], "")
    answers: list[Any] = []
    client = Client()
    replicas.fetch_as_consumer(
        request, 1 << 20, lambda *answer: answers.append(answer), uses_topic_ids=True, client=client
    )
    while not replicas.consumer_fetches.delayed:
        for _ in client.work.pop(0):
            pass
    broker.produce(1)  # the partitions are read, and not watched yet
    assert not answers
    client.finish()
    broker.cluster.run(100)
    client.finish()
    ((error, _, results),) = answers
    assert error == 0
    assert any(len(each.records) for each in results)


def test_beyond_the_bound_the_fetch_that_waited_longest_is_answered(broker: Broker) -> None:
    replicas = broker.cluster.nodes[1].replicas
    replicas.consumer_fetches._max_delayed = 2
    answers: list[int] = []
    request = FetchRequest(-1, -1, 10_000, 1, 1 << 20, 0, 0, -1, [broker.at(0)], [], "")

    def ask(number: int) -> None:
        replicas.fetch_as_consumer(
            request, 1 << 20, lambda *answer: answers.append(number), uses_topic_ids=True
        )

    for number in range(4):
        ask(number)
    assert answers == [0, 1]
    assert len(replicas.consumer_fetches.delayed) == 2


def test_a_fetch_reads_no_more_than_there_is_room_for(broker: Broker) -> None:
    for _ in range(20):
        broker.produce()
    replicas = broker.cluster.nodes[1].replicas
    broker.send(0, -1, broker.at(0))
    broker.cluster.run(20)
    full = len(broker.answers.pop()[2][0].records)
    replicas.consumer_fetches._room = lambda: full // 4
    broker.send(0, -1, broker.at(0))
    broker.cluster.run(20)
    assert 0 < len(broker.answers.pop()[2][0].records) <= full // 4
    replicas.consumer_fetches._room = lambda: 1
    broker.send(0, -1, broker.at(0))
    broker.cluster.run(20)
    assert len(broker.answers.pop()[2][0].records) == full // 20, "one batch remains possible"


def test_results_that_are_taken_back_are_sent_again(broker: Broker) -> None:
    """A throttled consumer gets no results (KAFKA-6946). It must learn of a raised log start later,
    which no record announces."""
    session = broker.begin(0, 1)
    broker.produce(0)
    assert broker.ask(session, 1, broker.at(1, 0)) == (0, session, [0])
    broker.cluster.hosted(1, broker.topic, 0).log.advance_start(1)
    broker.send(session, 2)
    broker.cluster.run(20)
    results = broker.answers.pop(0)[2]
    assert [each.partition for each in results] == [0]
    broker.cluster.nodes[1].replicas.withdraw_fetch(session, results, ends=False)
    assert broker.ask(session, 3) == (0, session, [0])
    assert broker.ask(session, 4) == (0, session, [])
    broker.cluster.nodes[1].replicas.withdraw_fetch(session, (), ends=True)
    error, _, _ = broker.ask(session, 5)
    assert error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_no_fetch_waits_for_more_bytes_than_it_may_return() -> None:
    """A consumer whose fetch.min.bytes exceeds the broker's fetch.max.bytes waited for its maximum
    time, although the answer was full. Kafka takes the smaller of the two."""
    broker = Broker()
    for index in (0, 0, 1):
        broker.cluster.produce(1, broker.topic, bytes(1000), partition_id=index)
    size = len(broker.cluster.content(1, broker.topic, 1)[0])
    wanted = [FetchPartition("", broker.topic, index, 0, 1 << 20) for index in range(2)]
    request = FetchRequest(-1, -1, 500, 60 << 20, 1 << 30, 0, 0, -1, wanted, [], "")
    answers: list[list[int]] = []
    broker.cluster.nodes[1].replicas.fetch_as_consumer(
        request,
        2 * size,
        lambda *answer: answers.append([len(each.records) for each in answer[2]]),
        uses_topic_ids=True,
    )
    assert answers == [[2 * size, 0]]
    broker.cluster.close()
