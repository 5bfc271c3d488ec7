"""The keys of TLS listeners, with and without the prefix of a listener."""

from __future__ import annotations

import pytest

from quorate.config.key import ConfigError
from quorate.config.listener_keys import split_prefix
from quorate.config.loader import load
from quorate.config.node_config import NodeConfig
from tests.unit.config.test_refused_keys import BROKER

SECURE = {
    **BROKER,
    "listeners": "IN.SIDE://localhost:9092,OUT://localhost:9192,REPLICATION://localhost:9292",
    "listener.security.protocol.map": "IN.SIDE:SSL,OUT:SSL,REPLICATION:PLAINTEXT,"
    "CONTROLLER:PLAINTEXT",
    "ssl.keystore.location": "/of/all",
}


def loaded(**more: str) -> NodeConfig:
    return load(None, environment={}, overrides={**SECURE, **more}, hostname="here")


def test_a_key_with_the_prefix_comes_before_the_key() -> None:
    config = loaded(
        **{
            "listener.name.in.side.ssl.keystore.location": "/own",
            "listener.name.in.side.ssl.client.auth": "required",
        }
    )
    assert config.of_listener("IN.SIDE", "ssl.keystore.location") == "/own"
    assert config.of_listener("IN.SIDE", "ssl.client.auth") == "required"
    assert config.of_listener("OUT", "ssl.keystore.location") == "/of/all"
    assert config.of_listener("OUT", "ssl.client.auth") == "none"
    assert config.listeners.protocol("OUT") == "SSL"
    assert not config.unknown


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("listener.name.none.ssl.client.auth", "none", "must name a listener: "),
        ("listener.name.replication.ssl.client.auth", "none", "no listener that it applies to"),
        ("listener.name.out.ssl.client.auth", "always", "must be one of none, requested, required"),
        ("listener.name.out.ssl.provider", "x", "has no such choice"),
        (
            "listener.name.OUT.ssl.client.auth",
            "required",
            r"lower case\. Set listener\.name\.out\.ssl\.client\.auth$",
        ),
        (
            "listener.name.Out.PLAIN.sasl.jaas.config",
            "canary",
            r"lower case\. Set listener\.name\.out\.plain\.sasl\.jaas\.config$",
        ),
        ("ssl.enabled.protocols", "TLSv1.1", "must be one of TLSv1.2, TLSv1.3"),
        ("ssl.cipher.suites", "TLS_RSA_WITH_AES_128_CBC_SHA", "must be one of TLS_AES_128"),
        ("ssl.principal.mapping.rules", "RULE:x", "must be DEFAULT or RULE:pattern/replacement/"),
        ("ssl.endpoint.identification.algorithm", "", None),
        ("ssl.protocol", "TLSv1.3", None),
        ("ssl.protocol", "TLSv1.2", "has no such choice"),
        ("ssl.engine.factory.class", "x", "has no such choice"),
        ("ssl.allow.dn.changes", "yes", "must be true or false"),
    ],
)
def test_what_is_accepted_and_what_is_refused(name: str, value: str, message: str | None) -> None:
    if message is None:
        assert not loaded(**{name: value}).unknown
        return
    with pytest.raises(ConfigError, match=message):
        loaded(**{name: value})


@pytest.mark.parametrize("protocols", ["PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT", None])
def test_a_key_that_no_listener_obeys_is_refused(protocols: str | None) -> None:
    settings = {**BROKER, "ssl.keystore.location": "/k"}
    if protocols:
        settings["listener.security.protocol.map"] = protocols
    with pytest.raises(ConfigError, match="no listener that it applies to has TLS"):
        load(None, environment={}, overrides=settings)


def test_a_controller_accepts_the_keys_of_listeners_that_its_map_names() -> None:
    """All nodes of a cluster may share these settings."""
    settings = {
        "process.roles": "controller",
        "node.id": "1",
        "controller.quorum.voters": "1@localhost:9093",
        "controller.listener.names": "CONTROLLER",
        "listeners": "CONTROLLER://localhost:9093",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,CLIENT:SSL",
        "ssl.keystore.location": "/k",
        "listener.name.client.ssl.client.auth": "none",
    }
    config = load(None, environment={}, overrides=settings)
    assert config.listeners.with_tls == ("CLIENT",)


def test_a_password_is_not_in_the_error_about_it() -> None:
    with pytest.raises(ConfigError) as raised:
        load(None, environment={}, overrides={**BROKER, "ssl.key.password": "canary"})
    assert "canary" not in str(raised.value)


def test_names_without_a_known_key_have_no_prefix() -> None:
    assert split_prefix("listener.name.a.b.ssl.client.auth") == ("A.B", "ssl.client.auth")
    assert split_prefix("listener.name.a.ssl.other") == (None, "listener.name.a.ssl.other")
    assert split_prefix("ssl.client.auth") == (None, "ssl.client.auth")
