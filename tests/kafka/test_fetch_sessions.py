"""The Java consumer goes on in one incremental fetch session (KIP-227)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.fetch_proxy import assert_incremental, relayed_node
from tests.clients.librdkafka import admin, create_topic, producer
from tests.kafka.tools import kafka, missing

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]
TOPIC, PARTITIONS, RECORDS = "sessions", 4, 80


def test_the_java_consumer_keeps_one_session(tmp_path: Path) -> None:
    if reason := missing():
        pytest.skip(reason)
    with relayed_node(tmp_path) as (bootstrap, relay):
        create_topic(admin(bootstrap), TOPIC, PARTITIONS, 1)
        writer = producer(bootstrap)
        for number in range(RECORDS):
            partition = number % PARTITIONS if number < RECORDS // 2 else 0
            writer.produce(TOPIC, str(number), partition=partition)
            if (
                number % PARTITIONS == PARTITIONS - 1
            ):  # a batch per partition, and so several fetches
                assert writer.flush(20) == 0
        reading = (
            *("--topic", TOPIC, "--from-beginning", "--max-messages", str(RECORDS)),
            *("--timeout-ms", "20000", "--consumer-property", "max.partition.fetch.bytes=200"),
        )
        read = kafka("console-consumer", "--bootstrap-server", bootstrap, *reading)
        assert sorted(map(int, read.lines)) == list(range(RECORDS)), read.errors
        assert_incremental([each for each in relay.fetches if each.epoch >= 0])
