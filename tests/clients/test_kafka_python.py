"""kafka-python: a second reading of the protocol, strict where librdkafka is lenient."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.cluster import ProcessCluster, wait_for
from tests.clients.kafka_python import (
    ConfigResource,
    KafkaAdminClient,
    KafkaConsumer,
    KafkaProducer,
    OffsetSpec,
    TopicAlreadyExistsError,
    TopicPartition,
    UnknownTopicOrPartitionError,
)
from tests.clients.kafka_python_writer import HALF
from tests.clients.librdkafka import read_all

pytestmark = [
    pytest.mark.clients,
    pytest.mark.filterwarnings("ignore:read_text is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

ANSWER_TIMEOUT_S = 30
RECORDS = 100


@pytest.fixture(scope="module")
def collected() -> Iterator[None]:
    """kafka-python leaves sockets to the garbage collector, which then warns in whatever test
    comes next; so they are collected here, where that is ignored."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def client(cluster: ProcessCluster, collected: None) -> Iterator[Any]:
    with KafkaAdminClient(bootstrap_servers=cluster.bootstrap) as client:
        yield client


def create(client: Any, name: str, partitions: int = 1) -> None:
    client.create_topics({name: {"num_partitions": partitions, "replication_factor": 3}})
    client.wait_for_topics([name])


def produced(cluster: ProcessCluster, name: str, **settings: object) -> list[bytes]:
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, **settings)
    try:
        sent = [b"value %d" % number for number in range(RECORDS)]
        futures = [
            producer.send(name, value, b"key", partition=0, timestamp_ms=1_000 + number)
            for number, value in enumerate(sent)
        ]
        producer.flush(ANSWER_TIMEOUT_S)
        offsets = [future.get(ANSWER_TIMEOUT_S).offset for future in futures]
    finally:
        producer.close()
    if settings["acks"] != 0:
        assert offsets == list(range(RECORDS))
    return sent


def read(cluster: ProcessCluster, name: str, start: int = 0) -> list[bytes]:
    consumer = KafkaConsumer(bootstrap_servers=cluster.bootstrap)
    try:
        partition = TopicPartition(name, 0)
        consumer.assign([partition])
        consumer.seek(partition, start)
        values: list[bytes] = []

        def all_read() -> bool:
            polled = consumer.poll(timeout_ms=200).get(partition, [])
            values.extend(record.value for record in polled)
            return len(values) >= RECORDS - start

        wait_for(all_read, "every record is read")
    finally:
        consumer.close()
    return values


@pytest.mark.parametrize(
    ("acks", "codec"),
    [
        (0, None),
        (1, "gzip"),
        *(("all", codec) for codec in (None, "gzip", "snappy", "lz4", "zstd")),
    ],
)
def test_produce_and_read(
    cluster: ProcessCluster,
    client: Any,
    new_topic: Callable[[], str],
    codec: str | None,
    acks: int | str,
) -> None:
    name = new_topic()
    create(client, name)
    idempotent = acks == "all"
    sent = produced(cluster, name, acks=acks, compression_type=codec, enable_idempotence=idempotent)
    assert read(cluster, name) == sent


def test_offsets(cluster: ProcessCluster, client: Any, new_topic: Callable[[], str]) -> None:
    name = new_topic()
    create(client, name)
    sent = produced(cluster, name, acks="all")
    partition = TopicPartition(name, 0)
    consumer = KafkaConsumer(bootstrap_servers=cluster.bootstrap)
    try:
        assert consumer.beginning_offsets([partition]) == {partition: 0}
        assert consumer.end_offsets([partition]) == {partition: RECORDS}
        found = consumer.offsets_for_times({partition: 1_040})[partition]
        assert (found.offset, found.timestamp, found.leader_epoch) == (40, 1_040, 0)
        assert consumer.offsets_for_times({partition: 9_999}) == {partition: None}
    finally:
        consumer.close()
    latest = client.list_partition_offsets({partition: OffsetSpec.MAX_TIMESTAMP})[partition]
    assert (latest.offset, latest.timestamp) == (RECORDS - 1, 999 + RECORDS)
    assert read(cluster, name, start=40) == sent[40:]


def test_topics(cluster: ProcessCluster, client: Any, new_topic: Callable[[], str]) -> None:
    name = new_topic()
    create(client, name, partitions=2)
    client.create_partitions({name: 4})
    (topic,) = wait_for(
        lambda: (
            described if len((described := describe(client, name))[0]["partitions"]) == 4 else None
        ),
        "the broker asked knows four partitions",
    )
    brokers = {node["id"] for node in cluster.entry()["brokers"]}
    for partition in topic["partitions"]:
        assert set(partition["isr_nodes"]) == set(partition["replica_nodes"]) == brokers
        assert partition["offline_replicas"] == []
    assert topic["authorized_operations"], "told when asked, as by Kafka without an authorizer"
    with pytest.raises(TopicAlreadyExistsError):
        client.create_topics({name: {"num_partitions": 1, "replication_factor": 1}})
    client.delete_topics([name])
    wait_for(lambda: name not in client.list_topics(), "the topic is gone")
    with pytest.raises(UnknownTopicOrPartitionError):
        client.delete_topics([name])


def describe(client: Any, name: str) -> list[Any]:
    topics: list[Any] = client.describe_topics([name])
    return topics


def test_configs(client: Any, new_topic: Callable[[], str]) -> None:
    name = new_topic()
    create(client, name)

    def modified() -> dict[str, str]:
        described = client.describe_configs([ConfigResource("TOPIC", name)])["topic"][name]
        return {key: entry["value"] for key, entry in described.items()}

    client.alter_configs([ConfigResource("TOPIC", name, {"retention.ms": "1000"})])
    wait_for(lambda: modified() == {"retention.ms": "1000"}, "the broker asked knows it")
    client.reset_configs([ConfigResource("TOPIC", name, ["retention.ms"])])
    wait_for(lambda: modified() == {}, "the default is back")
    refused = client.alter_configs([ConfigResource("TOPIC", name, {"retention.ms": "soon"})])
    assert "InvalidConfig" in str(refused["topic"][name]), refused


def test_the_quorum(cluster: ProcessCluster, client: Any) -> None:
    entry = cluster.entry()
    quorum = client.describe_metadata_quorum()
    (partition,) = quorum["topics"][0]["partitions"]
    voters = {replica["replica_id"] for replica in partition["current_voters"]}
    observers = {replica["replica_id"] for replica in partition["observers"]}
    assert voters == {node["id"] for node in entry["controllers"]}
    assert observers == {node["id"] for node in entry["brokers"]}
    assert partition["leader_id"] in voters
    assert partition["high_watermark"] > 0
    assert {node["node_id"] for node in quorum["nodes"]} == voters


def test_features_and_versions(client: Any) -> None:
    features = client.describe_features()["metadata.version"]
    assert features["finalized"] == (27, 27)
    assert features["supported"] == (23, 27)
    assert client.api_versions()


def test_the_leader_dies_while_it_writes(own_cluster: ProcessCluster) -> None:
    """The writer is a process of its own: it leaves sockets open when a broker dies."""
    command = ["-m", "tests.clients.kafka_python_writer", own_cluster.bootstrap, "orders"]
    writer = subprocess.Popen(
        [sys.executable, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert writer.stdout is not None
    with writer, writer.stdout as lines:
        leader = int(lines.readline())
        own_cluster.kill(leader)
        assert [int(each) for each in lines.readline().split()] == list(range(2 * HALF))
    values = read_all(own_cluster.bootstrap, [("orders", 0)])
    assert [each.value() for each in values] == [b"%d" % each for each in range(2 * HALF)]
