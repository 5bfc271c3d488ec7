"""A listener with SASL, on virtual time: clients, keys, and the credentials of the metadata log."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from quorate.broker.metrics.scrape import broker_metrics
from quorate.config.listeners import is_loopback
from quorate.quorum.protocol import headers
from quorate.quorum.protocol.apis import APIS
from quorate.quorum.protocol.codec import decode
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.group_admin import ListGroupsRequest
from quorate.quorum.protocol.schemas.metadata import MetadataRequest
from quorate.quorum.protocol.schemas.sasl_authenticate import SaslAuthenticateRequest
from quorate.quorum.protocol.schemas.sasl_handshake import SaslHandshakeRequest
from quorate.quorum.protocol.schemas.user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
    UserName,
)
from quorate.quorum.protocol.wire import Message
from quorate.quorum.sasl.scram_client import ScramClient
from quorate.quorum.sasl.scram_mechanisms import BY_NAME
from tests.ports.node import BROKER_PORT, PortCluster, Raw, running

SASL = {
    "listener.security.protocol.map": (
        "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT,REPLICATION:PLAINTEXT"
    ),
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.plaintext.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'user_alice="secret" user_bob="word";'
    ),
}


@contextmanager
def secured(changes: Mapping[str, str] | None = None, brokers: int = 1) -> Iterator[PortCluster]:
    with running(1, brokers, **{**SASL, **(changes or {})}) as node:
        yield node


def ask(node: PortCluster, raw: Raw, request: Message, version: int) -> Any:
    """Return the response, after which the connection may be closed."""
    raw.frames.clear()
    node.send(raw, request, version, 7)
    node.until(lambda: raw.frames or raw.closed)
    (frame,) = raw.frames
    api = APIS[request.API_KEY]
    body = headers.response_body(frame, api.response_header_version(version))
    return decode(api.response, version, body)


def shake_hands(node: PortCluster, raw: Raw, mechanism: str) -> Any:
    return ask(node, raw, SaslHandshakeRequest(mechanism=mechanism), 1)


def token(node: PortCluster, raw: Raw, text: bytes) -> Any:
    return ask(node, raw, SaslAuthenticateRequest(auth_bytes=text), 2)


def plain(node: PortCluster, raw: Raw, user: str = "alice", password: str = "secret") -> Any:
    assert shake_hands(node, raw, "PLAIN").error_code == 0
    return token(node, raw, f"\0{user}\0{password}".encode())


def scram(node: PortCluster, raw: Raw, mechanism: str, user: str, password: str) -> Any:
    assert shake_hands(node, raw, mechanism).error_code == 0
    client = ScramClient(BY_NAME[mechanism], user, password, "nonce")
    first = token(node, raw, client.first())
    assert first.error_code == 0
    last = token(node, raw, client.final(bytes(first.auth_bytes)))
    if last.error_code == 0:
        client.check(bytes(last.auth_bytes))
    return last


def set_password(node: PortCluster, raw: Raw, user: str, mechanism: str, password: str) -> Any:
    of = BY_NAME[mechanism]
    salt = b"0123456789abcdef"
    upsertion = ScramCredentialUpsertion(
        name=user,
        mechanism=of.number,
        iterations=4096,
        salt=salt,
        salted_password=of.salted_password(password, salt, 4096),
    )
    request = AlterUserScramCredentialsRequest(deletions=(), upsertions=(upsertion,))
    answer: Any = node.ask(raw, request, 0)
    node.run(0.5)
    return answer.results[0].error_code


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_credential_of_the_log_admits_its_user_and_can_be_removed(mechanism: str) -> None:
    with secured() as node:
        admin = node.connect(BROKER_PORT)
        assert plain(node, admin).error_code == 0
        assert set_password(node, admin, "carol", mechanism, "pencil") == 0
        described: Any = node.ask(
            admin, DescribeUserScramCredentialsRequest(users=(UserName(name="carol"),)), 0
        )
        (result,) = described.results
        assert [(each.mechanism, each.iterations) for each in result.credential_infos] == [
            (BY_NAME[mechanism].number, 4096)
        ]
        good, wrong, nobody = (node.connect(BROKER_PORT) for _ in range(3))
        assert scram(node, good, mechanism, "carol", "pencil").error_code == 0
        assert ask(node, good, ListGroupsRequest(), 4).error_code == 0
        failures = [
            scram(node, raw, mechanism, user, password)
            for raw, user, password in ((wrong, "carol", "x"), (nobody, "mallory", "pencil"))
        ]
        assert [each.error_code for each in failures] == [58, 58]
        assert failures[0].error_message == failures[1].error_message
        again: Any = node.connect(BROKER_PORT)
        assert scram(node, again, mechanism, "carol", "pencil").error_code == 0
        removal = AlterUserScramCredentialsRequest(
            deletions=(ScramCredentialDeletion(name="carol", mechanism=BY_NAME[mechanism].number),),
            upsertions=(),
        )
        assert node.ask(admin, removal, 0).results[0].error_code == 0  # type: ignore[attr-defined]
        node.run(0.5)
        assert good.closed, "the connections of a removed credential are closed"
        assert again.closed
        assert not admin.closed
        late = node.connect(BROKER_PORT)
        assert scram(node, late, mechanism, "carol", "pencil").error_code == 58


def test_only_the_connections_of_the_removed_credential_are_closed() -> None:
    with secured() as node:
        admin = node.connect(BROKER_PORT)
        plain(node, admin)
        for user in ("carol", "dave"):
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
                assert set_password(node, admin, user, mechanism, "pencil") == 0
        carol, other, dave = (node.connect(BROKER_PORT) for _ in range(3))
        scram(node, carol, "SCRAM-SHA-256", "carol", "pencil")
        scram(node, other, "SCRAM-SHA-512", "carol", "pencil")
        scram(node, dave, "SCRAM-SHA-256", "dave", "pencil")
        half = node.connect(BROKER_PORT)
        client = ScramClient(BY_NAME["SCRAM-SHA-256"], "carol", "pencil", "nonce")
        shake_hands(node, half, "SCRAM-SHA-256")
        first = token(node, half, client.first())
        deletion = ScramCredentialDeletion(name="carol", mechanism=1)
        removal = AlterUserScramCredentialsRequest(deletions=(deletion,), upsertions=())
        ask(node, admin, removal, 0)
        node.run(0.5)
        assert [each.closed for each in (carol, other, dave, admin)] == [True, False, False, False]
        last = token(node, half, client.final(bytes(first.auth_bytes)))
        assert last.error_code == 58, "the credential was removed during the exchange"


def test_the_metrics_of_a_listener() -> None:
    with secured({"connections.max.reauth.ms": "2000"}) as node:
        good, wrong = node.connect(BROKER_PORT), node.connect(BROKER_PORT)
        plain(node, good)
        plain(node, wrong, password="x")
        node.run(2.5)
        node.send(good, ListGroupsRequest(), 4, 7)
        node.until(lambda: good.closed)
        process = node.cluster.brokers[0].process
        assert process is not None and process.broker is not None
        found = {
            sample.name.removeprefix("kafka_server_socket_server_metrics_"): sample.value
            for family in broker_metrics(process.broker)
            for sample in family.samples
            if sample.labels == {"listener": "PLAINTEXT"}
        }
        assert found == {
            "successful_authentication_total": 1,
            "failed_authentication_total": 1,
            "expired_connections_killed_total": 1,
        }


def test_no_request_is_served_before_the_authentication() -> None:
    with secured() as node:
        raw = node.connect(BROKER_PORT)
        node.send(raw, MetadataRequest(topics=None), 12, 7)
        node.until(lambda: raw.closed)
        assert raw.frames == []


def test_a_broker_registers_the_protocol_of_each_listener() -> None:
    with secured() as node:
        (broker,) = node.cluster.newest_image().brokers.values()
        codes = {each.name: each.security_protocol for each in broker.endpoints}
        assert codes == {"PLAINTEXT": 2, "REPLICATION": 0}


def test_all_brokers_give_an_unknown_user_one_salt() -> None:
    with secured(brokers=2) as node:
        admin = node.connect(node.broker_port)
        plain(node, admin)
        set_password(node, admin, "carol", "SCRAM-SHA-256", "pencil")
        salts = set()
        for broker in node.cluster.brokers:
            assert broker.process is not None and broker.process.broker is not None
            users = broker.process.broker.unknown_users
            salts.add(users.credential(BY_NAME["SCRAM-SHA-256"], "mallory").salt)
        assert len(salts) == 1


# --- the keys


def test_the_mechanisms_of_the_key_are_enabled() -> None:
    with secured({"listener.name.plaintext.sasl.enabled.mechanisms": "PLAIN"}) as node:
        raw = node.connect(BROKER_PORT)
        answer = shake_hands(node, raw, "SCRAM-SHA-256")
        assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        assert answer.mechanisms == ("PLAIN",)
        assert plain(node, node.connect(BROKER_PORT)).error_code == 0


def test_a_failure_is_answered_after_the_delay_of_the_key() -> None:
    with secured({"connection.failed.authentication.delay.ms": "3000"}) as node:
        raw = node.connect(BROKER_PORT)
        begun_s = node.loop.time()
        assert plain(node, raw, password="wrong").error_code == 58
        assert 3.0 <= node.loop.time() - begun_s < 4.0
        node.until(lambda: raw.closed)


def test_a_session_ends_after_the_time_of_the_key() -> None:
    with secured({"connections.max.reauth.ms": "2000"}) as node:
        idle, busy = node.connect(BROKER_PORT), node.connect(BROKER_PORT)
        assert plain(node, idle).session_lifetime_ms == 2000
        for _ in range(3):
            assert plain(node, busy).session_lifetime_ms == 2000
            node.run(1.7)
            assert ask(node, busy, ListGroupsRequest(), 4).error_code == 0
        assert not idle.closed
        node.send(idle, ListGroupsRequest(), 4, 7)
        node.until(lambda: idle.closed)
        assert not busy.closed


def test_a_larger_frame_than_the_key_allows_is_refused() -> None:
    with secured({"sasl.server.max.receive.size": "1000"}) as node:
        raw = node.connect(BROKER_PORT)
        shake_hands(node, raw, "PLAIN")
        node.send(raw, SaslAuthenticateRequest(auth_bytes=bytes(1001)), 1, 7)
        node.until(lambda: raw.closed)


def test_a_connection_that_does_not_authenticate_is_closed_after_10_s() -> None:
    with secured() as node:
        silent, good = node.connect(BROKER_PORT), node.connect(BROKER_PORT)
        plain(node, good)
        node.run(9.0)
        assert [silent.closed, good.closed] == [False, False]
        node.run(1.5)
        assert [silent.closed, good.closed] == [True, False]


@pytest.mark.parametrize(("mechanisms", "lines"), [("PLAIN", 1), ("SCRAM-SHA-256", 0)])
def test_passwords_without_encryption_are_named_at_the_start(
    mechanisms: str, lines: int, caplog: pytest.LogCaptureFixture
) -> None:
    jaas = "listener.name.plaintext.plain.sasl.jaas.config"
    keys = {name: text for name, text in SASL.items() if mechanisms == "PLAIN" or name != jaas}
    keys["sasl.enabled.mechanisms"] = mechanisms
    with caplog.at_level(logging.WARNING, "quorate.kafka"), running(1, 1, **keys):
        found = [each for each in caplog.messages if "passwords without encryption" in each]
    assert len(found) == lines


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("b2", False)],
)
def test_a_loopback_address_is_no_network(host: str, expected: bool) -> None:
    assert is_loopback(host) == expected


def test_a_client_with_sasl_at_a_port_without_makes_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with running() as node, caplog.at_level(logging.WARNING, "quorate.kafka"):
        for _ in range(3):
            answer = shake_hands(node, node.connect(BROKER_PORT), "PLAIN")
            assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
    (line,) = (each for each in caplog.messages if "SaslHandshake" in each)
    assert "on a listener without SASL" in line
