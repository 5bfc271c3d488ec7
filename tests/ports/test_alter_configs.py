"""A broker compares changes of its own configs with its present settings, as Kafka's brokers do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from quorate.quorum.controller.state.messages import EnvelopeRequest
from quorate.quorum.protocol.codec import decode, encode
from quorate.quorum.protocol.schemas.configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from quorate.quorum.protocol.wire import Message
from tests.ports.node import BROKER_ID, BROKER_PORT, CONTROLLERS_PORT, PortCluster, running

BROKER, SET, DELETE = 4, 0, 1
OWN = str(BROKER_ID)
LOCATION = "listener.name.broker.ssl.keystore.location"


@pytest.fixture
def node() -> Iterator[PortCluster]:
    with running() as cluster:
        yield cluster


def resource(name: str, **changes: str | None) -> IncrementalAlterConfigsResource:
    """Return changes of a broker's configs, with `_` for `.`. None deletes a config."""
    return IncrementalAlterConfigsResource(
        resource_type=BROKER,
        resource_name=name,
        configs=tuple(
            IncrementalAlterableConfig(
                name=key.replace("_", "."),
                config_operation=DELETE if text is None else SET,
                value=text,
            )
            for key, text in changes.items()
        ),
    )


def asked(node: PortCluster, request: Message, version: int) -> list[tuple[str, int]]:
    """Return the name and the error of each resource, when the broker has replayed the change."""
    client = node.connect(BROKER_PORT)
    answer: Any = node.ask(client, request, version)
    node.run(0.5)
    return [(each.resource_name, each.error_code) for each in answer.responses]


def change(node: PortCluster, *resources: IncrementalAlterConfigsResource) -> list[tuple[str, int]]:
    request = IncrementalAlterConfigsRequest(resources=resources, validate_only=False)
    return asked(node, request, 1)


def fetchers(node: PortCluster) -> int:
    process = node.cluster.brokers[0].process
    assert process is not None and process.broker is not None
    return process.broker.replicas.fetchers._count


@pytest.mark.parametrize("name", ["", OWN])
def test_a_pool_at_most_doubles_and_halves_in_one_change(node: PortCluster, name: str) -> None:
    for text, error in (("3", 42), ("2", 0), ("4", 0), ("1", 42), ("5", 0), ("2", 0)):
        assert change(node, resource(name, num_replica_fetchers=text)) == [(name, error)]
    assert fetchers(node) == 2
    assert change(node, resource(name, num_replica_fetchers=None)) == [(name, 0)]
    assert fetchers(node) == 1


def test_the_value_of_all_brokers_is_compared_only_where_it_is_in_force(node: PortCluster) -> None:
    assert change(node, resource(OWN, num_replica_fetchers="2")) == [(OWN, 0)]
    assert change(node, resource("", num_replica_fetchers="9")) == [("", 0)]
    assert fetchers(node) == 2
    assert change(node, resource(OWN, num_replica_fetchers=None)) == [(OWN, 42)], "2 to 9"


def test_the_cleaners_buffer_must_suffice_for_its_threads(node: PortCluster) -> None:
    name = "log_cleaner_dedupe_buffer_size"
    assert change(node, resource(OWN, **{name: "2000000"}, log_cleaner_threads="2")) == [(OWN, 42)]
    assert change(node, resource(OWN, **{name: "2000000"})) == [(OWN, 0)]
    assert change(node, resource(OWN, log_cleaner_threads="2")) == [(OWN, 42)]


def test_a_refused_resource_does_not_fail_the_others(node: PortCluster) -> None:
    refused = resource(OWN, num_replica_fetchers="9")
    accepted = resource("", max_connections="77")
    for resources in ((refused, accepted), (accepted, refused)):
        expected = [(each.resource_name, 42 if each is refused else 0) for each in resources]
        assert change(node, *resources) == expected
    process = node.cluster.brokers[0].process
    assert process is not None and process.broker is not None
    assert process.broker.connections.limits.max_connections == 77
    assert fetchers(node) == 1


def test_a_resource_that_is_named_twice_fails_twice(node: PortCluster) -> None:
    refused = resource(OWN, num_replica_fetchers="9")
    accepted = resource(OWN, max_connections="77")
    assert change(node, refused, accepted) == [(OWN, 42)] * 2


def test_resources_that_are_named_twice_hide_no_other_change(node: PortCluster) -> None:
    twice = resource("", max_connections="77")
    for refused in (resource(OWN, num_replica_fetchers="9"), resource(OWN, **{LOCATION: "/x"})):
        assert change(node, twice, refused, twice) == [("", 42), (OWN, 42), ("", 42)]
    assert fetchers(node) == 1


def test_the_older_api_compares_too(node: PortCluster) -> None:
    def replaced(**configs: str) -> list[tuple[str, int]]:
        wanted = tuple(
            AlterableConfig(name=key.replace("_", "."), value=text) for key, text in configs.items()
        )
        one = AlterConfigsResource(resource_type=BROKER, resource_name=OWN, configs=wanted)
        return asked(node, AlterConfigsRequest(resources=(one,), validate_only=False), 2)

    assert replaced(num_replica_fetchers="3") == [(OWN, 42)]
    assert replaced(num_replica_fetchers="2", max_connections="77") == [(OWN, 0)]
    assert fetchers(node) == 2
    assert replaced(max_connections="77") == [(OWN, 0)], "it deletes the other config"
    assert fetchers(node) == 1


@pytest.mark.parametrize(
    ("broker", "key"),
    [
        (OWN, LOCATION),  # this node's listener has no TLS
        (OWN, "ssl.keystore.location"),
        (OWN, "listener.name.broker.ssl.allow.dn.changes"),
        ("", LOCATION),
        (str(BROKER_ID + 1), LOCATION),
    ],
)
def test_a_key_of_tls_needs_its_listener_and_its_broker(
    node: PortCluster, broker: str, key: str
) -> None:
    assert change(node, resource(broker, **{key: "/x"})) == [(broker, 42)]


@pytest.mark.parametrize(("value", "error"), [("/x", 42), (None, 0)])
def test_a_controller_only_deletes_keys_of_tls(
    node: PortCluster, value: str | None, error: int
) -> None:
    """Only the broker itself can check them."""
    request = IncrementalAlterConfigsRequest(
        resources=(resource(OWN, **{LOCATION: value}),), validate_only=False
    )
    answer: Any = node.ask(node.connect(CONTROLLERS_PORT), request, 1)
    assert [each.error_code for each in answer.responses] == [error]


@pytest.mark.parametrize(
    ("sender", "value", "error"), [(BROKER_ID, "/x", 0), (8, "/x", 42), (8, None, 0)]
)
def test_a_broker_forwards_no_keys_of_tls_of_another_node(
    node: PortCluster, sender: int, value: str | None, error: int
) -> None:
    """It has not checked them. A broker of an earlier release forwards them nevertheless."""
    process = node.cluster.controllers[0].process
    assert process is not None and process.controller is not None
    request = IncrementalAlterConfigsRequest(
        resources=(resource(OWN, **{LOCATION: value}),), validate_only=False
    )
    message = EnvelopeRequest(
        api_key=request.API_KEY, version=1, client_id="", body=encode(request, 1)
    )
    peer: Any = type("Sender", (), {"address": BROKER_PORT, "node_id": sender})()
    answers: list[Any] = []
    process.controller.port.envelopes.handle(peer, message, answers.append)
    node.until(lambda: answers)
    response = decode(IncrementalAlterConfigsResponse, 1, answers[0].body)
    assert [each.error_code for each in response.responses] == [error]
