"""Incremental fetch sessions (KIP-227) with clients that have them, and one that has not."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.clients import kafka_python
from tests.clients.fetch_proxy import assert_incremental, relayed_node
from tests.clients.librdkafka import admin, create_topic, producer

pytestmark = [
    pytest.mark.clients,
    pytest.mark.timeout(120),
    pytest.mark.filterwarnings("ignore:read_text is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
TOPIC, PARTITIONS, ROUNDS = "sessions", 4, 8
POLL_S = 20.0


def test_kafka_python_keeps_one_session_and_librdkafka_none(tmp_path: Path) -> None:
    with relayed_node(tmp_path) as (bootstrap, relay):
        create_topic(admin(bootstrap), TOPIC, PARTITIONS, 1)
        writer = producer(bootstrap)
        consumer = kafka_python.KafkaConsumer(
            bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False
        )
        consumer.assign([kafka_python.TopicPartition(TOPIC, each) for each in range(PARTITIONS)])
        read: list[bytes] = []
        for number in range(ROUNDS):
            writer.produce(TOPIC, str(number), partition=number % PARTITIONS)
            assert writer.flush(POLL_S) == 0
            while len(read) <= number:
                for records in consumer.poll(timeout_ms=int(POLL_S * 1000)).values():
                    read += [record.value for record in records]
        consumer.close()
        del consumer
        gc.collect()
        assert read == [str(each).encode() for each in range(ROUNDS)]
        assert_incremental([each for each in relay.fetches if each.epoch >= 0])

        relay.fetches.clear()
        reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "g"})
        reader.assign([TopicPartition(TOPIC, each, 0) for each in range(PARTITIONS)])
        values: list[bytes] = []
        while len(values) < ROUNDS:
            message = reader.poll(POLL_S)
            assert message is not None and message.error() is None
            values.append(message.value() or b"")
        reader.close()
        assert sorted(values) == sorted(read)
        assert {(each.session_id, each.epoch) for each in relay.fetches} == {(0, -1)}
