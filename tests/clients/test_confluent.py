"""confluent-kafka, that is librdkafka: topics, configs, produce, fetch, offsets."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from tests.clients.cluster import ProcessCluster, wait_for
from tests.clients.librdkafka import (
    ANSWER_TIMEOUT_S,
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    OffsetSpec,
    ResourceType,
    admin,
    consumer,
    create_topic,
    producer,
    read_all,
    values,
)

pytestmark = pytest.mark.clients

NewTopicName = Callable[[], str]
RECORDS = 200
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def produced(bootstrap: str, topic: str, partition: int = 0, **settings: object) -> list[bytes]:
    """RECORDS records; every delivery report must be good."""
    client = producer(bootstrap, **settings)
    sent = [b"value %d %s" % (number, b"x" * 100) for number in range(RECORDS)]
    failures: list[KafkaError] = []
    for number, value in enumerate(sent):
        client.produce(
            topic,
            value,
            b"key %d" % number,
            partition=partition,
            on_delivery=lambda error, message: failures.append(error) if error else None,
        )
    assert client.flush(ANSWER_TIMEOUT_S) == 0
    assert failures == []
    return sent


def test_a_new_topic_is_described(cluster: ProcessCluster, new_topic: NewTopicName) -> None:
    client = admin(cluster.bootstrap)
    name = new_topic()
    create_topic(client, name, partitions=4, config={"retention.ms": "1000000"})
    topic = client.list_topics(name, timeout=ANSWER_TIMEOUT_S).topics[name]
    brokers = {node["id"] for node in cluster.entry()["brokers"]}
    assert topic.error is None
    assert set(topic.partitions) == {0, 1, 2, 3}
    for partition in topic.partitions.values():
        assert set(partition.replicas) == set(partition.isrs) == brokers
        assert partition.leader == partition.replicas[0]
    leaders = [partition.leader for partition in topic.partitions.values()]
    assert set(leaders) == brokers, "leaders are spread"


def test_the_cluster_is_described(cluster: ProcessCluster) -> None:
    client = admin(cluster.bootstrap)
    described = client.describe_cluster().result(ANSWER_TIMEOUT_S)
    entry = cluster.entry()
    assert described.cluster_id == entry["cluster_id"]
    expected = {(node["id"], node["host"], node["port"]) for node in entry["brokers"]}
    assert {(node.id, node.host, node.port) for node in described.nodes} == expected


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_acks(cluster: ProcessCluster, new_topic: NewTopicName, acks: str) -> None:
    name = new_topic()
    create_topic(admin(cluster.bootstrap), name)
    sent = produced(cluster.bootstrap, name, acks=acks)
    read = wait_for(
        lambda: read if len(read := read_all(cluster.bootstrap, [(name, 0)])) == RECORDS else None,
        "every record is there; with acks=0 that may take a moment",
    )
    assert values(read) == sent
    assert [message.offset() for message in read] == list(range(RECORDS))


@pytest.mark.parametrize("codec", CODECS)
def test_codecs_and_idempotence(
    cluster: ProcessCluster, new_topic: NewTopicName, codec: str
) -> None:
    name = new_topic()
    create_topic(admin(cluster.bootstrap), name)
    sent = produced(
        cluster.bootstrap, name, compression_type=codec, enable_idempotence=True, linger_ms=20
    )
    read = read_all(cluster.bootstrap, [(name, 0)])
    assert values(read) == sent
    assert [message.key() for message in read] == [b"key %d" % n for n in range(RECORDS)]


def test_a_topic_that_compresses_again(cluster: ProcessCluster, new_topic: NewTopicName) -> None:
    """compression.type other than producer: the leader repacks batches."""
    name = new_topic()
    create_topic(admin(cluster.bootstrap), name, config={"compression.type": "zstd"})
    sent = produced(cluster.bootstrap, name, compression_type="gzip", linger_ms=20)
    assert values(read_all(cluster.bootstrap, [(name, 0)])) == sent


def test_headers_keys_and_nulls(cluster: ProcessCluster, new_topic: NewTopicName) -> None:
    name = new_topic()
    create_topic(admin(cluster.bootstrap), name)
    client = producer(cluster.bootstrap)
    client.produce(name, None, b"deleted", timestamp=1234, headers=[("a", b"1"), ("a", None)])
    client.produce(name, b"", None, timestamp=5678)
    assert client.flush(ANSWER_TIMEOUT_S) == 0
    first, second = read_all(cluster.bootstrap, [(name, 0)])
    assert (first.key(), first.value()) == (b"deleted", None)
    assert first.headers() == [("a", b"1"), ("a", None)]
    assert first.timestamp()[1] == 1234
    assert (second.key(), second.value(), second.headers()) == (None, b"", None)


def test_offsets_by_time(cluster: ProcessCluster, new_topic: NewTopicName) -> None:
    name = new_topic()
    client = admin(cluster.bootstrap)
    create_topic(client, name)
    sender = producer(cluster.bootstrap)
    for number in range(10):
        sender.produce(name, b"%d" % number, timestamp=1_000 + 10 * number)
        assert sender.flush(ANSWER_TIMEOUT_S) == 0

    def offset(spec: OffsetSpec) -> int:
        partition = TopicPartition(name, 0)
        return int(
            client.list_offsets({partition: spec})[partition].result(ANSWER_TIMEOUT_S).offset
        )

    assert offset(EARLIEST) == 0
    assert offset(LATEST) == 10
    assert offset(MAX_TIMESTAMP) == 9
    assert offset(OffsetSpec.for_timestamp(1_035)) == 4
    reader = consumer(cluster.bootstrap)
    late = TopicPartition(name, 0, 99_999)
    found, ended = (
        reader.offsets_for_times([each], timeout=ANSWER_TIMEOUT_S)[0].offset
        for each in (TopicPartition(name, 0, 1_050), late)
    )
    assert reader.get_watermark_offsets(late, timeout=ANSWER_TIMEOUT_S) == (0, 10)
    reader.close()
    assert (found, ended) == (5, -1), "librdkafka says END after the last record"
    read = read_all(cluster.bootstrap, [(name, 0)], start=5)
    assert values(read) == [b"5", b"6", b"7", b"8", b"9"]


def test_a_producer_creates_its_topic(cluster: ProcessCluster, new_topic: NewTopicName) -> None:
    name = new_topic()
    sent = produced(cluster.bootstrap, name)
    assert values(read_all(cluster.bootstrap, [(name, 0)])) == sent


def test_a_consumer_creates_no_topic(cluster: ProcessCluster, new_topic: NewTopicName) -> None:
    """librdkafka asks with allow_auto_topic_creation=false."""
    name = new_topic()
    client = admin(cluster.bootstrap)
    reader = consumer(cluster.bootstrap)
    found = reader.list_topics(name, timeout=ANSWER_TIMEOUT_S).topics[name]
    reader.close()
    assert found.error is not None
    assert found.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert name not in client.list_topics(timeout=ANSWER_TIMEOUT_S).topics


def test_delete_and_create_again(cluster: ProcessCluster, new_topic: NewTopicName) -> None:
    name = new_topic()
    client = admin(cluster.bootstrap)
    create_topic(client, name)
    produced(cluster.bootstrap, name)
    client.delete_topics([name])[name].result(ANSWER_TIMEOUT_S)
    wait_for(lambda: name not in client.list_topics(timeout=ANSWER_TIMEOUT_S).topics, "it is gone")
    create_topic(client, name)
    read = wait_for(
        lambda: (sent := produced(cluster.bootstrap, name)) and (sent, read_topic(cluster, name)),
        "the new topic is written to",
    )
    assert read[0] == read[1], "nothing of the old topic is in the new one"


def read_topic(cluster: ProcessCluster, name: str) -> list[bytes | None]:
    return values(read_all(cluster.bootstrap, [(name, 0)]))


def test_partitions_grow(cluster: ProcessCluster, new_topic: NewTopicName) -> None:
    name = new_topic()
    client = admin(cluster.bootstrap)
    create_topic(client, name)
    client.create_partitions([NewPartitions(name, 3)])[name].result(ANSWER_TIMEOUT_S)
    wait_for(
        lambda: (
            len(client.list_topics(name, timeout=ANSWER_TIMEOUT_S).topics[name].partitions) == 3
        ),
        "every broker knows three partitions",
    )
    sent = produced(cluster.bootstrap, name, partition=2)
    assert values(read_all(cluster.bootstrap, [(name, 2)])) == sent
    with pytest.raises(KafkaException) as refused:
        client.create_partitions([NewPartitions(name, 2)])[name].result(ANSWER_TIMEOUT_S)
    assert refused.value.args[0].code() == KafkaError.INVALID_PARTITIONS


def test_configs_change_and_return(cluster: ProcessCluster, new_topic: NewTopicName) -> None:
    name = new_topic()
    client = admin(cluster.bootstrap)
    create_topic(client, name)

    def entry() -> ConfigEntry:
        resource = ConfigResource(ResourceType.TOPIC, name)
        described = client.describe_configs([resource])[resource].result(ANSWER_TIMEOUT_S)
        found: ConfigEntry = described["retention.ms"]
        return found

    def alter(operation: AlterConfigOpType, value: str | None) -> None:
        change = ConfigEntry("retention.ms", value, incremental_operation=operation)
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[change])
        client.incremental_alter_configs([resource])[resource].result(ANSWER_TIMEOUT_S)

    assert (entry().value, entry().is_default) == ("604800000", True)
    alter(AlterConfigOpType.SET, "60000")
    wait_for(lambda: entry().value == "60000", "the broker asked knows the new value")
    assert not entry().is_default
    alter(AlterConfigOpType.DELETE, None)
    wait_for(lambda: entry().value == "604800000", "the default is back")
    with pytest.raises(KafkaException) as refused:
        alter(AlterConfigOpType.SET, "soon")
    assert refused.value.args[0].code() == KafkaError.INVALID_CONFIG


def test_a_broker_is_described(cluster: ProcessCluster) -> None:
    node = cluster.entry()["brokers"][1]
    resource = ConfigResource(ResourceType.BROKER, str(node["id"]))
    client = admin(cluster.bootstrap)
    described = client.describe_configs([resource])[resource].result(ANSWER_TIMEOUT_S)
    assert described["node.id"].value == str(node["id"])
    assert described["log.dirs"].value == node["log_dir"]


REFUSED_TOPICS = {
    "slash": ("a/b", 1, 1, {}, KafkaError.TOPIC_EXCEPTION),
    "no partitions": ("refused", 0, 1, {}, KafkaError.INVALID_PARTITIONS),
    "too many replicas": ("refused", 1, 4, {}, KafkaError.INVALID_REPLICATION_FACTOR),
    "unknown config": ("refused", 1, 1, {"no.such": "1"}, KafkaError.INVALID_CONFIG),
    "bad value": ("refused", 1, 1, {"retention.ms": "x"}, KafkaError.INVALID_CONFIG),
}


@pytest.mark.parametrize("case", REFUSED_TOPICS)
def test_refused_topics(cluster: ProcessCluster, case: str) -> None:
    name, partitions, replicas, config, code = REFUSED_TOPICS[case]
    with pytest.raises(KafkaException) as refused:
        create_topic(admin(cluster.bootstrap), name, partitions, replicas, config)
    assert refused.value.args[0].code() == code
    assert refused.value.args[0].str(), "the reason is told"


def test_a_topic_that_is_there(cluster: ProcessCluster, new_topic: NewTopicName) -> None:
    client = admin(cluster.bootstrap)
    name = new_topic()
    create_topic(client, name)
    with pytest.raises(KafkaException) as refused:
        create_topic(client, name)
    assert refused.value.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
    unknown = new_topic()
    with pytest.raises(KafkaException) as missing:
        client.delete_topics([unknown])[unknown].result(ANSWER_TIMEOUT_S)
    assert missing.value.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_too_large_a_record(cluster: ProcessCluster, new_topic: NewTopicName) -> None:
    name = new_topic()
    create_topic(admin(cluster.bootstrap), name, config={"max.message.bytes": "1000"})
    client = producer(cluster.bootstrap, retries=0)
    codes: list[int] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        codes.append(error.code() if error else KafkaError.NO_ERROR)

    for value in (b"x" * 2000, b"x"):
        client.produce(name, value, on_delivery=delivered)
        assert client.flush(ANSWER_TIMEOUT_S) == 0
    assert codes == [KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.NO_ERROR]
