"""Real clients and our own commands against a broker with OAUTHBEARER over TLS and a provider of
tokens, in this process."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped]
from aiokafka.abc import AbstractTokenProvider  # type: ignore[import-untyped]
from aiokafka.errors import KafkaError as AioKafkaError  # type: ignore[import-untyped]
from confluent_kafka import KafkaError, Producer

from quorate.cli.client.client_properties import client_security
from quorate.cli.client.connection import Connection
from quorate.cli.client.options import read_client_config
from quorate.quorum.protocol.schemas.group_admin import ListGroupsRequest, ListGroupsResponse
from quorate.quorum.rpc.jwks import refresher
from quorate.testing import LocalCluster, ThreadedCluster
from tests.clients.cluster import run_quorate
from tests.clients.kafka_python import AbstractTokenProvider as BlockingTokenProvider
from tests.clients.kafka_python import KafkaProducer
from tests.clients.librdkafka import SILENT
from tests.token_server import CLIENT, SECRET, TokenServer, token_server
from tests.tokens import AUDIENCE, ISSUER, MODULE, VALIDATOR, TokenProvider

pytestmark = [pytest.mark.clients, pytest.mark.filterwarnings("ignore::ResourceWarning")]

PREFIX = "listener.name.plaintext.oauthbearer"
CONFIG = {
    "listener.security.protocol.map": (
        "PLAINTEXT:SASL_SSL,CONTROLLER:PLAINTEXT,REPLICATION:PLAINTEXT"
    ),
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "connections.max.reauth.ms": "2000",
    f"{PREFIX}.sasl.server.callback.handler.class": VALIDATOR,
    "sasl.oauthbearer.expected.audience": AUDIENCE,
    "sasl.oauthbearer.expected.issuer": ISSUER,
    "sasl.oauthbearer.clock.skew.seconds": "0",
}
SESSIONS_S = 2.5
"""Longer than a session."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TokenServer]:
    with token_server(tmp_path_factory.mktemp("provider") / "files") as running:
        yield running


@pytest.fixture(scope="module")
def cluster(server: TokenServer) -> Iterator[ThreadedCluster]:
    assert server.certificate is not None
    keystore = "listener.name.plaintext.ssl.keystore"
    trust = f'ssl.truststore.type="PEM" ssl.truststore.location="{server.certificate.ca}"'
    config = {
        **CONFIG,
        f"{keystore}.type": "PEM",
        f"{keystore}.location": str(server.certificate.keystore),
        "sasl.oauthbearer.jwks.endpoint.url": server.keys_url,
        f"{PREFIX}.sasl.jaas.config": f"{MODULE} {trust};",
    }
    with LocalCluster(brokers=1, controllers=1, config=config) as started:
        yield started


@pytest.fixture(autouse=True)
def usual(server: TokenServer) -> None:
    """Let the provider behave as usual at the begin of each test."""
    server.lifetime_s, server.claims, server.status = 60.0, {}, 200
    server.provider = TokenProvider()


def authority(server: TokenServer) -> str:
    """Return the file of the authority that has issued all certificates."""
    assert server.certificate is not None
    return str(server.certificate.ca)


def librdkafka(cluster: ThreadedCluster, server: TokenServer, **more: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": cluster.bootstrap,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": authority(server),
        "sasl.mechanism": "OAUTHBEARER",
        "log_level": 0,
        **more,
    }


def produces(producer: Producer, topic: str, seconds: float) -> list[Any]:
    """Produce for some seconds. Return the errors."""
    errors: list[Any] = []

    def delivered(error: Any, message: Any) -> None:
        if error:
            errors.append(error)

    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        producer.produce(topic, b"x", on_delivery=delivered)
        producer.poll(0.05)
    assert producer.flush(10) == 0
    return errors


