"""The cost of TLS for clients: the same brokers through a PLAINTEXT and through an SSL listener.

Each load runs on both listeners in turn, and the figure is the ratio of the medians. A client and a
broker share the cores, so the ratio contains the TLS of both. A storm of new TLS connections shows
the longest time for which a client of the other listener waits.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from cryptography import x509

from benchmarks import consume, librdkafka, one_record, produce, run
from benchmarks.cluster import QuorateCluster
from benchmarks.figure import Figure, percentile
from benchmarks.run import Benchmark, Options
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


LOADS: dict[str, Load] = {
    "produce 1000 B": produced,
    "consume 1000 B": consumed,
    "one record": one_at_a_time,
}


def measure(system: str, options: Options) -> list[Figure]:
    """Return the ratio of the rate over TLS to that without, for each load, and the figures of the
    storm. Only Quorate is measured."""
    if system != run.QUORATE:
        return []
    with both_listeners() as (plain, secured, ca):
        for name in (consume.TOPIC, one_record.TOPIC):
            count = produce.PARTITIONS if name == consume.TOPIC else 1
            librdkafka.wait_for_leaders(librdkafka.create_topic(plain, name, count), name, count)
        consume.fill(plain)
        figures = []
        for name, load in LOADS.items():
            rates: dict[str, list[float]] = {plain: [], secured: []}
            for number in range(options.rounds + 1):
                for each in (plain, secured) if number % 2 else (secured, plain):
                    rate = load(each, number, options.seconds)
                    if number:  # the first turn warms both up
                        rates[each].append(rate)
            ratio = median(rates[secured]) / median(rates[plain])
            figures.append(Figure(f"{name}, rate over TLS / PLAINTEXT", ratio, ""))
        return [*figures, *storm(plain, secured, ca)]


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


@contextmanager
def both_listeners() -> Iterator[tuple[str, str, Path]]:
    """Yield the addresses of the brokers without and with TLS, and the file of the authority."""
    cluster = QuorateCluster()
    try:
        cluster.start()
        plain = cluster.bootstrap
        directory = cluster.properties(cluster.broker_ids[0]).parent
        now = datetime.now(UTC)
        authority = new_authority("benchmarks", now, 1)
        name = x509.Name.from_rfc4514_string("CN=node")
        keystore, ca = directory / "keystore.pem", directory / "ca.pem"
        keystore.write_bytes(issue(authority, name, now, 1, hosts=[HOST]).keystore_pem)
        ca.write_bytes(authority.certificate_pem)
        ports = free_ports(len(cluster.broker_ids))
        for node_id, port in zip(cluster.broker_ids, ports, strict=True):
            cluster.kill(node_id)
            file = cluster.properties(node_id)
            lines = [
                f"{line},SSL://{HOST}:{port}" if line.startswith("listeners") else line
                for line in file.read_text().splitlines()
            ]
            lines += ["ssl.keystore.type=PEM", f"ssl.keystore.location={keystore}"]
            file.write_text("\n".join(lines) + "\n")
            cluster.restart(node_id)
        secured = ",".join(f"{HOST}:{port}" for port in ports)
        librdkafka.SETTINGS[secured] = {"security.protocol": "SSL", "ssl.ca.location": str(ca)}
        yield plain, secured, ca
    finally:
        cluster.stop()


BENCHMARK = Benchmark("tls", offline=measure)

if __name__ == "__main__":
    run.main([BENCHMARK])
