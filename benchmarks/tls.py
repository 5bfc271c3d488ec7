"""The cost of TLS for clients: the same brokers through a PLAINTEXT and through an SSL listener.

Each load runs on both listeners in turn, and the figures are medians. A client and a broker share
the cores, so the ratio of the two contains the TLS of both. The nodes connect to each other without
TLS. A storm of new TLS connections shows
the longest time for which a client of the other listener waits.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from cryptography import x509

from benchmarks import (
    consume,
    failover_broker,
    kafka_cluster,
    librdkafka,
    one_record,
    produce,
    run,
)
from benchmarks.cluster import QuorateCluster
from benchmarks.figure import Figure, percentile
from benchmarks.kafka_cluster import KafkaCluster
from benchmarks.run import Benchmark, Options
from benchmarks.target import Cluster
from benchmarks.tls_storm import STORM
from quorate.cli.client.connection import Connection
from quorate.cli.nodes.cluster_dir import free_ports
from quorate.quorum.protocol.schemas.metadata import MetadataRequest, MetadataResponse
from quorate.quorum.rpc.tls.issuing import issue, new_authority

HOST = "127.0.0.1"
TIMEOUT_S = 10.0
Load = Callable[[str, int, float], float]
"""Loads the cluster at a bootstrap address. The others are the number of the turn and the seconds.
Returns a rate."""


def produced(bootstrap: str, number: int, seconds: float) -> float:
    """Return the MB/s of a producer of records of 1,000 B. Each turn has a topic of its own."""
    topic = f"tls-{number}-{bootstrap.rpartition(':')[2]}"
    client = librdkafka.create_topic(bootstrap, topic, produce.PARTITIONS)
    librdkafka.wait_for_leaders(client, topic, produce.PARTITIONS)
    rate, _ = produce.produce(bootstrap, topic, 1000, seconds)
    client.delete_topics([topic])[topic].result()
    return rate / 1000


def consumed(bootstrap: str, number: int, seconds: float) -> float:
    """Return the MB/s of one pass over the records of `consume.fill`."""
    return consume.consume(bootstrap)


def one_at_a_time(bootstrap: str, number: int, seconds: float) -> float:
    """Return the records per second that the median latency of one record permits."""
    producer = librdkafka.producer(bootstrap, linger_ms=0)
    librdkafka.send_one(producer, one_record.TOPIC, one_record.VALUE)
    taken_s = []
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        begin_s = time.perf_counter()
        librdkafka.send_one(producer, one_record.TOPIC, one_record.VALUE)
        taken_s.append(time.perf_counter() - begin_s)
    return 1 / percentile(taken_s, 0.5)


LOADS: dict[str, tuple[Load, str]] = {
    "produce 1000 B": (produced, "MB/s"),
    "consume 1000 B": (consumed, "MB/s"),
    "one record": (one_at_a_time, "/s"),
}
PROTOCOLS = "PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT,REPLICATION:PLAINTEXT"


def measure(system: str, options: Options) -> list[Figure]:
    """Return the rate of each load over TLS and its ratio to the rate without, both outages after
    a kill, and the figures of the storm. A cluster that runs already is not measured."""
    figures = []
    with both_listeners(system) as sides:
        if sides is None:
            return []
        for name in (consume.TOPIC, one_record.TOPIC, failover_broker.TOPIC):
            count = produce.PARTITIONS if name == consume.TOPIC else 1
            admin = librdkafka.create_topic(sides.plain, name, count)
            librdkafka.wait_for_leaders(admin, name, count)
        consume.fill(sides.plain)
        for name, (load, unit) in LOADS.items():
            rates = in_turn(sides, load, options)
            plain, secured = rates[sides.plain], rates[sides.secured]
            figures += [
                Figure(f"{name} over TLS", secured, unit, more_is_better=True),
                Figure("  of the rate without TLS", secured / plain, "", more_is_better=True),
            ]
        outages = in_turn(sides, lambda at, *_: outage_s(sides.cluster, at), options)
        figures += [
            Figure("failover of a broker over TLS", outages[sides.secured], "s"),
            Figure("  without TLS", outages[sides.plain], "s"),
        ]
        return [*figures, *storm(sides.plain, sides.secured, sides.ca)]


def in_turn(sides: Sides, load: Load, options: Options) -> dict[str, float]:
    """Return the median of a load for each address. The two take turns, and the first turn warms
    both up."""
    found: dict[str, list[float]] = {sides.plain: [], sides.secured: []}
    for turn in range(options.rounds + 1):
        for each in (sides.plain, sides.secured) if turn % 2 else (sides.secured, sides.plain):
            value = load(each, turn, options.seconds)
            if turn:
                found[each].append(value)
    return {each: median(values) for each, values in found.items()}


def outage_s(cluster: Cluster, bootstrap: str) -> float:
    """Kill the leader of a partition, and start it again. Return the seconds for which a client of
    `bootstrap` could write nothing."""
    admin = librdkafka.admin(cluster.bootstrap)
    leader = librdkafka.wait_for_leaders(admin, failover_broker.TOPIC, 1)[0]
    taken_s = failover_broker.outage_s(bootstrap, partial(cluster.kill, leader))
    cluster.restart(leader)
    while librdkafka.brokers_seen(cluster.bootstrap) < len(cluster.broker_ids):
        time.sleep(0.05)
    return taken_s


def storm(plain: str, secured: str, ca: Path) -> list[Figure]:
    """Return the time in which STORM clients of one broker complete their handshakes, and the
    longest answer of the same broker to a client without TLS meanwhile."""
    target, other = secured.split(",")[0], plain.split(",")[0]
    host, _, port = other.rpartition(":")
    connection = Connection(host, int(port), timeout_s=TIMEOUT_S, client_id="benchmarks")
    waits_s = []
    command = (sys.executable, "-m", "benchmarks.tls_storm", target, str(ca))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as clients:
        while clients.poll() is None:
            begin_s = time.perf_counter()
            connection.call(MetadataRequest(topics=()), MetadataResponse, TIMEOUT_S)
            waits_s.append(time.perf_counter() - begin_s)
            time.sleep(0.001)
        assert clients.stdout is not None
        took_s = float(clients.stdout.read())
    connection.close()
    return [
        Figure(f"{STORM} TLS clients connect", took_s, "s"),
        Figure("  longest answer to another client", max(waits_s) * 1000, "ms"),
    ]


@dataclass(frozen=True, slots=True)
class Sides:
    """A cluster, the addresses of its brokers without and with TLS, and the file of the
    authority."""

    cluster: Cluster
    plain: str
    secured: str
    ca: Path


@contextmanager
def both_listeners(system: str) -> Iterator[Sides | None]:
    """Start Quorate or Apache Kafka with a PLAINTEXT and an SSL listener on each broker, and stop
    it at the end. Yield None for a cluster that runs already."""
    jars = kafka_cluster.libs()
    with TemporaryDirectory(prefix="tls-bench-") as root:
        keystore, ca = certificates(Path(root))
        settings = {
            "listener.security.protocol.map": PROTOCOLS,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(keystore),
        }
        ports = dict(zip(kafka_cluster.BROKERS, free_ports(3), strict=True))
        listeners = {node_id: f"SSL://{HOST}:{port}" for node_id, port in ports.items()}
        cluster: Cluster
        if system == run.QUORATE:
            cluster = QuorateCluster()
        elif system == run.LOCAL_KAFKA and jars is not None:
            cluster = KafkaCluster(jars)
            cluster.broker_settings, cluster.more_listeners = settings, listeners
        else:
            yield None
            return
        try:
            cluster.start()
            if isinstance(cluster, QuorateCluster):
                add_listeners(cluster, settings, listeners)
            secured = ",".join(f"{HOST}:{port}" for port in ports.values())
            librdkafka.SETTINGS[secured] = {"security.protocol": "SSL", "ssl.ca.location": str(ca)}
            yield Sides(cluster, cluster.bootstrap, secured, ca)
        finally:
            cluster.stop()


def certificates(root: Path) -> tuple[Path, Path]:
    """Write the keystore of all brokers and the certificate of its authority. Return the paths."""
    now = datetime.now(UTC)
    authority = new_authority("benchmarks", now, 1)
    name = x509.Name.from_rfc4514_string("CN=node")
    keystore, ca = root / "keystore.pem", root / "ca.pem"
    keystore.write_bytes(issue(authority, name, now, 1, hosts=[HOST]).keystore_pem)
    ca.write_bytes(authority.certificate_pem)
    return keystore, ca


def add_listeners(
    cluster: QuorateCluster, settings: Mapping[str, str], listeners: Mapping[int, str]
) -> None:
    """Restart the brokers with further settings and listeners."""
    for node_id in cluster.broker_ids:
        cluster.kill(node_id)
        file = cluster.properties(node_id)
        lines = [
            f"{line},{listeners[node_id]}" if line.startswith("listeners=") else line
            for line in file.read_text().splitlines()
        ]
        lines += [f"{name}={value}" for name, value in settings.items()]
        file.write_text("\n".join(lines) + "\n")
        cluster.restart(node_id)


BENCHMARK = Benchmark("tls", offline=measure)

if __name__ == "__main__":
    run.main([BENCHMARK])
