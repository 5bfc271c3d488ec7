"""Producers and consumers in threads of their own, with the answers that they got."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from tests.clients.librdkafka import consumer, idempotent_producer
from tests.sim.clients.history import History, Place, Promises, value_of

ROUND_S = 0.02
"""One record to every place, then a rest."""
MAX_UNACKNOWLEDGED = 3_000
NEVER_MS = 600_000
FLUSH_S = 60.0
REQUEST_MS = 3_000
"""A paused broker's answer is waited for that long, then the client asks elsewhere: what the broker
does with the request when it wakes up is its business."""
IMPATIENT: dict[str, Any] = {
    "socket_timeout_ms": REQUEST_MS,
    "reconnect_backoff_ms": 20,
    "reconnect_backoff_max_ms": 300,
    "topic_metadata_refresh_interval_ms": 2_000,
}
UNKNOWN = -1
STOP_S = 90.0
CLOSE_S = 10.0
FATAL = frozenset(
    {KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET, KafkaError._FATAL}
)


class Client:
    """A thread that works until `stop`, which raises the exception of the thread, if any."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.stopping = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._guarded, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.stopping.set()
        self._thread.join(STOP_S)
        self.check()
        assert not self._thread.is_alive(), f"{self.name} does not end"

    def check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def work(self) -> None:
        raise AssertionError("each kind of client works in its own way")

    def _guarded(self) -> None:
        try:
            self.work()
        except BaseException as error:
            self._failure = error


@contextmanager
def working(clients: Sequence[Client]) -> Iterator[None]:
    """Run the clients during the block, and stop them at its end.

    If the block raises, do not wait for them: the first failure counts, and librdkafka may hang
    after one."""
    for client in clients:
        client.start()
    try:
        yield
    finally:
        for client in clients:
            client.stopping.set()
    for client in clients:
        client.stop()


class Writer(Client):
    def __init__(
        self, name: str, bootstrap: str, places: Sequence[Place], in_flight: int = 1
    ) -> None:
        super().__init__(name)
        self.history = History()
        self.implied = 0
        """Acknowledged without an offset: librdkafka concludes it from a later record's answer,
        which an idempotent producer gets only when those before it are there."""
        self._places = places
        self._producer = idempotent_producer(
            bootstrap,
            in_flight,
            delivery_timeout_ms=NEVER_MS,
            request_timeout_ms=REQUEST_MS,
            retry_backoff_ms=20,
            retry_backoff_max_ms=200,
            **IMPATIENT,
        )

    def work(self) -> None:
        """Ends when everything is acknowledged."""
        while not self.stopping.is_set():
            self._producer.poll(ROUND_S)
            if len(self._producer) < MAX_UNACKNOWLEDGED:
                for place in self._places:
                    self._send(place)
        left = self._producer.flush(FLUSH_S)
        assert left == 0, f"{self.name}: {left} records are not acknowledged"

    def _send(self, place: Place) -> None:
        topic, partition = place
        promises = self.history.of(self.name, place)
        self._producer.produce(
            topic,
            value_of(self.name, promises.sent),
            partition=partition,
            on_delivery=self._delivered(promises, promises.sent),
        )
        promises.sent += 1

    def _delivered(
        self, promises: Promises, number: int
    ) -> Callable[[KafkaError | None, Message], None]:
        def done(error: KafkaError | None, message: Message) -> None:
            assert error is None, f"{self.name}: {message.topic()}-{message.partition()}: {error}"
            offset = message.offset()
            if offset is None:
                self.implied += 1
            promises.acknowledged[number] = UNKNOWN if offset is None else offset

        return done


class Reader(Client):
    """Follows every place from its beginning; sees every offset once, in order."""

    def __init__(self, name: str, bootstrap: str, places: Sequence[Place]) -> None:
        super().__init__(name)
        self.read: dict[Place, list[bytes]] = {place: [] for place in places}
        self._consumer = consumer(bootstrap, auto_offset_reset="error", **IMPATIENT)

    def work(self) -> None:
        self._consumer.assign([TopicPartition(*place, OFFSET_BEGINNING) for place in self.read])
        try:
            while not self.stopping.is_set():
                for message in self._consumer.consume(500, timeout=0.1):
                    self._take(message)
        finally:
            close(self._consumer)

    def _take(self, message: Message) -> None:
        error = message.error()
        if error is not None:
            assert error.code() not in FATAL, f"{self.name}: {error}"
            return
        place, offset, value = placed(message)
        expected = len(self.read[place])
        assert offset == expected, f"{self.name}: {place}: offset {offset} follows {expected - 1}"
        self.read[place].append(value)


class Worker(Client):
    """The one member of a group: what it committed is where it goes on."""

    def __init__(self, name: str, bootstrap: str, topic: str, group: str) -> None:
        super().__init__(name)
        self.read: dict[Place, dict[int, bytes]] = {}
        self.acknowledged: dict[Place, int] = {}
        """The offset of each place that was committed last."""
        self.perhaps: dict[Place, set[int]] = {}
        """Offsets whose commit got no good answer: they may have been taken, or be taken late."""
        self._topic = topic
        self._consumer = consumer(
            bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            on_commit=self._committed,
            **IMPATIENT,
        )

    def work(self) -> None:
        self._consumer.subscribe([self._topic])
        try:
            while not self.stopping.is_set():
                messages = self._consumer.consume(500, timeout=0.2)
                ends: dict[Place, int] = {}
                for message in messages:
                    if message.error() is None:
                        place, offset, value = placed(message)
                        known = self.read.setdefault(place, {}).setdefault(offset, value)
                        assert known == value, f"{place}: offset {offset}: {known!r}, {value!r}"
                        ends[place] = offset + 1
                if ends:
                    self._commit(ends)
        finally:
            close(self._consumer)

    def _commit(self, ends: dict[Place, int]) -> None:
        """Until an answer comes, nobody knows. Not waited for: see `close`."""
        for place, end in ends.items():
            self.perhaps.setdefault(place, set()).add(end)
        offsets = [TopicPartition(*place, end) for place, end in ends.items()]
        with suppress(KafkaException):
            self._consumer.commit(offsets=offsets, asynchronous=True)

    def _committed(self, error: KafkaError | None, offsets: list[TopicPartition]) -> None:
        for each in offsets:
            if error is None and each.error is None:
                place = (each.topic, each.partition)
                self.perhaps[place].discard(each.offset)
                self.acknowledged[place] = each.offset


def close(client: Consumer) -> None:
    """Close a client, and wait for a limited time. Without a coordinator, librdkafka may wait
    without end, also for the answer to a commit (its issue 3740)."""
    closing = threading.Thread(target=client.close, daemon=True)
    closing.start()
    closing.join(CLOSE_S)


def placed(message: Message) -> tuple[Place, int, bytes]:
    topic, partition = message.topic(), message.partition()
    offset, value = message.offset(), message.value()
    assert topic is not None and partition is not None
    assert offset is not None and isinstance(value, bytes)
    return (topic, partition), offset, value


def wait_until(condition: Callable[[], bool], what: str, timeout_s: float) -> None:
    """Slower than `wait_for`: conditions ask the cluster."""
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, f"not within {timeout_s:.0f} s: {what}"
        time.sleep(0.1)
