"""The demo's client, which writes numbered lines and reads them back.

It is librdkafka, idempotent, with acks=all."""

from __future__ import annotations

import sysconfig
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from quorate.cli.chaos.timeline.outage import Gaps
from quorate.cli.chaos.workload.comparison import NOT_ACKNOWLEDGED

POLL_EVERY = 500
READ_BATCH = 10_000
READ_TIMEOUT_S = 60.0
FLUSH_TIMEOUT_S = 60.0
QUEUE_MESSAGES = 200_000


def standard_library_lines() -> list[bytes]:
    """Return every line of each .py file in Python's standard library, without line ends."""
    root = Path(sysconfig.get_path("stdlib"))
    files = sorted(
        file for file in root.rglob("*.py") if "site-packages" not in file.relative_to(root).parts
    )
    return [line for file in files for line in file.read_bytes().splitlines()]


class Writer:
    """A producer of numbered lines.

    Line n goes to partition n modulo `partitions`, with n as its key.

    `acknowledged[n]` is the offset of line n, or NOT_ACKNOWLEDGED. `done` counts the lines that
    were acknowledged or failed, and `failures` holds the errors. One thread calls all methods."""

    def __init__(self, bootstrap: str, topic: str, lines: Sequence[bytes], partitions: int) -> None:
        from confluent_kafka import Producer

        self.topic = topic
        self.lines = lines
        self.partitions = partitions
        self.acknowledged = array("q", [NOT_ACKNOWLEDGED]) * len(lines)
        self.done = 0
        self.failures: list[str] = []
        self.gaps = Gaps(partitions)
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                # With more than one, librdkafka may bump the producer epoch because of one
                # partition and then write again records that others already have. The reason is
                # that requests behind a refused one are out of order (librdkafka issue 4953).
                "max.in.flight.requests.per.connection": 1,
                "linger.ms": 5,
                "message.timeout.ms": 60_000,
                "queue.buffering.max.messages": QUEUE_MESSAGES,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200,
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 100,
                "log_level": 0,
            }
        )

    def run(self, seconds: float, progress: Callable[[int], None]) -> None:
        """Send all lines over about `seconds`, and wait for their acknowledgements.

        The wait ends after FLUSH_TIMEOUT_S, even if some are missing. `progress` is called with the
        number of the last line sent, from 0 on, every POLL_EVERY lines."""
        start_s = time.monotonic()
        pace = len(self.lines) / seconds
        for line, value in enumerate(self.lines):
            self._send(line, value)
            if line % POLL_EVERY == 0:
                self._producer.poll(0)
                progress(line)
                ahead_s = line / pace - (time.monotonic() - start_s)
                while ahead_s > 0:
                    self._producer.poll(min(ahead_s, 0.01))
                    ahead_s = line / pace - (time.monotonic() - start_s)
        self._producer.flush(FLUSH_TIMEOUT_S)

    def _send(self, line: int, value: bytes) -> None:
        while True:
            try:
                self._producer.produce(
                    self.topic,
                    value,
                    b"%d" % line,
                    partition=line % self.partitions,
                    on_delivery=self._delivered,
                )
            except BufferError:
                self._producer.poll(0.01)
                continue
            return

    def _delivered(self, error: Any, message: Any) -> None:
        self.done += 1
        if error is not None:
            self.failures.append(str(error))
            return
        self.acknowledged[int(message.key())] = message.offset()
        self.gaps.acknowledged(message.partition(), time.monotonic())


def read_back(
    bootstrap: str, topic: str, partitions: int
) -> Iterator[tuple[int, int, bytes, bytes]]:
    """Yield (partition, offset, key, value) of all records, in order within each partition.

    Each partition is read until librdkafka reports its end. Other errors are ignored. Raise
    TimeoutError if nothing is read for READ_TIMEOUT_S."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

    consumer: Any = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "quorate-demo",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.queue.backoff.ms": 2,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, n, OFFSET_BEGINNING) for n in range(partitions)])
    ended: set[int] = set()
    deadline_s = time.monotonic() + READ_TIMEOUT_S
    try:
        while len(ended) < partitions:
            messages = consumer.consume(READ_BATCH, timeout=1.0)
            if messages:
                deadline_s = time.monotonic() + READ_TIMEOUT_S
            elif time.monotonic() > deadline_s:
                raise TimeoutError(f"nothing was read for {READ_TIMEOUT_S:.0f} s")
            for message in messages:
                error = message.error()
                if error is None:
                    yield message.partition(), message.offset(), message.key(), message.value()
                elif error.code() == KafkaError._PARTITION_EOF:
                    ended.add(message.partition())
    finally:
        consumer.close()
