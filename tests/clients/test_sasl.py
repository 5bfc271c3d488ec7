"""Real clients and our own commands against a broker with SASL, in this process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped]
from confluent_kafka import KafkaError, Producer
from confluent_kafka.cimpl import Consumer

from quorate.cli.client.connection import Connection
from quorate.cli.client.sasl_login import SaslLogin
from quorate.quorum.protocol.schemas.group_admin import ListGroupsRequest, ListGroupsResponse
from quorate.testing import LocalCluster, ThreadedCluster
from tests.clients.cluster import run_quorate
from tests.clients.kafka_python import KafkaProducer
from tests.clients.librdkafka import SILENT

pytestmark = [pytest.mark.clients, pytest.mark.filterwarnings("ignore::ResourceWarning")]

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
CONFIG = {
    "listener.security.protocol.map": (
        "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT,REPLICATION:PLAINTEXT"
    ),
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "connections.max.reauth.ms": "2000",
    "listener.name.plaintext.plain.sasl.jaas.config": f'{PLAIN} user_admin="secret";',
}
LOGINS = [
    ("PLAIN", "admin", "secret"),
    ("SCRAM-SHA-256", "carol", "pencil"),
    ("SCRAM-SHA-512", "carol", "pencil"),
]
WRONG = [
    ("PLAIN", "admin", "wrong"),
    ("PLAIN", "nobody", "secret"),
    ("SCRAM-SHA-256", "carol", "wrong"),
    ("SCRAM-SHA-512", "nobody", "pencil"),
]
SESSIONS_S = 5.0
"""Longer than two sessions."""


def command_config(directory: Path, mechanism: str, user: str, password: str) -> str:
    """Return the path of a file with the names of Java."""
    module = PLAIN if mechanism == "PLAIN" else SCRAM
    file = directory / f"{mechanism}-{user}-{password}.properties"
    file.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n"
        f'sasl.jaas.config={module} username="{user}" password="{password}";\n'
    )
    return str(file)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedCluster]:
    with LocalCluster(brokers=1, controllers=1, config=CONFIG) as started:
        file = command_config(tmp_path_factory.mktemp("admin"), *LOGINS[0])
        done = run_quorate(
            *("configs", "-b", started.bootstrap, "--command-config", file, "--alter"),
            *("--entity-type", "users", "--entity-name", "carol", "--add-config"),
            "SCRAM-SHA-256=[iterations=8192,password=pencil],SCRAM-SHA-512=[password=pencil]",
        )
        assert done.stdout == "Completed updating config for user carol.\n", done.stderr
        yield started


def librdkafka(cluster: ThreadedCluster, login: tuple[str, str, str], **more: Any) -> Any:
    mechanism, user, password = login
    return {
        "bootstrap.servers": cluster.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
        "log_level": 0,
        **more,
    }


@pytest.mark.parametrize("login", LOGINS, ids=lambda each: each[0])
def test_librdkafka_works_over_several_sessions(
    cluster: ThreadedCluster, login: tuple[str, str, str]
) -> None:
    errors: list[Any] = []

    def delivered(error: Any, message: Any) -> None:
        if error:
            errors.append(error)

    producer = Producer(librdkafka(cluster, login, error_cb=errors.append), logger=SILENT)
    topic, sent, end_s = f"librdkafka-{login[0]}", 0, time.monotonic() + SESSIONS_S
    while time.monotonic() < end_s:
        producer.produce(topic, b"x", on_delivery=delivered)
        sent += 1
        producer.poll(0.05)
    assert producer.flush(10) == 0
    assert errors == []
    consumer = Consumer(
        librdkafka(cluster, login, **{"group.id": "g", "auto.offset.reset": "earliest"}),
        logger=SILENT,
    )
    consumer.subscribe([topic])
    received = 0
    end_s = time.monotonic() + 20
    while received < sent and time.monotonic() < end_s:
        received += len(consumer.consume(1000, 0.5))
    consumer.close()
    assert received == sent


@pytest.mark.parametrize("login", WRONG, ids=lambda each: "-".join(each))
def test_librdkafka_learns_that_its_login_is_wrong(
    cluster: ThreadedCluster, login: tuple[str, str, str]
) -> None:
    errors: list[KafkaError] = []
    producer = Producer(librdkafka(cluster, login, error_cb=errors.append), logger=SILENT)
    end_s = time.monotonic() + 10
    while not errors and time.monotonic() < end_s:
        producer.poll(0.1)
    assert errors[0].code() == KafkaError._AUTHENTICATION


def aiokafka(cluster: ThreadedCluster, login: tuple[str, str, str]) -> AIOKafkaProducer:
    mechanism, user, password = login
    return AIOKafkaProducer(
        bootstrap_servers=cluster.bootstrap,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=mechanism,
        sasl_plain_username=user,
        sasl_plain_password=password,
    )


def test_aiokafka(cluster: ThreadedCluster) -> None:
    async def produce(login: tuple[str, str, str]) -> None:
        producer = aiokafka(cluster, login)
        try:
            await producer.start()
            await producer.send_and_wait("aiokafka", b"x")
        finally:
            await producer.stop()

    for login in LOGINS:
        asyncio.run(produce(login))
    for login in WRONG[:3:2]:
        with pytest.raises(Exception, match="bootstrap"):
            asyncio.run(produce(login))


def test_kafka_python(cluster: ThreadedCluster) -> None:
    for mechanism, user, password in LOGINS:
        producer = KafkaProducer(
            bootstrap_servers=cluster.bootstrap,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=mechanism,
            sasl_plain_username=user,
            sasl_plain_password=password,
        )
        producer.send("kafka-python", b"x").get(10)
        producer.close()


def test_our_commands(cluster: ThreadedCluster, tmp_path: Path) -> None:
    def configs(login: tuple[str, str, str], *arguments: str) -> Any:
        file = command_config(tmp_path, *login)
        return run_quorate(
            *("configs", "-b", cluster.bootstrap, "--command-config", file), *arguments
        )

    describe = ("--describe", "--entity-type", "users")
    expected = (
        "SCRAM credential configs for user-principal 'carol' are "
        "SCRAM-SHA-256=iterations=8192, SCRAM-SHA-512=iterations=4096\n"
    )
    for login in LOGINS:
        assert configs(login, *describe).stdout == expected
    one = configs(LOGINS[0], *describe, "--entity-name", "carol")
    assert one.stdout == expected
    assert configs(LOGINS[0], *describe, "--entity-name", "nobody").stdout == ""
    for login in WRONG:
        done = configs(login, *describe)
        assert done.returncode == 1
        assert f"refuses user '{login[1]}': Authentication failed" in done.stderr
        assert login[2] not in done.stderr
    alter = ("--alter", "--entity-type", "users", "--entity-name", "dave")
    weak = configs(LOGINS[0], *alter, "--add-config", "SCRAM-SHA-256=[iterations=100,password=x]")
    assert "Iterations 100 is less than the minimum 4096 required for SCRAM-SHA-256" in weak.stderr
    both = "SCRAM-SHA-256=[password=x],producer_byte_rate=1000"
    assert configs(LOGINS[0], *alter, "--add-config", both).returncode == 0
    told = configs(LOGINS[0], *describe, "--entity-name", "dave").stdout
    assert told.splitlines() == [
        "Quota configs for user-principal 'dave' are producer_byte_rate=1000.0",
        "SCRAM credential configs for user-principal 'dave' are SCRAM-SHA-256=iterations=4096",
    ]
    gone = configs(LOGINS[0], *alter, "--delete-config", "SCRAM-SHA-256,producer_byte_rate")
    assert gone.returncode == 0, gone.stderr
    assert configs(LOGINS[0], *describe, "--entity-name", "dave").stdout == ""
    again = configs(LOGINS[0], *alter, "--delete-config", "SCRAM-SHA-256")
    assert again.returncode == 1
    assert "does not exist" in again.stderr


@pytest.mark.parametrize("login", LOGINS, ids=lambda each: each[0])
def test_a_command_logs_in_again(cluster: ThreadedCluster, login: tuple[str, str, str]) -> None:
    """Otherwise the broker would close its connection after the first session."""
    host, port = cluster.bootstrap.split(":")
    connection = Connection(host, int(port), timeout_s=5, client_id="t", login=SaslLogin(*login))
    end_s = time.monotonic() + SESSIONS_S
    while time.monotonic() < end_s:
        answer = connection.call(ListGroupsRequest(), ListGroupsResponse, 5)
        assert answer.error_code == 0
        time.sleep(0.5)
    connection.close()
