"""LocalCluster(secure=True): a cluster of `quorate up --secure` inside of a test."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from quorate.config.properties import parse
from quorate.testing import LocalCluster, ThreadedCluster
from tests.clients.librdkafka import SILENT

pytestmark = [pytest.mark.clients, pytest.mark.timeout(60)]


@pytest.mark.quorate(brokers=2, secure=True)
def test_a_client_logs_in_as_the_admin(quorate_cluster: ThreadedCluster) -> None:
    quorate_cluster.create_topic("t", partitions=2)
    config: dict[str, Any] = quorate_cluster.librdkafka_config
    producer = Producer({**config, "acks": "all"}, logger=SILENT)
    producer.produce("t", b"value")
    assert producer.flush(30) == 0
    reading = {**config, "group.id": "g", "auto.offset.reset": "earliest"}
    consumer = Consumer(reading, logger=SILENT)
    consumer.subscribe(["t"])
    try:
        record = consumer.poll(30)
        assert record is not None
        assert record.value() == b"value"
    finally:
        consumer.close()


def test_nobody_else_does_and_the_directory_can_be_used_again(tmp_path: Any) -> None:
    with LocalCluster(secure=True, dir=tmp_path) as cluster:
        cluster.create_topic("t")
        config: dict[str, Any] = cluster.librdkafka_config
        with pytest.raises(KafkaException):
            wrong = {**config, "sasl.password": "wrong"}
            AdminClient(wrong, logger=SILENT).list_topics(timeout=2)
    with LocalCluster(secure=True, dir=tmp_path) as cluster:
        again: dict[str, Any] = cluster.librdkafka_config
        assert again["sasl.password"] == config["sasl.password"]
        assert "t" in AdminClient(again, logger=SILENT).list_topics(timeout=30).topics
        assert cluster.client_properties is not None
        with open(cluster.client_properties) as file:
            java = {each.name: each.value for each in parse(file.read())}
        assert again["sasl.password"] in java["sasl.jaas.config"]


def test_a_given_config_wins_over_those_of_a_secure_cluster() -> None:
    config = {"super.users": "User:admin;User:CN=admin;User:bob"}
    with LocalCluster(secure=True, config=config) as cluster:
        configs = cluster._cluster._layout.configs.values()
        assert all("User:bob" in each["super.users"] for each in configs)
