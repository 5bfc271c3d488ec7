"""Clients of every family over TLS, with and without certificates of their own.

The cluster runs in this process, so that a test can read the principal of each connection."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer  # type: ignore[import-untyped]
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates

from quorate.cli.main import main
from quorate.testing import LocalCluster, ThreadedCluster
from tests.certificates import ALICE, Files, authority, certificate, files
from tests.clients.kafka_python import KafkaConsumer, KafkaProducer
from tests.clients.librdkafka import SILENT

pytestmark = [pytest.mark.clients, pytest.mark.timeout(120)]
TIMEOUT_S = 30.0
TLS: dict[str, str | int] = {
    "listener.security.protocol.map": "PLAINTEXT:SSL,REPLICATION:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "ssl.keystore.type": "PEM",
    "ssl.truststore.type": "PEM",
    "default.replication.factor": 1,
    "offsets.topic.num.partitions": 1,
}


@dataclass(frozen=True, slots=True)
class Secured:
    """A cluster with TLS, and the certificates of its clients."""

    cluster: ThreadedCluster
    alice: Files
    stranger: Files
    expired: Files

    @property
    def bootstrap(self) -> str:
        return self.cluster.bootstrap

    def principals(self) -> set[str]:
        """Return the principals of the connections that are open."""
        cluster = self.cluster._cluster
        brokers = [node.running.broker for node in cluster._nodes.values() if node.running]
        connections = [each for broker in brokers if broker for each in broker.connections._open]
        return {str(each.principal) for each in connections}  # type: ignore[attr-defined]


def secured(tmp: Path, client_auth: str) -> Iterator[Secured]:
    node = files(tmp / "node", certificate("CN=node"))
    config: dict[str, str | int] = {
        **TLS,
        "ssl.keystore.location": str(node.keystore),
        "ssl.truststore.location": str(node.ca),
        "ssl.client.auth": client_auth,
    }
    with LocalCluster(config=config) as cluster:
        yield Secured(
            cluster,
            files(tmp / "alice", certificate(ALICE)),
            files(tmp / "stranger", certificate(ALICE, by=authority("stranger"))),
            files(tmp / "expired", certificate(ALICE, expired=True)),
        )


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A cluster that asks clients for no certificate."""
    yield from secured(tmp_path_factory.mktemp("tls"), "none")