def test_librdkafka_with_a_callback_works_over_several_sessions(
    cluster: ThreadedCluster, server: TokenServer
) -> None:
    issued: list[str] = []

    def callback(_: str) -> tuple[str, float]:
        issued.append(server.token())
        return issued[-1], time.time() + server.lifetime_s

    server.lifetime_s = 2.0  # the session and the token are renewed
    producer = Producer(librdkafka(cluster, server, oauth_cb=callback), logger=SILENT)
    assert produces(producer, "callback", SESSIONS_S) == []
    assert len(issued) >= 2


def test_librdkafka_with_oidc(cluster: ThreadedCluster, server: TokenServer) -> None:
    with token_server(None) as plain:  # librdkafka asks this endpoint by itself
        settings = {
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": plain.token_url,
            "sasl.oauthbearer.client.id": CLIENT,
            "sasl.oauthbearer.client.secret": SECRET,
        }
        producer = Producer(librdkafka(cluster, server, **settings), logger=SILENT)
        assert produces(producer, "oidc", SESSIONS_S) == []
        assert plain.requests


WRONG: dict[str, dict[str, Any]] = {
    "expired": {"seconds": -1},
    "not valid yet": {"nbf": time.time() + 3600},
    "another audience": {"aud": "other"},
    "another issuer": {"iss": "https://other"},
    "another key": {"key_id": "k2", "header": {"kid": "k1"}},
    "an unknown key": {"key_id": "k2"},
    "no user": {"sub": None},
}


