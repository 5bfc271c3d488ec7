"""A listener with OAUTHBEARER on virtual time: tokens, its keys, sessions, and its log."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from quorate.broker.metrics.scrape import broker_metrics
from quorate.quorum.protocol.schemas.group_admin import ListGroupsRequest
from quorate.quorum.sasl.oauthbearer_messages import END, client_first
from tests.ports.node import BROKER_PORT, PortCluster, Raw, running
from tests.ports.test_sasl import ask, shake_hands, token
from tests.tokens import AUDIENCE, ISSUER, VALIDATOR, TokenProvider

PREFIX = "listener.name.plaintext."
NODE = {
    "listener.security.protocol.map": (
        "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT,REPLICATION:PLAINTEXT"
    ),
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    f"{PREFIX}oauthbearer.sasl.server.callback.handler.class": VALIDATOR,
    "sasl.oauthbearer.expected.audience": AUDIENCE,
}
REFUSAL = b'{"status":"invalid_token"}'
PROVIDER = TokenProvider()


@contextmanager
def listening(directory: Path, changes: Mapping[str, str] | None = None) -> Iterator[PortCluster]:
    """Yield a cluster whose broker has the keys of PROVIDER in a file."""
    file = directory / "jwks.json"
    file.write_bytes(PROVIDER.jwks())
    url = {"sasl.oauthbearer.jwks.endpoint.url": f"file://{file}"}
    with running(1, 1, **{**NODE, **url, **(changes or {})}) as node:
        yield node


def wall_ms(node: PortCluster) -> int:
    return int(broker(node).core.clock.wall_ms())


def broker(node: PortCluster) -> Any:
    (process,) = (each.process for each in node.cluster.brokers)
    assert process is not None
    return process.broker


def show(node: PortCluster, raw: Raw, text: str) -> Any:
    """Return the response to a token."""
    assert shake_hands(node, raw, "OAUTHBEARER").error_code == 0
    return token(node, raw, client_first(text))


def is_refused(node: PortCluster, raw: Raw, text: str) -> bool:
    """Return True if the token is refused, and then the connection closed, as by Kafka."""
    answer = show(node, raw, text)
    if not (answer.error_code == 0 and bytes(answer.auth_bytes) == REFUSAL):
        return False
    last = token(node, raw, END)
    node.until(lambda: raw.closed)
    return (last.error_code, last.error_message) == (58, REFUSAL.decode())


def test_a_token_admits_its_user_for_its_time(tmp_path: Path) -> None:
    with listening(tmp_path) as node:
        raw = node.connect(BROKER_PORT)
        answer = show(node, raw, PROVIDER.token(wall_ms(node), seconds=5))
        assert (answer.error_code, bytes(answer.auth_bytes)) == (0, b"")
        assert 4500 < answer.session_lifetime_ms <= 5000
        assert ask(node, raw, ListGroupsRequest(), 4).error_code == 0
        again = show(node, raw, PROVIDER.token(wall_ms(node), seconds=20))
        assert 19_500 < again.session_lifetime_ms <= 20_000
        node.run(10)
        assert ask(node, raw, ListGroupsRequest(), 4).error_code == 0
        node.run(11)
        node.send(raw, ListGroupsRequest(), 4, 8)
        node.until(lambda: raw.closed)


def test_the_session_is_the_shorter_of_the_token_and_the_key(tmp_path: Path) -> None:
    changes = {f"{PREFIX}oauthbearer.connections.max.reauth.ms": "2000"}
    with listening(tmp_path, changes) as node:
        raw = node.connect(BROKER_PORT)
        assert show(node, raw, PROVIDER.token(wall_ms(node))).session_lifetime_ms == 2000
        short = show(node, raw, PROVIDER.token(wall_ms(node), seconds=1))
        assert 500 < short.session_lifetime_ms <= 1000


def test_another_user_cannot_take_over_the_connection(tmp_path: Path) -> None:
    with listening(tmp_path) as node:
        raw = node.connect(BROKER_PORT)
        assert show(node, raw, PROVIDER.token(wall_ms(node))).error_code == 0
        node.run(1.1)
        answer = show(node, raw, PROVIDER.token(wall_ms(node), "bob"))
        assert answer.error_code == 58
        assert answer.error_message.startswith("Cannot change principals")


RULES: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("expected.audience", "a,b", {"aud": ["x", "b"]}, {"aud": "c"}),
    ("expected.issuer", ISSUER, {}, {"iss": "https://other"}),
    ("clock.skew.seconds", "0", {}, {"seconds": -1}),
    ("clock.skew.seconds", "30", {"seconds": -1}, {"seconds": -31}),
    ("scope.claim.name", "roles", {"roles": ["a"]}, {"roles": ["a", "a"]}),
    ("sub.claim.name", "upn", {"upn": "alice", "sub": None}, {"upn": None}),
]


@pytest.mark.parametrize(("key", "value", "accepted", "refused"), RULES, ids=lambda each: str(each))
def test_the_rules_of_tokens(
    tmp_path: Path, key: str, value: str, accepted: dict[str, Any], refused: dict[str, Any]
) -> None:
    with listening(tmp_path, {f"sasl.oauthbearer.{key}": value}) as node:
        default = {"aud": "a"} if key == "expected.audience" else {}
        good, bad = node.connect(BROKER_PORT), node.connect(BROKER_PORT)
        assert is_refused(node, bad, PROVIDER.token(wall_ms(node), **{**default, **refused}))
        answer = show(node, good, PROVIDER.token(wall_ms(node), **{**default, **accepted}))
        assert (answer.error_code, bytes(answer.auth_bytes)) == (0, b"")


def test_no_log_line_has_a_token(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with listening(tmp_path) as node:
        good, bad, gone = (node.connect(BROKER_PORT) for _ in range(3))
        texts = [
            PROVIDER.token(wall_ms(node)),
            PROVIDER.token(wall_ms(node), "mallory", seconds=-60),
            PROVIDER.token(wall_ms(node), "mallory", aud="other"),
        ]
        show(node, good, texts[0])
        assert is_refused(node, bad, texts[1])
        show(node, gone, texts[2])
        gone.link.abort()
        node.run(1)
        (gate,) = broker(node).services.gates
        assert (gate.successful, gate.failed) == (1, 2)
    parts = {part for text in texts for part in text.split(".")[1:]}
    assert not [each for each in parts if each in caplog.text]
    lines = [each for each in caplog.messages if each.startswith("a client at")]
    assert len(lines) == 2
    assert "as 'mallory' by OAUTHBEARER: the token has expired" in lines[0]
    assert "as 'mallory' by OAUTHBEARER: the token is for another audience" in lines[1]


def test_the_metrics_of_the_keys(tmp_path: Path) -> None:
    with listening(tmp_path) as node:
        found = {
            sample.name: sample.value
            for family in broker_metrics(broker(node))
            for sample in family.samples
            if "oauthbearer" in sample.name
        }
    assert found == {
        "quorate_oauthbearer_keys": 1,
        "quorate_oauthbearer_key_refreshes_total": 0,
        "quorate_oauthbearer_failed_key_refreshes_total": 0,
    }
