"""The metrics with which operators watch brokers, their requests and their logs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest
from prometheus_client.metrics_core import Metric

from quorate.broker.metrics.scrape import broker_metrics, of_hosted
from quorate.quorum.log.batches.batch import build_batch
from quorate.quorum.log.batches.record import Record
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.node.controller.controller_metrics import controller_metrics
from quorate.quorum.protocol.codec import encode
from quorate.quorum.protocol.schemas.produce import ProduceRequest
from tests.ports.node import PortCluster, running
from tests.ports.requests import create, produced
from tests.unit.controller.harness import SESSION_MS, Driver
from tests.unit.replication.cluster import ReplicaCluster, led_by


def samples(families: Iterable[Metric]) -> dict[tuple[str, ...], float]:
    """Return (name, values of the labels) to value."""
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
    }


@pytest.fixture
def cluster() -> Iterator[ReplicaCluster]:
    made = ReplicaCluster()
    yield made
    made.close()


def test_the_time_since_the_last_heartbeat_of_each_unfenced_broker() -> None:
    driver = Driver()
    driver.start(1, 2)
    driver.register(3)
    sessions = driver.controller.sessions
    driver.run_until(driver.now_ms + 500)
    driver.heartbeat(2)
    assert sessions.silent_ms(driver.now_ms + 100) == {1: 600, 2: 100}
    assert SESSION_MS > 600


def test_the_segments_the_producers_and_the_refused_batches(cluster: ReplicaCluster) -> None:
    cluster.log_settings = LogSettings(segment_bytes=100)
    topic = cluster.create("t", [led_by(1)])
    cluster.run(50)
    for _ in range(3):
        cluster.produce(1, topic, bytes(90))
    cluster.run(50)
    found = samples(of_hosted(cluster.nodes[1].replicas, 10))
    assert found["kafka_log_log_numlogsegments", "t", "0"] == 3
    assert found["kafka_server_replicamanager_produceridcount",] == 0


def scraped(node: PortCluster) -> dict[tuple[str, ...], float]:
    """Return the metrics of the first controller and of the first broker."""
    broker, controller = node.cluster.brokers[0].process, node.cluster.controllers[0].process
    assert broker is not None and broker.broker is not None
    assert controller is not None and controller.controller is not None
    rules = controller.controller
    families = controller_metrics(rules.core, rules.rules, rules.shell)
    return samples([*broker_metrics(broker.broker), *families])


def test_what_a_controller_says_about_brokers() -> None:
    state = "kafka_controller_kafkacontroller_brokerregistrationstate"
    silent = "kafka_controller_kafkacontroller_timesincelastheartbeatreceivedms"
    with running(brokers=2) as node:
        first, second = (str(each.id) for each in node.cluster.brokers)
        found = scraped(node)
        assert (found[state, first], found[state, second]) == (30, 30)
        assert found["kafka_controller_kafkacontroller_controlledshutdownbrokercount",] == 0
        assert found["kafka_controller_kafkacontroller_ignoredstaticvoters",] == 0
        node.cluster.kill(node.cluster.brokers[1])
        node.run(1.0)
        found = scraped(node)
        assert 0 <= found[silent, first] <= 1_000
        assert (silent, second) in found or found[state, second] == 10
        node.run(20.0)
        found = scraped(node)
        assert found[state, second] == 10
        assert (silent, second) not in found


def test_what_a_broker_says_about_the_requests_and_the_batches_of_clients() -> None:
    with running(message_max_bytes="500") as node:
        raw = node.connect(node.broker_port)
        node.ask(raw, create("topic"), 7)
        node.run(1.0)
        topic_id = node.cluster.newest_image().topic_ids["topic"]
        sent = len(encode(produced("topic", topic_id), 9))
        node.ask(raw, produced("topic", topic_id), 9)
        large, damaged = batch(900), bytearray(batch(1))
        damaged[-1] ^= 1
        for data in (large, bytes(damaged)):
            node.ask(raw, with_records(produced("topic", topic_id), data), 9)
        found = scraped(node)
        topics = "kafka_server_brokertopicmetrics_"
        assert found[topics + "bytesrejected_total", "topic"] == len(large)
        assert found[topics + "invalidmessagecrcrecords_total", "topic"] == 1
        assert found[topics + "failedproducerequests_total", "topic"] == 2
        assert found["quorate_request_bytes_total", "Produce"] > 2 * sent + len(large)


def batch(size: int) -> bytes:
    return bytes(build_batch([Record(0, 1, b"key", bytes(size))], leader_epoch=-1))


def with_records(request: ProduceRequest, data: bytes) -> ProduceRequest:
    """Return the request with another batch."""
    (topic,) = request.topic_data
    (partition,) = topic.partition_data
    topic = replace(topic, partition_data=(replace(partition, records=data),))
    return replace(request, topic_data=(topic,))
