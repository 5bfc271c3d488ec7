"""The settings of SASL listeners: what is accepted, and each refusal."""

from __future__ import annotations

import pytest

from quorate.config.key import ConfigError
from quorate.config.loader import load
from quorate.config.node_config import NodeConfig

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
    assert (listener.max_reauth_ms, listener.max_receive_bytes) == (2000, 1000)
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
