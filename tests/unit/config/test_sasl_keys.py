"""The settings of SASL listeners: what is accepted, and each refusal."""

from __future__ import annotations

import pytest

from quorate.config.key import ConfigError
from quorate.config.loader import load
from quorate.config.node_config import NodeConfig
from quorate.config.oauthbearer_keys import OAuthBearerSettings
from tests.tokens import MODULE as OAUTH_MODULE
from tests.tokens import VALIDATOR

BASE = {
    "process.roles": "broker",
    "node.id": "1",
    "controller.quorum.voters": "3@localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "listeners": "IN://localhost:9092,my.out://localhost:9094",
    "listener.security.protocol.map": "IN:SASL_PLAINTEXT,MY.OUT:PLAINTEXT,CONTROLLER:PLAINTEXT",
}
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
USERS = f'{PLAIN} username="a" password="b" user_alice="canary" user_bob="word";'
JAAS = "listener.name.in.plain.sasl.jaas.config"


def with_settings(settings: dict[str, str]) -> NodeConfig:
    return load(None, environment={}, overrides={**BASE, **settings}, hostname="here")


def test_the_settings_of_a_listener() -> None:
    config = with_settings(
        {
            "sasl.enabled.mechanisms": "SCRAM-SHA-256",
            "listener.name.in.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            JAAS: USERS,
            "listener.name.in.scram-sha-512.sasl.jaas.config": f"{SCRAM};",
            "connections.max.reauth.ms": "5000",
            "listener.name.in.connections.max.reauth.ms": "2000",
            "sasl.server.max.receive.size": "1000",
        }
    )
    (name,) = config.sasl
    listener = config.sasl[name]
    assert name == "IN"
    assert listener.mechanisms == ("PLAIN", "SCRAM-SHA-512")
    assert listener.plain_users == {"alice": "canary", "bob": "word"}
    assert listener.max_reauth_ms == {"PLAIN": 2000, "SCRAM-SHA-512": 2000}
    assert listener.max_receive_bytes == 1000
    assert config.listeners.protocol("IN") == "SASL_PLAINTEXT"
    assert config.listeners.protocol("MY.OUT") == "PLAINTEXT"
    assert "canary" not in repr(listener)


def test_scram_needs_no_jaas_value() -> None:
    config = with_settings({"sasl.enabled.mechanisms": "SCRAM-SHA-256"})
    assert config.sasl["IN"].plain_users == {}


def test_a_listener_named_after_its_protocol() -> None:
    config = with_settings(
        {
            "listeners": "SASL_PLAINTEXT://localhost:9092",
            "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        }
    )
    assert list(config.sasl) == ["SASL_PLAINTEXT"]


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, "value 'GSSAPI' of listener IN must be some of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"),
        ({"sasl.enabled.mechanisms": "SCRAM-SHA-256,GSSAPI"}, "must be some of PLAIN"),
        ({"sasl.enabled.mechanisms": ""}, "must be some of PLAIN"),
        ({"sasl.enabled.mechanisms": "PLAIN"}, "must be set and name a user"),
        ({"sasl.enabled.mechanisms": "PLAIN", JAAS: f"{PLAIN};"}, "must be set and name a user"),
        ({"sasl.enabled.mechanisms": "SCRAM-SHA-256", JAAS: USERS}, "does not contain PLAIN"),
        ({"sasl.enabled.mechanisms": "PLAIN", JAAS: "nonsense"}, "is no JAAS value"),
        ({"sasl.enabled.mechanisms": "PLAIN", JAAS: f"{SCRAM};"}, "must begin with org.apache"),
        (
            {"sasl.enabled.mechanisms": "PLAIN", JAAS: f'{PLAIN} user_="canary";'},
            "an option without an effect",
        ),
        (
            {"sasl.enabled.mechanisms": "PLAIN", JAAS: f'{PLAIN} user_a="b" canary="c";'},
            "an option without an effect",
        ),
        (
            {
                "sasl.enabled.mechanisms": "SCRAM-SHA-256",
                "listener.name.my.out.connections.max.reauth.ms": "5",
            },
            "no listener that it applies to has SASL",
        ),
        (
            {
                "sasl.enabled.mechanisms": "SCRAM-SHA-256",
                "listener.name.in.connections.max.reauth.ms": "-5",
            },
            "must be at least 0",
        ),
    ],
)
def test_a_refusal_names_the_setting_and_no_secret(settings: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError) as error:
        with_settings(settings)
    assert text in str(error.value)
    assert "canary" not in str(error.value)


def test_nodes_do_not_use_sasl() -> None:
    for name in ("CONTROLLER", "IN"):
        with pytest.raises(ConfigError, match=f"of listener {name} must be PLAINTEXT"):
            with_settings(
                {
                    "sasl.enabled.mechanisms": "SCRAM-SHA-256",
                    "inter.broker.listener.name": "IN",
                    "listener.security.protocol.map": "IN:PLAINTEXT,MY.OUT:PLAINTEXT,"
                    "CONTROLLER:PLAINTEXT".replace(f"{name}:PLAINTEXT", f"{name}:SASL_PLAINTEXT"),
                }
            )


HANDLER = "listener.name.in.oauthbearer.sasl.server.callback.handler.class"
JAAS_OF_TOKENS = "listener.name.in.oauthbearer.sasl.jaas.config"
URL = "sasl.oauthbearer.jwks.endpoint.url"
OAUTHBEARER = {
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    HANDLER: VALIDATOR,
    URL: "https://issuer.example.com/keys",
}


