"""Properties that would deceive the operator end the start of a node."""

from __future__ import annotations

import logging

import pytest

from quorate.config.authorizer_keys import principals
from quorate.config.key import ConfigError
from quorate.config.loader import load
from quorate.config.node_config import NodeConfig
from quorate.config.node_tls import demands_tls, dials_tls

BROKER = {
    "process.roles": "broker",
    "node.id": "4",
    "controller.quorum.voters": "1@localhost:9093",
    "listeners": "PLAINTEXT://localhost:9092",
    "controller.listener.names": "CONTROLLER",
    "log.dirs": "/tmp/x",
}
SASL = ("SASL_PLAINTEXT", "SASL_SSL")
COMBINED = {
    "process.roles": "broker,controller",
    "controller.quorum.voters": "4@localhost:9093",
    "listeners": "PLAINTEXT://localhost:9092,IN://localhost:9192,CONTROLLER://localhost:9093",
    "inter.broker.listener.name": "IN",
}


def loaded(**more: str) -> NodeConfig:
    """Return the configuration of a broker with these settings; `_` in a name is `.`."""
    settings = {name.replace("_", "."): value for name, value in more.items()}
    return load(None, environment={}, overrides={**BROKER, **settings}, hostname="here")


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("super.users", "User:admin", "every client could do everything"),
        ("allow.everyone.if.no.acl.found", "false", "every client could do everything"),
        ("ssl.provider", "x", "no such choice"),
        ("ssl.endpoint.identification.algorithm", "none", "no host names"),
        ("sasl.enabled.mechanisms", "PLAIN", "no listener that it applies to has SASL"),
        ("connections.max.reauth.ms", "1000", "no listener that it applies to has SASL"),
        ("sasl.jaas.config", "x", "must have the prefix"),
        ("listener.name.in.sasl.jaas.config", "x", "must have the prefix"),
        ("plain.sasl.jaas.config", "x", "must have the prefix"),
        ("sasl.mechanism.inter.broker.protocol", "PLAIN", "nodes do not authenticate"),
        ("sasl.kerberos.service.name", "kafka", "no such choice"),
        ("listener.name.in.sasl.login.class", "x", "no such choice"),
        ("security.inter.broker.protocol", "SSL", "security.protocol.map"),
        ("security.providers", "x", "no Java classes"),
        ("principal.builder.class", "x", "no Java classes"),
        ("delegation.token.secret.key", "x", "no delegation tokens"),
        ("create.topic.policy.class.name", "x", "no policy would be applied"),
        ("alter.config.policy.class.name", "x", "no policy would be applied"),
        ("client.quota.callback.class", "x", "no policy would be applied"),
        ("remote.log.storage.system.enable", "true", "there is no tiered storage"),
    ],
)
def test_deceiving_settings_are_refused_with_one_sentence(
    name: str, value: str, reason: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        load(None, environment={}, overrides={**BROKER, name: value})
    message = str(raised.value)
    assert message.startswith(f"override: {name}: must not be set")
    assert reason in message and "\n" not in message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("authorizer.class.name", ""),
        ("super.users", " "),
        ("allow.everyone.if.no.acl.found", "true"),
        ("security.inter.broker.protocol", "PLAINTEXT"),
        ("connections.max.reauth.ms", "0"),
        ("remote.log.storage.system.enable", "false"),
    ],
)
def test_a_value_that_says_what_the_node_does_is_accepted_silently(
    name: str, value: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        config = load(None, environment={}, overrides={**BROKER, name: value})
    assert not caplog.records
    assert not config.unknown


STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("authorizer.class.name", "org.example.Authorizer"),
        ("authorizer.class.name", "kafka.security.authorizer.AclAuthorizer"),
        ("super.users", "admin"),
        ("super.users", "User:"),
        ("super.users", "User:a;b"),
    ],
)
def test_another_authorizer_and_texts_that_are_no_principals_are_refused(
    name: str, value: str
) -> None:
    """A super user that is not read as meant would lock the administrator out."""
    settings = {"authorizer.class.name": STANDARD, name: value}
    with pytest.raises(ConfigError, match=name):
        load(None, environment={}, overrides={**BROKER, **settings})


def test_super_users_are_separated_by_semicolons() -> None:
    """The name of a certificate has commas."""
    text = "User:CN=alice,OU=eng ; User:bob;"
    settings = {"authorizer.class.name": STANDARD, "super.users": text}
    config = load(None, environment={}, overrides={**BROKER, **settings})
    assert principals(config["super.users"]) == {"User:CN=alice,OU=eng", "User:bob"}


