"""Real clients against real processes whose only listener for clients has SASL_SSL.

The user of the commands logs in with PLAIN, and the users of the clients with SCRAM-SHA-512."""

from __future__ import annotations

import gc
import json
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer  # type: ignore[import-untyped]
from aiokafka.errors import KafkaConnectionError  # type: ignore[import-untyped]
from confluent_kafka import Consumer, KafkaError, Producer

from quorate.cli.chaos.control.command_control import answers
from quorate.cli.chaos.workload.brokers import Brokers
from quorate.cli.client.client_file import ClientFile
from quorate.cli.client.secured_client import with_tls
from quorate.cli.nodes.cluster_dir import alive
from quorate.quorum.clock import AsyncioClock
from quorate.quorum.rpc.kafka.client import ClientSettings
from quorate.quorum.rpc.transport import AioTransport
from quorate.quorum.seams import Address
from tests.certificates import Files, certificate, files
from tests.clients.cluster import ProcessCluster, run_quorate, wait_for
from tests.clients.kafka_python import KafkaConsumer, KafkaProducer
from tests.clients.librdkafka import SILENT
from tests.clients.test_sasl import PLAIN

pytestmark = [
    pytest.mark.clients,
    pytest.mark.timeout(120),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # of aiokafka and kafka-python
]
TIMEOUT_S = 30.0
LISTENER = "listener.name.plaintext"
MAP = "listener.security.protocol.map=PLAINTEXT:{},REPLICATION:PLAINTEXT,CONTROLLER:PLAINTEXT"
SHAPE = ("--controllers", "1", "--brokers", "1")
RIGHT, WRONG = "pencil", "pen"


@dataclass(frozen=True, slots=True)
class Secured:
    """A cluster of processes, and the files of its certificate and of its administrator."""

    cluster: ProcessCluster
    node: Files
    admin: str

    def run(self, *command: str) -> Any:
        """Run a command as the administrator."""
        return run_quorate(*command, "--command-config", self.admin)


def options(node: Files) -> list[str]:
    """Return the options of `quorate up` for the cluster."""
    values = (
        MAP.format("SASL_SSL"),
        "ssl.keystore.type=PEM",
        f"ssl.keystore.location={node.keystore}",
        "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512",
        f'{LISTENER}.plain.sasl.jaas.config={PLAIN} user_admin="secret";',
    )
    return [part for each in values for part in ("--override", each)]


