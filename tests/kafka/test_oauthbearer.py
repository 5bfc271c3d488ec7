"""OAUTHBEARER: the same tokens at Apache Kafka and at Quorate, and Kafka's tools at Quorate."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from quorate.quorum.protocol.schemas.sasl_authenticate import SaslAuthenticateRequest
from quorate.quorum.protocol.schemas.sasl_handshake import SaslHandshakeRequest
from quorate.quorum.sasl.oauthbearer_messages import END, client_first
from tests.golden.nodes import KAFKA, QUORATE, Program
from tests.kafka.one_node import Connection
from tests.kafka.secured_node import (
    AUTHENTICATE_VERSION,
    HANDSHAKE_VERSION,
    SecuredNode,
)
from tests.kafka.tools import Ended, kafka, missing
from tests.token_server import CLIENT, SECRET, TokenServer, token_server
from tests.tokens import AUDIENCE, ISSUER, MODULE, VALIDATOR, TokenProvider, part

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(missing()), reason=missing()),
]
PREFIX = "listener.name.sasl."
BROKER_VALIDATOR = "org.apache.kafka.common.security.oauthbearer.BrokerJwtValidator"
"""Without it, a broker of Kafka 4.1.1 does not verify signatures. Quorate always does."""
HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
PROVIDER = TokenProvider({"k1": ("ES256", 0), "k2": ("RS256", 0)})
STRANGER = TokenProvider({"k1": ("ES256", 1), "k9": ("ES256", 2)})


def settings(url: str) -> tuple[str, ...]:
    """Return the settings of a listener SASL that takes tokens."""
    return (
        f"{PREFIX}sasl.enabled.mechanisms=PLAIN,OAUTHBEARER",
        f"{PREFIX}oauthbearer.sasl.server.callback.handler.class={VALIDATOR}",
        f"{PREFIX}oauthbearer.sasl.jaas.config={MODULE};",
        f"{PREFIX}oauthbearer.sasl.oauthbearer.jwks.endpoint.url={url}",
        f"{PREFIX}oauthbearer.sasl.oauthbearer.expected.audience={AUDIENCE},other",
        f"{PREFIX}oauthbearer.sasl.oauthbearer.expected.issuer={ISSUER}",
        f"{PREFIX}sasl.oauthbearer.jwt.validator.class={BROKER_VALIDATOR}",
        f"{PREFIX}oauthbearer.connections.max.reauth.ms=2000",
    )


def token(provider: TokenProvider = PROVIDER, **changes: Any) -> bytes:
    return client_first(provider.token(time.time_ns() // 10**6, **changes))


def forged(header: dict[str, Any]) -> bytes:
    now_s = time.time()
    claims = {"sub": "a", "iss": ISSUER, "aud": AUDIENCE, "iat": now_s, "exp": now_s + 60}
    return client_first(f"{part(header)}.{part(claims)}.c2ln")


def messages() -> dict[str, bytes]:
    """Return first messages of clients, by what they are about."""
    good = token()
    inner = good.removeprefix(b"n,,\x01")
    return {
        "good": good,
        "RSA": token(key_id="k2"),
        "several audiences": token(aud=["x", "other"]),
        "short": token(seconds=1),
        "expired a moment ago": token(seconds=-10),
        "expired": token(seconds=-60),
        "issued after its end": token(seconds=-10, iat=time.time()),
        "not valid yet": token(nbf=time.time() + 60),
        "valid in a moment": token(nbf=time.time() + 10),
        "another audience": token(aud="x"),
        "no audience": token(aud=None),
        "another issuer": token(iss="x"),
        "no issuer": token(iss=None),
        "no user": token(sub=None),
        "blank user": token(user=" "),
        "user that is a number": token(sub=7),
        "no expiration": token(exp=None),
        "no time of issue": token(iat=None),
        "scopes": token(scope=["a", "b"]),
        "scopes twice": token(scope=["a", "a"]),
        "blank scope": token(scope=" "),
        "another key": token(STRANGER),
        "unknown key": token(STRANGER, key_id="k9"),
        "no key": token(header={"kid": None}),
        "key of another type": token(header={"kid": "k2"}),
        "algorithm none": forged({"alg": "none", "kid": "k1"}),
        "symmetric": forged({"alg": "HS256", "kid": "k1"}),
        "no algorithm": forged({"kid": "k1"}),
        "truncated": good[:-12] + b"\x01\x01",
        "two parts": client_first("a.b"),
        "no token": b"n,,\x01auth=Bearer \x01\x01",
        "no auth": b"n,,\x01host=x\x01\x01",
        "extensions": b"n,,\x01traceId=1 2\x01" + inner,
        "extension with a digit": b"n,,\x01trace1=1\x01" + inner,
        "its own id": b"n,a=alice,\x01" + inner,
        "another id": b"n,a=bob,\x01" + inner,
        "empty id": b"n,a=,\x01" + inner,
        "channel binding": b"y,,\x01" + inner,
        "empty": b"",
        "only the end": END,
    }


class Outcome(NamedTuple):
    """The answers to a first message, and to the message after a refusal. None is a connection that
    is closed without an answer."""

    first: tuple[int, str | None, bytes] | None
    has_session: bool
    last: tuple[int, str | None, bytes] | None


def outcome(node: SecuredNode, message: bytes) -> Outcome:
    """Return the answers of a node to a client on a new connection."""
    connection = Connection(node.sasl_port)
    try:
        connection.ask(SaslHandshakeRequest(mechanism="OAUTHBEARER"), HANDSHAKE_VERSION)
        first = authenticate(connection, message)
        refused = first is not None and bool(first.auth_bytes)
        last = authenticate(connection, END) if refused else None
    finally:
        connection.close()
    return Outcome(told(first), first is not None and first.session_lifetime_ms > 0, told(last))


def authenticate(connection: Connection, message: bytes) -> Any:
    """Return the response to a message, or None."""
    return connection.ask(SaslAuthenticateRequest(auth_bytes=message), AUTHENTICATE_VERSION)


def told(response: Any) -> tuple[int, str | None, bytes] | None:
    """Return the content of a response."""
    if response is None:
        return None
    return response.error_code, response.error_message, bytes(response.auth_bytes)


def outcomes(root: Path, program: Program, url: str) -> dict[str, Outcome]:
    """Return the outcome of each message at a node of `program`."""
    node = SecuredNode(root, program, (), *settings(url))
    with node.running():
        return {name: outcome(node, message) for name, message in messages().items()}


def test_both_programs_answer_each_token_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "keys.json"
    file.write_bytes(PROVIDER.jwks())
    url = f"file://{file}"
    allow(monkeypatch, url)
    kafkas = outcomes(tmp_path / "kafka", KAFKA, url)
    ours = outcomes(tmp_path / "quorate", QUORATE, url)
    different = {name: (kafkas[name], ours[name]) for name in ours if kafkas[name] != ours[name]}
    assert different == {}
    accepted = {name for name, each in ours.items() if each.has_session}
    assert {"good", "RSA", "short", "extensions", "its own id"} <= accepted


def allow(monkeypatch: pytest.MonkeyPatch, *urls: str) -> None:
    """Let Kafka use these URLs."""
    monkeypatch.setenv(
        "JAVA_TOOL_OPTIONS",
        f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={','.join(urls)}",
    )


@pytest.fixture(scope="module")
def server() -> Iterator[TokenServer]:
    with token_server(None) as running:
        yield running


def test_kafkas_tools_log_in_with_tokens(
    tmp_path: Path, server: TokenServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "keys.json"
    file.write_bytes(server.provider.jwks())
    allow(monkeypatch, server.token_url)
    node = SecuredNode(
        tmp_path / "node",
        QUORATE,
        (),
        *settings(f"file://{file}"),
        "allow.everyone.if.no.acl.found=true",
    )
    clients = {}
    for name, secret in (("right", SECRET), ("wrong", "canary")):
        clients[name] = tmp_path / f"{name}.properties"
        clients[name].write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
            f"sasl.login.callback.handler.class={HANDLER}\n"
            f"sasl.oauthbearer.token.endpoint.url={server.token_url}\n"
            f'sasl.jaas.config={MODULE} clientId="{CLIENT}" clientSecret="{secret}";\n'
            "default.api.timeout.ms=10000\nrequest.timeout.ms=9000\n"
        )

    def run(client: str, tool: str, *arguments: str) -> Ended:
        where = ("--bootstrap-server", f"127.0.0.1:{node.sasl_port}")
        return kafka(tool, *where, "--command-config", str(clients[client]), *arguments)

    with node.running():
        topic = ("--create", "--topic", "t", "--partitions", "1", "--replication-factor", "1")
        created = run("right", "topics", *topic)
        assert created.lines == ["Created topic t."], created.errors
        sent = kafka(
            *("producer-perf-test", "--topic", "t", "--num-records", "500", "--record-size", "10"),
            *("--throughput", "100", "--producer.config", str(clients["right"])),
            *("--producer-props", f"bootstrap.servers=127.0.0.1:{node.sasl_port}"),
        )
        assert sent.code == 0, sent.errors
        assert sent.lines[-1].startswith("500 records sent"), sent
        refused = run("wrong", "topics", "--list")
        assert refused.code == 1
        server.claims = {"aud": "x"}
        refused = run("right", "topics", "--list")
        assert refused.code == 1
        assert "invalid_token" in refused.errors + "".join(refused.lines)
