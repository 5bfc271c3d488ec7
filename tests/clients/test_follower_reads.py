"""librdkafka reads from the follower in its own rack (KIP-392)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from quorate.broker.partition.replica_selectors import RACK_AWARE
from tests.clients import librdkafka
from tests.clients.cluster import ProcessCluster, run_quorate, running, wait_for
from tests.clients.test_watch import get, targets

pytestmark = [pytest.mark.clients, pytest.mark.timeout(120)]

TOPIC = "read-near"
RECORDS = 200


@contextmanager
def racked(root: Path) -> Iterator[tuple[ProcessCluster, int, int]]:
    """Run one controller and two brokers, each in a rack that is named after its id, with records
    in one partition. Yield the cluster, the leader and the follower."""
    options = ("--override", f"replica.selector.class={RACK_AWARE}")
    with running(root, "--controllers", "1", "--brokers", "2", *options) as cluster:
        for node in cluster.entry()["brokers"]:
            file = cluster.directory.node_file(node["id"])
            file.write_text(f"{file.read_text()}\nbroker.rack=rack-{node['id']}\n")
            cluster.kill(node["id"])
            cluster.restart(node["id"])
        leader, follower = (node["id"] for node in cluster.entry()["brokers"])

        def racks_are_known() -> bool:
            admin = librdkafka.admin(cluster.bootstrap)
            try:
                known = {each.id: each.rack for each in admin.describe_cluster().result(5).nodes}
            except TimeoutError:
                return False  # the client waits long after it met brokers that were not back yet
            return known == {each: f"rack-{each}" for each in (leader, follower)}

        wait_for(racks_are_known, "both brokers are back")
        made = run_quorate(
            *("topics", "--bootstrap-server", cluster.bootstrap, "--create", "--topic", TOPIC),
            *("--replica-assignment", f"{leader}:{follower}"),
        )
        assert made.returncode == 0, made.stderr
        producer = librdkafka.producer(cluster.bootstrap, acks="all")
        for number in range(RECORDS):
            producer.produce(TOPIC, b"%d" % number * 20)
        assert producer.flush(30) == 0
        yield cluster, leader, follower


def read_by_consumers(cluster: ProcessCluster, broker_id: int) -> int:
    """Return the bytes that consumers have read at a broker."""
    _, body = get(targets(cluster, "broker")[broker_id], "/metrics")
    found = re.search(r'bytesout[^{\n]*\{topic="read-near"\} (\S+)', body.decode())
    return int(float(found[1])) if found else 0


def consumed(reader: Consumer, count: int) -> list[bytes | None]:
    """Return the values of the next records. The end of the follower may come before them."""
    found: list[bytes | None] = []

    def enough() -> bool:
        messages = reader.consume(count - len(found), timeout=0.1)
        found.extend(each.value() for each in messages if each.error() is None)
        return len(found) >= count

    wait_for(enough, f"{count} records")
    return found


@pytest.fixture
def racks(tmp_path: Path) -> Iterator[tuple[ProcessCluster, int, int]]:
    with racked(tmp_path / "cluster") as made:
        yield made


def test_a_consumer_reads_in_its_rack_and_follows_new_records(
    racks: tuple[ProcessCluster, int, int],
) -> None:
    cluster, leader, follower = racks
    producer = librdkafka.producer(cluster.bootstrap, acks="all")
    reader = librdkafka.consumer(cluster.bootstrap, client_rack=f"rack-{follower}")
    try:
        reader.assign([TopicPartition(TOPIC, 0, 0)])
        assert len(consumed(reader, RECORDS)) == RECORDS
        assert read_by_consumers(cluster, leader) == 0
        assert read_by_consumers(cluster, follower) > RECORDS * 20
        for number in range(5):
            producer.produce(TOPIC, b"new %d" % number)
            assert producer.flush(30) == 0
            assert consumed(reader, 1) == [b"new %d" % number]
        cluster.kill(follower)
        producer.produce(TOPIC, b"after the follower")
        assert producer.flush(60) == 0
        assert consumed(reader, 1) == [b"after the follower"], "read from the leader"
    finally:
        reader.close()