def command_config(directory: Path, node: Files, password: str) -> str:
    """Return the path of the file of the administrator, with the names of Java."""
    file = directory / f"{password}.properties"
    file.write_text(
        "security.protocol=SASL_SSL\nssl.truststore.type=PEM\n"
        f"ssl.truststore.location={node.ca}\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={PLAIN} username="admin" password="{password}";\n'
    )
    return str(file)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    root = tmp_path_factory.mktemp("secured")
    node = files(root / "node", certificate("CN=node"))
    admin = command_config(root, node, "secret")
    found = Secured(ProcessCluster(root / "cluster"), node, admin)
    try:
        found.cluster.start(*SHAPE, *options(node), "--command-config", admin)
        done = found.run(
            *("configs", "-b", found.cluster.bootstrap, "--alter", "--entity-type", "users"),
            *("--entity-name", "carol", "--add-config", f"SCRAM-SHA-512=[password={RIGHT}]"),
        )
        assert done.returncode == 0, done.stderr
        yield found
    finally:
        found.cluster.stop()


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Collect the sockets that failed clients leave behind, while their warnings are ignored."""
    yield
    gc.collect()


def librdkafka(of: Secured, password: str, **more: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": of.cluster.bootstrap,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(of.node.ca),
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "carol",
        "sasl.password": password,
        "log_level": 0,
        **more,
    }


def python_options(of: Secured, password: str) -> dict[str, Any]:
    """Return the options that aiokafka and kafka-python share."""
    return {
        "bootstrap_servers": of.cluster.bootstrap,
        "security_protocol": "SASL_SSL",
        "ssl_context": ssl.create_default_context(cafile=of.node.ca),
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "carol",
        "sasl_plain_password": password,
    }


def test_confluent(secured: Secured) -> None:
    producer = Producer(librdkafka(secured, RIGHT), logger=SILENT)
    producer.produce("confluent", b"x" * 300_000)
    assert producer.flush(TIMEOUT_S) == 0
    group = {"group.id": "confluent", "auto.offset.reset": "earliest"}
    consumer = Consumer(librdkafka(secured, RIGHT, **group), logger=SILENT)
    consumer.subscribe(["confluent"])
    (found,) = consumer.consume(1, TIMEOUT_S)
    assert found.value() == b"x" * 300_000
    consumer.close()


def test_confluent_with_a_wrong_password(secured: Secured) -> None:
    errors: list[KafkaError] = []
    config = librdkafka(secured, WRONG, error_cb=errors.append)
    producer = Producer(config, logger=SILENT)
    end_s = time.monotonic() + TIMEOUT_S
    while not errors and time.monotonic() < end_s:
        producer.poll(0.1)
    assert errors[0].code() == KafkaError._AUTHENTICATION


async def test_aiokafka(secured: Secured) -> None:
    shared = python_options(secured, RIGHT)
    producer = AIOKafkaProducer(**shared)
    await producer.start()
    await producer.send_and_wait("aiokafka", b"x" * 300_000)
    await producer.stop()
    consumer = AIOKafkaConsumer("aiokafka", auto_offset_reset="earliest", **shared)
    await consumer.start()
    assert (await consumer.getone()).value == b"x" * 300_000
    await consumer.stop()


async def test_aiokafka_with_a_wrong_password(secured: Secured) -> None:
    producer = AIOKafkaProducer(**python_options(secured, WRONG))
    try:
        with pytest.raises(KafkaConnectionError, match="bootstrap"):
            await producer.start()
    finally:
        await producer.stop()


def test_kafka_python(secured: Secured) -> None:
    shared = python_options(secured, RIGHT)
    producer = KafkaProducer(**shared)
    producer.send("kafka-python", b"x" * 300_000).get(TIMEOUT_S)
    producer.close()
    consumer = KafkaConsumer(
        *("kafka-python",), auto_offset_reset="earliest", consumer_timeout_ms=30_000, **shared
    )
    assert next(consumer).value == b"x" * 300_000
    consumer.close()


def test_kafka_python_with_a_wrong_password(secured: Secured) -> None:
    with pytest.raises(Exception, match=r"(?i)auth|bootstrap|brokers"):
        KafkaProducer(**python_options(secured, WRONG), bootstrap_timeout_ms=1_000)


def test_no_log_of_a_node_holds_a_password(secured: Secured) -> None:
    """The clients with wrong passwords have logged in vain by now."""
    logs = "".join(secured.cluster.node_log(each["id"]) for each in secured.cluster.nodes())
    assert "carol" in logs, "the failures are logged"
    assert not {RIGHT, WRONG, "secret"} & set(logs.replace('"', " ").replace("'", " ").split())


def test_status_of_the_cluster(secured: Secured) -> None:
    by_directory = ("--dir", str(secured.cluster.directory.root))
    for where in (by_directory, ("-b", secured.cluster.bootstrap)):
        done = secured.run("status", *where, "--format", "json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["problems"] == []
    changes = secured.run("status", *by_directory, "--changes")
    assert changes.returncode == 0, changes.stderr
    refused = run_quorate("status", *by_directory, "--timeout", "0.5")
    assert refused.returncode == 1
    assert "demands TLS: give --command-config" in refused.stderr


def test_up_and_chaos_refuse_to_connect_with_another_protocol(
    secured: Secured, tmp_path: Path
) -> None:
    root = tmp_path / "cluster"
    overrides = options(secured.node)
    done = run_quorate("up", "--dir", str(root), "--port", "0", *SHAPE, "--detach", *overrides)
    assert done.returncode == 1
    assert "listener PLAINTEXT of broker 2 has the protocol SASL_SSL, and this" in done.stderr
    assert "--command-config" in done.stderr
    assert not list(root.glob("nodes/*/data")), "nothing is formatted"
    done = run_quorate("chaos", "run", "leader-kill", *overrides)
    assert done.returncode == 1
    assert "PLAINTEXT has SASL_SSL, and the clients of a temporary cluster use" in done.stderr


def test_chaos_refuses_a_running_cluster_with_another_protocol(secured: Secured) -> None:
    done = run_quorate("chaos", "run", "leader-kill", "--dir", str(secured.cluster.directory.root))
    assert done.returncode == 1
    assert "listener PLAINTEXT of broker 2 has the protocol SASL_SSL" in done.stderr


@pytest.mark.parametrize("password", ["secret", WRONG])
async def test_clients_of_chaos_log_in(secured: Secured, tmp_path: Path, password: str) -> None:
    security = ClientFile.read(command_config(tmp_path, secured.node, password)).security
    host, port = secured.cluster.bootstrap.split(":")
    transport = with_tls(AioTransport(), security)
    address = Address(host, int(port))
    brokers = Brokers(
        transport, AsyncioClock(), [address], "none", ClientSettings(), security.login
    )
    await brokers.refresh()
    assert brokers.known == ([2] if password == "secret" else [])
    brokers.close()
    assert await answers(address, security), "without a login"
    assert not await answers(address)


def test_up_stops_its_nodes_if_its_password_is_wrong(secured: Secured, tmp_path: Path) -> None:
    wrong = command_config(tmp_path, secured.node, WRONG)
    up = ("up", "--dir", str(tmp_path / "cluster"), "--port", "0", *SHAPE, "--detach")
    done = run_quorate(*up, *options(secured.node), "--command-config", wrong)
    assert done.returncode == 3
    assert "refuses user 'admin': Authentication failed" in done.stderr
    assert WRONG not in done.stderr
    cluster = ProcessCluster(tmp_path / "cluster")

    def stopped() -> bool:
        return not any(alive(each["pid"]) for each in cluster.nodes())

    wait_for(stopped, "the nodes stop", timeout_s=15)