@pytest.mark.parametrize("listener", ["IN", "CONTROLLER"])
@pytest.mark.parametrize("protocol", SASL)
def test_the_listeners_of_nodes_have_no_sasl(listener: str, protocol: str) -> None:
    """The inter-broker listener was once served in the clear with any protocol."""
    combined, text = combined_with_map(dict.fromkeys(("IN", "CONTROLLER"), "PLAINTEXT"))
    assert loaded(**combined, listener_security_protocol_map=text).is_broker
    text = text.replace(f"{listener}:PLAINTEXT", f"{listener}:{protocol}")
    with pytest.raises(ConfigError, match=f"of listener {listener} must be PLAINTEXT or SSL"):
        loaded(**combined, listener_security_protocol_map=text)


def combined_with_map(protocols: dict[str, str]) -> tuple[dict[str, str], str]:
    """Return the settings of a combined node, and a map with these protocols of listeners."""
    combined = {name.replace(".", "_"): value for name, value in COMBINED.items()}
    entries = {"PLAINTEXT": "PLAINTEXT", **protocols}
    return combined, ",".join(f"{name}:{value}" for name, value in entries.items())


@pytest.mark.parametrize("protocols", [("SSL", "PLAINTEXT"), ("PLAINTEXT", "SSL")])
def test_all_listeners_of_nodes_have_one_protocol(protocols: tuple[str, str]) -> None:
    combined, text = combined_with_map(dict(zip(("IN", "CONTROLLER"), protocols, strict=True)))
    with pytest.raises(ConfigError, match="must give CONTROLLER and IN the same protocol"):
        loaded(**combined, listener_security_protocol_map=text)


def test_a_broker_does_not_connect_in_the_clear_to_a_tls_controller() -> None:
    text = "PLAINTEXT:PLAINTEXT,CONTROLLER:SSL"
    with pytest.raises(ConfigError, match="must give CONTROLLER and REPLICATION the same protocol"):
        loaded(listener_security_protocol_map=f"{text},REPLICATION:PLAINTEXT")
    both = loaded(listener_security_protocol_map=f"{text},REPLICATION:SSL")
    assert both.node_listeners_do_tls


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_a_listener_of_nodes_that_is_implied_has_the_protocol_of_controllers(protocol: str) -> None:
    """The file of a controller need not name the listener that only brokers have."""
    text = f"PLAINTEXT:PLAINTEXT,CONTROLLER:{protocol}"
    assert loaded(listener_security_protocol_map=text).listeners.protocol("REPLICATION") == protocol


@pytest.mark.parametrize(
    ("mode", "demands", "dials"),
    [("require", True, True), ("dial", False, True), ("accept", False, False)],
)
def test_a_cluster_switches_to_tls_in_steps(mode: str, demands: bool, dials: bool) -> None:
    text = "PLAINTEXT:PLAINTEXT,CONTROLLER:SSL,REPLICATION:SSL"
    config = loaded(listener_security_protocol_map=text, quorate_node_tls=mode)
    assert (demands_tls(config), dials_tls(config)) == (demands, dials)
    assert demands_tls(loaded(listener_security_protocol_map=text))
    if mode != "require":
        with pytest.raises(ConfigError, match=f"{mode}' needs listeners for nodes with .* SSL"):
            loaded(quorate_node_tls=mode)


def test_the_listener_between_brokers_is_named_once() -> None:
    settings = {name.replace(".", "_"): value for name, value in COMBINED.items()}
    with pytest.raises(ConfigError, match=r"must not be set together with inter\.broker"):
        loaded(**settings, security_inter_broker_protocol="PLAINTEXT")


@pytest.mark.parametrize("name", ["SSL", *SASL])
def test_a_listener_named_after_a_protocol_has_it(name: str) -> None:
    mechanisms = {"sasl_enabled_mechanisms": "SCRAM-SHA-256"} if name in SASL else {}
    config = loaded(listeners=f"{name}://localhost:9092", **mechanisms)
    assert config.listeners.protocol(name) == name


def test_a_map_that_is_set_names_every_listener() -> None:
    with pytest.raises(ConfigError, match="must name listener PLAINTEXT"):
        loaded(listener_security_protocol_map="CONTROLLER:PLAINTEXT")


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]"])
def test_the_meta_address_is_not_advertised(host: str) -> None:
    with pytest.raises(ConfigError, match=r"advertised\.listeners: value .* the meta-address"):
        loaded(advertised_listeners=f"PLAINTEXT://{host}:9092")


def test_an_advertised_listener_without_a_host_has_the_machines_name() -> None:
    advertised = loaded(advertised_listeners="PLAINTEXT://:9192").listeners.advertised
    assert [str(each) for each in advertised][:1] == ["PLAINTEXT://here:9192"]
