"""Kafka's own users of compacted topics churn for minutes, and the disk use stays bounded.

A worker of Kafka Connect writes its three topics, and a Streams application the changelog of a
store. Then both are killed and start again from these topics alone. QUORATE_CHURN_CURVE names a
file for the curve of disk use.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.clients.cluster import ProcessCluster, running, wait_for
from tests.clients.librdkafka import admin, consumer, create_topic, producer, read_all
from tests.kafka.churn.programs import (
    CONNECT_TOPICS,
    Counts,
    Worker,
    compiled,
    missing_streams,
)
from tests.kafka.tools import missing

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.timeout(1800),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
SETTINGS = (
    "log.cleaner.backoff.ms=200",
    "log.flush.offset.checkpoint.interval.ms=500",
    "log.retention.check.interval.ms=1000",
)
EAGER = {
    "cleanup.policy": "compact",
    "segment.ms": "1000",
    "min.cleanable.dirty.ratio": "0.01",
    "file.delete.delay.ms": "100",
}
CHANGELOG = "churn-counts-changelog"
COMPACTED = (*CONNECT_TOPICS, CHANGELOG)
PLACES = 100
KEYS = 300
RECORDS_PER_ROUND = 300
SETTLE_S = 60.0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ProcessCluster]:
    if reason := missing() or missing_streams():
        pytest.skip(reason)
    options = [word for setting in SETTINGS for word in ("--override", setting)]
    with running(tmp_path / "cluster", *options) as made:
        yield made


def sizes(cluster: ProcessCluster) -> dict[str, int]:
    """Return the bytes of each compacted topic on the broker that has most of it."""
    found = {}
    for topic in COMPACTED:
        each = []
        for broker in cluster.directory.root.glob("nodes/*/data"):
            total = 0
            for file in broker.glob(f"{topic}-[0-9]*/*.log*"):
                try:
                    total += file.stat().st_size
                except FileNotFoundError:
                    continue  # removed meanwhile
            each.append(total)
        found[topic] = max(each)
    return found


def ends(cluster: ProcessCluster, topic: str) -> int:
    """Return the number of records that the partitions of the topic ever had."""
    from confluent_kafka import TopicPartition

    reader = consumer(cluster.bootstrap)
    described = reader.list_topics(topic, timeout=30).topics[topic].partitions
    try:
        return sum(
            reader.get_watermark_offsets(TopicPartition(topic, each), timeout=30)[1]
            for each in described
        )
    finally:
        reader.close()


def kept(cluster: ProcessCluster, topic: str) -> tuple[int, int]:
    """Return the number of records in the topic, and that of different keys."""
    reader = consumer(cluster.bootstrap)
    described = reader.list_topics(topic, timeout=30).topics[topic].partitions
    reader.close()
    messages = read_all(cluster.bootstrap, [(topic, each) for each in described])
    return len(messages), len({message.key() for message in messages})


def churned(
    cluster: ProcessCluster, worker: Worker, sender: Producer, seconds: float
) -> tuple[int, int, list[dict[str, int]]]:
    """Change configs, states and counts for `seconds`. Return the number of the last config, the
    number of counted records, and the sizes over time, one sample for each second or round."""
    began = time.monotonic()
    number = sent = 0
    curve = []
    while time.monotonic() < began + seconds:
        number += 1
        worker.configure(number, PLACES)
        worker.ask("POST", "/connectors/churn/tasks/0/restart")
        for _ in range(RECORDS_PER_ROUND):
            sender.produce("words", b"word", b"key-%d" % (sent % KEYS))
            sent += 1
        assert sender.flush(60) == 0
        curve.append({"s": round(time.monotonic() - began), **sizes(cluster)})
        time.sleep(max(0.0, 1.0 - (time.monotonic() - began) % 1.0))
    return number, sent, curve


@pytest.mark.parametrize(
    "seconds", [45.0, pytest.param(600.0, marks=pytest.mark.long)], ids=["short", "ten-minutes"]
)
def test_connect_and_streams_churn_with_bounded_disk_use(
    cluster: ProcessCluster, tmp_path: Path, seconds: float
) -> None:
    client = admin(cluster.bootstrap)
    for topic in CONNECT_TOPICS:
        create_topic(client, topic, config=EAGER)
    short = {"retention.bytes": str(1 << 20), "segment.bytes": str(1 << 20)}
    create_topic(client, "made", config=short)
    create_topic(client, "words", config=short)
    classpath = compiled(tmp_path / "classes")
    with ExitStack() as stack:
        worker = Worker(tmp_path / "connect", classpath, cluster.bootstrap)
        stack.callback(worker.kill)
        counts = Counts(tmp_path / "streams-1", classpath, cluster.bootstrap, "words")
        stack.callback(counts.kill)
        worker.start()
        sender = producer(cluster.bootstrap, enable_idempotence=True)
        number, sent, curve = churned(cluster, worker, sender, seconds)
        wait_for(lambda: counts.counts() == (KEYS, sent), "all records are counted", SETTLE_S)
        before = worker.offsets()
        assert len(before) == PLACES
        worker.kill()
        counts.kill()

        written = {topic: ends(cluster, topic) for topic in COMPACTED}
        report(curve, written)
        check(cluster, curve, written)

        worker.start()
        config = worker.ask("GET", "/connectors/churn/config")
        assert config["number"] == str(number)
        after = wait_for(worker.offsets, "the offsets are read", SETTLE_S)
        assert all(after[place] >= before[place] for place in before)
        again = Counts(tmp_path / "streams-2", classpath, cluster.bootstrap, "words")
        stack.callback(again.kill)
        wait_for(lambda: again.counts() == (KEYS, sent), "the store is restored", SETTLE_S)


def report(curve: list[dict[str, int]], written: dict[str, int]) -> None:
    lines = [f"records ever: {written}", *(str(each) for each in curve)]
    if file := os.environ.get("QUORATE_CHURN_CURVE"):
        Path(file).write_text("\n".join(lines) + "\n")


def check(cluster: ProcessCluster, curve: list[dict[str, int]], written: dict[str, int]) -> None:
    """Compare the disk use with that of the same records without compaction."""
    quarter = len(curve) // 4
    for topic in COMPACTED:
        records, keys = kept(cluster, topic)
        assert keys <= records <= written[topic]
        at_end = curve[-1][topic]
        early = max(each[topic] for each in curve[quarter : 2 * quarter])
        late = max(each[topic] for each in curve[2 * quarter :])
        assert late <= 2 * early + (64 << 10), (topic, early, late)
        if topic in ("connect-offsets", CHANGELOG):
            assert records < written[topic] / 4, (topic, records, written[topic])
        assert at_end <= late