def test_the_settings_of_oauthbearer_and_their_prefixes() -> None:
    default = with_settings(OAUTHBEARER).sasl["IN"].oauthbearer
    assert default == OAuthBearerSettings(
        jwks_url="https://issuer.example.com/keys",
        refresh_ms=3_600_000,
        retry_backoff_ms=100,
        retry_backoff_max_ms=10_000,
        audiences=(),
        issuer=None,
        clock_skew_ms=30_000,
        scope_claim="scope",
        user_claim="sub",
    )
    names = ("expected.audience", "expected.issuer", "sub.claim.name")
    changes = {f"sasl.oauthbearer.{each}": "node" for each in names} | {
        f"listener.name.in.sasl.oauthbearer.{each}": "listener" for each in names[1:]
    }
    changes["listener.name.in.oauthbearer.sasl.oauthbearer.sub.claim.name"] = "mechanism"
    found = with_settings({**OAUTHBEARER, **changes}).sasl["IN"].oauthbearer
    assert found is not None
    assert (found.audiences, found.issuer, found.user_claim) == (
        *(("node",), "listener", "mechanism"),
    )
    times = ("refresh.ms", "retry.backoff.ms", "retry.backoff.max.ms")
    timed = {f"sasl.oauthbearer.jwks.endpoint.{each}": f"{len(each)}" for each in times}
    found = with_settings({**OAUTHBEARER, **timed}).sasl["IN"].oauthbearer
    assert found is not None
    assert [found.refresh_ms, found.retry_backoff_ms, found.retry_backoff_max_ms] == [10, 16, 20]


def test_the_truststore_in_the_jaas_value_of_oauthbearer() -> None:
    key = "listener.name.in.oauthbearer.sasl.jaas.config"
    options = 'clientId="a" ssl.truststore.location="/x" ssl.truststore.password="canary"'
    listener = with_settings({**OAUTHBEARER, key: f"{OAUTH_MODULE} {options};"}).sasl["IN"]
    assert listener.oauthbearer is not None
    assert listener.oauthbearer.truststore == {
        "ssl.truststore.location": "/x",
        "ssl.truststore.password": "canary",
    }
    assert "canary" not in repr(listener)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({HANDLER: ""}, f"{HANDLER}: must be {VALIDATOR}. Kafka's default accepts tokens without"),
        ({HANDLER: "com.example.Mine"}, f"override: {HANDLER}: must be {VALIDATOR}"),
        ({URL: ""}, "must be https://HOST/PATH or file:///PATH"),
        ({URL: "http://issuer.example.com/keys"}, "must be https://HOST/PATH or file:///PATH"),
        ({URL: "https:///keys"}, "must be https://HOST/PATH or file:///PATH"),
        ({URL: "https://[x/keys"}, "must be https://HOST/PATH or file:///PATH"),
        ({URL: "file://host/keys"}, "must be https://HOST/PATH or file:///PATH"),
        ({"sasl.oauthbearer.clock.skew.seconds": "-1"}, "must be at least 0"),
        ({"sasl.oauthbearer.jwks.endpoint.refresh.ms": "0"}, "must be at least 1"),
        ({"sasl.oauthbearer.expected.issuer": ""}, "must be the issuer of the tokens, or the key"),
        ({"sasl.oauthbearer.sub.claim.name": ""}, "must be the name of a claim"),
        (
            {"listener.name.in.oauthbearer.sasl.jaas.config": f'{OAUTH_MODULE} a="canary";'},
            "has an option without an effect. Allowed: ssl.truststore.certificates",
        ),
        ({"listener.name.in.oauthbearer.sasl.jaas.config": f"{SCRAM};"}, "must begin with org"),
        (
            {JAAS_OF_TOKENS: f'{OAUTH_MODULE} ssl.truststore.password="canary";'},
            "but neither ssl.truststore.location nor ssl.truststore.certificates",
        ),
        (
            {JAAS_OF_TOKENS: f'{OAUTH_MODULE} ssl.truststore.location="";'},
            "but neither ssl.truststore.location nor ssl.truststore.certificates",
        ),
        (
            {JAAS_OF_TOKENS: f'{OAUTH_MODULE} ssl.truststore.location="/x";', URL: "file:///y"},
            "must not have a truststore: sasl.oauthbearer.jwks.endpoint.url names a file",
        ),
        ({"sasl.enabled.mechanisms": "SCRAM-SHA-256"}, "does not contain OAUTHBEARER"),
        (
            {"listener.name.in.scram-sha-256.connections.max.reauth.ms": "1"},
            "listener IN does not contain SCRAM-SHA-256",
        ),
        ({"oauthbearer.sasl.oauthbearer.jwks.endpoint.url": "https://h/"}, "must have the prefix"),
        ({"sasl.oauthbearer.jwt.validator.class": "com.example.Mine"}, "loads no Java classes"),
        ({"sasl.oauthbearer.token.endpoint.url": "https://h/token"}, "no such choice for SASL"),
    ],
)
def test_refused_settings_of_oauthbearer(changes: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        with_settings({**OAUTHBEARER, **changes})
    assert text in str(raised.value)
    assert "canary" not in str(raised.value)


@pytest.mark.parametrize("name", [URL, f"listener.name.in.{URL}"])
def test_a_key_of_oauthbearer_needs_a_listener_with_the_mechanism(name: str) -> None:
    changes = {"sasl.enabled.mechanisms": "SCRAM-SHA-256", name: "https://h/keys"}
    with pytest.raises(ConfigError, match=r"must not be set: .* does not contain OAUTHBEARER"):
        with_settings(changes)


def test_each_mechanism_may_have_its_own_session() -> None:
    config = with_settings(
        {
            "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
            "connections.max.reauth.ms": "1000",
            "listener.name.in.scram-sha-256.connections.max.reauth.ms": "2000",
        }
    )
    assert config.sasl["IN"].max_reauth_ms == {"SCRAM-SHA-256": 2000, "SCRAM-SHA-512": 1000}