def test_a_wrong_token_is_refused_and_others_go_on(
    cluster: ThreadedCluster, server: TokenServer
) -> None:
    good = Producer(
        librdkafka(cluster, server, oauth_cb=lambda _: (server.token(), time.time() + 60)),
        logger=SILENT,
    )
    stranger = TokenProvider({"k1": ("ES256", 0), "k2": ("ES256", 9)})
    errors: dict[str, list[Any]] = {name: [] for name in WRONG}
    bad = []
    for name, changes in WRONG.items():
        token = stranger.token(time.time_ns() // 10**6, **changes)
        bad.append(
            Producer(
                librdkafka(
                    cluster,
                    server,
                    oauth_cb=lambda _, token=token: (token, time.time() + 60),
                    error_cb=errors[name].append,
                ),
                logger=SILENT,
            )
        )
    end_s = time.monotonic() + 20
    while time.monotonic() < end_s and not all(errors.values()):
        for each in bad:
            each.poll(0.02)
        assert produces(good, "good", 0.05) == []
    codes = {name: {each.code() for each in found} for name, found in errors.items()}
    assert all(KafkaError._AUTHENTICATION in each for each in codes.values()), codes


def test_a_new_key_of_the_provider_is_used_soon(
    cluster: ThreadedCluster, server: TokenServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many tokens with unknown keys do not multiply the requests to the provider."""
    monkeypatch.setattr(refresher, "EARLY_REFRESH_MS", 500)
    server.provider = TokenProvider({"k1": ("ES256", 0), "k7": ("ES256", 7)})
    reads, end_s = server.reads, time.monotonic() + 20
    errors: list[Any] = []
    producer = Producer(
        librdkafka(
            cluster,
            server,
            oauth_cb=lambda _: (server.token(key_id="k7"), time.time() + 60),
            error_cb=errors.append,
            **{"reconnect.backoff.max.ms": 100},
        ),
        logger=SILENT,
    )
    delivered: list[Any] = []
    producer.produce("rotated", b"x", on_delivery=lambda error, _: delivered.append(error))
    while not delivered and time.monotonic() < end_s:
        producer.poll(0.05)
    assert delivered == [None]
    assert server.reads - reads <= 3


class Tokens(BlockingTokenProvider):  # type: ignore[misc]
    """The token provider of kafka-python."""

    def __init__(self, server: TokenServer, **changes: Any) -> None:
        self.server, self.changes = server, changes

    def token(self) -> str:
        return self.server.token(**self.changes)

    def extensions(self) -> dict[str, str]:
        return {}


class AsyncTokens(AbstractTokenProvider):  # type: ignore[misc]
    """The token provider of aiokafka."""

    def __init__(self, server: TokenServer, **changes: Any) -> None:
        self.server, self.changes = server, changes

    async def token(self) -> str:
        return self.server.token(**self.changes)

    def extensions(self) -> dict[str, str]:
        return {"traceId": "123"}


async def test_aiokafka(cluster: ThreadedCluster, server: TokenServer) -> None:
    def producer(**changes: Any) -> AIOKafkaProducer:
        return AIOKafkaProducer(
            bootstrap_servers=cluster.bootstrap,
            security_protocol="SASL_SSL",
            ssl_context=ssl.create_default_context(cafile=authority(server)),
            sasl_mechanism="OAUTHBEARER",
            sasl_oauth_token_provider=AsyncTokens(server, **changes),
        )

    good = producer()
    await good.start()
    try:
        for _ in range(3):
            await good.send_and_wait("aiokafka", b"x")
            await asyncio.sleep(0.1)
    finally:
        await good.stop()
    wrong = producer(aud="other")
    try:
        with pytest.raises(AioKafkaError):
            await wrong.start()
    finally:
        await wrong.stop()


def test_kafka_python(cluster: ThreadedCluster, server: TokenServer) -> None:
    producer = KafkaProducer(
        bootstrap_servers=cluster.bootstrap,
        security_protocol="SASL_SSL",
        ssl_cafile=authority(server),
        sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token_provider=Tokens(server),
    )
    try:
        producer.send("kafka-python", b"x").get(timeout=10)
    finally:
        producer.close()


def command_config(directory: Path, server: TokenServer, secret: str = SECRET) -> str:
    """Return the path of a file with the names of Java."""
    ca = authority(server)
    file = directory / "client.properties"
    file.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\n"
        f"ssl.truststore.type=PEM\nssl.truststore.location={ca}\n"
        f"sasl.oauthbearer.token.endpoint.url={server.token_url}\n"
        f'sasl.jaas.config={MODULE} clientId="{CLIENT}" clientSecret="{secret}" '
        f'ssl.truststore.type="PEM" ssl.truststore.location="{ca}";\n'
    )
    return str(file)


def test_our_commands_log_in_with_tokens(
    cluster: ThreadedCluster, server: TokenServer, tmp_path: Path
) -> None:
    file = command_config(tmp_path, server)
    command = ("topics", "-b", cluster.bootstrap, "--command-config", file)
    assert run_quorate(*command, "--create", "--topic", "ours").returncode == 0
    assert "ours" in run_quorate(*command, "--list").stdout
    server.claims = {"aud": "other"}
    refused = run_quorate(*command, "--list")
    assert refused.returncode == 1
    assert 'refuses user of the token: {"status":"invalid_token"}' in refused.stdout
    server.claims = {}
    wrong = command_config(tmp_path, server, "canary")
    refused = run_quorate("topics", "-b", cluster.bootstrap, "--command-config", wrong, "--list")
    assert refused.returncode == 1
    assert "answers with status 401" in refused.stdout + refused.stderr
    assert "canary" not in refused.stdout + refused.stderr


def test_a_command_gets_a_new_token_before_the_old_one_ends(
    cluster: ThreadedCluster, server: TokenServer, tmp_path: Path
) -> None:
    server.lifetime_s = 1.5
    server.requests.clear()
    entries = read_client_config(command_config(tmp_path, server))
    host, port = cluster.bootstrap.split(":")
    security = client_security(entries)
    connection = Connection(
        host, int(port), timeout_s=5, client_id="t", tls=security.tls, login=security.login
    )
    end_s = time.monotonic() + SESSIONS_S
    while time.monotonic() < end_s:
        assert connection.call(ListGroupsRequest(), ListGroupsResponse, 5).error_code == 0
        time.sleep(0.1)
    connection.close()
    assert 2 <= len(server.requests) <= 3