@pytest.fixture(scope="module")
def mutual(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A cluster that demands a certificate."""
    yield from secured(tmp_path_factory.mktemp("mutual"), "required")


def librdkafka(of: Secured, own: Files | None, **more: Any) -> dict[str, Any]:
    found = {
        "bootstrap.servers": of.bootstrap,
        "security.protocol": "SSL",
        "ssl.ca.location": str(of.alice.ca),
        "log_level": 0,
        **more,
    }
    if own is not None:
        found |= {
            "ssl.certificate.location": str(own.certificate),
            "ssl.key.location": str(own.key),
        }
    return found


def confluent(of: Secured, own: Files | None, topic: str) -> list[bytes]:
    """Produce and consume with librdkafka."""
    producer = Producer(librdkafka(of, own))
    producer.produce(topic, b"x" * 300_000)
    producer.produce(topic, b"last")
    assert producer.flush(TIMEOUT_S) == 0
    options = {"group.id": topic, "auto.offset.reset": "earliest"}
    consumer = Consumer(librdkafka(of, own, **options))
    consumer.subscribe([topic])
    try:
        found = consumer.consume(2, TIMEOUT_S)
        return [each.value() for each in found]  # type: ignore[misc]
    finally:
        consumer.close()


def kafka_python(of: Secured, own: Files | None, topic: str) -> list[bytes]:
    """Produce and consume with kafka-python."""
    options = {
        "bootstrap_servers": of.bootstrap,
        "security_protocol": "SSL",
        "ssl_cafile": str(of.alice.ca),
        "ssl_certfile": own and str(own.certificate),
        "ssl_keyfile": own and str(own.key),
    }
    producer = KafkaProducer(**options)
    producer.send(topic, b"x" * 300_000)
    producer.send(topic, b"last")
    producer.flush(TIMEOUT_S)
    producer.close()
    consumer = KafkaConsumer(
        topic, group_id=topic, auto_offset_reset="earliest", **options, consumer_timeout_ms=30_000
    )
    try:
        return [next(consumer).value for _ in range(2)]
    finally:
        consumer.close()


@pytest.mark.parametrize("family", [confluent, kafka_python])
@pytest.mark.parametrize("kind", ["tls", "mutual"])
def test_a_client_produces_and_consumes(
    request: pytest.FixtureRequest, family: Any, kind: str
) -> None:
    of: Secured = request.getfixturevalue(kind)
    own = of.alice if kind == "mutual" else None
    assert family(of, own, f"{kind}-{family.__name__}") == [b"x" * 300_000, b"last"]


@pytest.mark.parametrize("kind", ["tls", "mutual"])
async def test_aiokafka(request: pytest.FixtureRequest, kind: str) -> None:
    of: Secured = request.getfixturevalue(kind)
    context = ssl.create_default_context(cafile=of.alice.ca)
    if kind == "mutual":
        context.load_cert_chain(of.alice.keystore)
    options = {
        "bootstrap_servers": of.bootstrap,
        "security_protocol": "SSL",
        "ssl_context": context,
    }
    topic = f"{kind}-aiokafka"
    producer = AIOKafkaProducer(**options)
    await producer.start()
    await producer.send_and_wait(topic, b"x" * 300_000)
    await producer.stop()
    consumer = AIOKafkaConsumer(topic, auto_offset_reset="earliest", **options)
    await consumer.start()
    assert (await consumer.getone()).value == b"x" * 300_000
    await consumer.stop()


def test_the_principal_is_the_subject_of_the_certificate(tls: Secured, mutual: Secured) -> None:
    for of, own, principal in ((mutual, mutual.alice, ALICE), (tls, None, "ANONYMOUS")):
        client = AdminClient(librdkafka(of, own), logger=SILENT)
        client.list_topics(timeout=TIMEOUT_S)
        assert of.principals() == {f"User:{principal}"}
        del client


def java(of: Secured, tmp: Path) -> str:
    """The file of a client of Java, with its key in PKCS12."""
    keystore = tmp / "alice.p12"
    issued = certificate(ALICE)
    keystore.write_bytes(
        serialize_key_and_certificates(
            b"alice", issued.key, issued.certificate, [], BestAvailableEncryption(b"changeit")
        )
    )
    return (
        f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location={of.alice.ca}\n"
        f"ssl.keystore.type=PKCS12\nssl.keystore.location={keystore}\n"
        "ssl.keystore.password=changeit\n"
    )


def of_librdkafka(of: Secured, own: Files, **more: str) -> str:
    """The file of a client of librdkafka."""
    lines = {
        "security.protocol": "ssl",
        "ssl.ca.location": of.alice.ca,
        "ssl.certificate.location": own.certificate,
        "ssl.key.location": own.key,
        **more,
    }
    return "".join(f"{name}={value}\n" for name, value in lines.items())


def run_topics(of: Secured, tmp: Path, text: str, *arguments: str) -> tuple[int, str]:
    """Run `quorate topics` with this client file. Return the exit code and the output."""
    file = tmp / "client.properties"
    file.write_text(text)
    options = ("--bootstrap-server", of.bootstrap, "--command-config", str(file))
    ended = CliRunner().invoke(main, ["topics", *options, "--timeout", "3", *arguments])
    return ended.exit_code, ended.output


@pytest.mark.parametrize("family", ["java", "librdkafka"])
def test_our_commands_read_the_files_of_both_families(
    mutual: Secured, tmp_path: Path, family: str
) -> None:
    text = java(mutual, tmp_path) if family == "java" else of_librdkafka(mutual, mutual.alice)
    create = ("--create", "--topic", f"of-{family}", "--partitions", "1")
    assert run_topics(mutual, tmp_path, text, *create)[0] == 0
    code, output = run_topics(mutual, tmp_path, text, "--list")
    assert code == 0 and f"of-{family}" in output


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ("stranger", "TLS failed: .*unknown ca"),
        ("expired", "TLS failed: .*certificate expired"),
        ("authority", "TLS failed: .*certificate verify failed"),
    ],
)
def test_our_commands_say_immediately_what_is_wrong(
    mutual: Secured, tmp_path: Path, wrong: str, sentence: str
) -> None:
    own = {"stranger": mutual.stranger, "expired": mutual.expired}.get(wrong, mutual.alice)
    text = of_librdkafka(mutual, own)
    if wrong == "authority":
        other = tmp_path / "other.pem"
        other.write_bytes(authority("stranger").certificate_pem)
        text = of_librdkafka(mutual, own, **{"ssl.ca.location": str(other)})
    code, output = run_topics(mutual, tmp_path, text, "--list")
    assert code == 1
    assert re.search(sentence, output), output


@pytest.mark.parametrize("output", ["text", "json"])
def test_status_says_how_long_certificates_are_valid(
    mutual: Secured, tmp_path: Path, output: str
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(of_librdkafka(mutual, mutual.alice))
    options = ("--bootstrap-server", mutual.bootstrap, "--command-config", str(file))
    ended = CliRunner().invoke(main, ["status", *options, "--format", output])
    assert ended.exit_code == 0, ended.output
    assert re.search(r"certificate valid for 6 days; renew it", ended.output), ended.output
