"""Listeners, advertised listeners and voters."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from quorate.config.key import ConfigError
from quorate.config.listeners import (
    Listener,
    Listeners,
    Voter,
    parse_listeners,
    parse_servers,
    parse_voters,
    resolve_listeners,
)


def resolve(
    listeners: str,
    *,
    advertised: str | None = None,
    inter_broker: str | None = None,
    roles: Sequence[str] = ("broker",),
) -> Listeners:
    """Return the listeners of a node with these settings."""
    return resolve_listeners(
        listeners=listeners,
        advertised=advertised,
        controller_names=("CONTROLLER",),
        inter_broker_name=inter_broker,
        roles=roles,
        hostname="here",
    )


def test_a_replication_listener_on_a_free_port_is_implied() -> None:
    found = resolve("PLAINTEXT://localhost:9092")
    assert found.client == (Listener("PLAINTEXT", "localhost", 9092),)
    assert found.replication == Listener("REPLICATION", "localhost", 0)


def test_also_when_the_only_listener_is_named_for_the_brokers() -> None:
    found = resolve("PLAINTEXT://localhost:9092", inter_broker="PLAINTEXT")
    assert found.client == (Listener("PLAINTEXT", "localhost", 9092),)
    assert found.replication == Listener("REPLICATION", "localhost", 0)


def test_a_listener_of_its_own_for_the_brokers_serves_no_clients() -> None:
    found = resolve("OUT://localhost:9092,IN://localhost:9192", inter_broker="IN")
    assert found.client == (Listener("OUT", "localhost", 9092),)
    assert found.replication == Listener("IN", "localhost", 9192)


def test_a_wildcard_is_advertised_by_host_name() -> None:
    found = resolve("PLAINTEXT://:9092")
    assert found.advertisement("PLAINTEXT") == Listener("PLAINTEXT", "here", 9092)
    assert found.advertisement("REPLICATION") == Listener("REPLICATION", "here", 0)


def test_the_implied_listener_is_advertised_where_the_clients_one_is() -> None:
    found = resolve("PLAINTEXT://:9092", advertised="PLAINTEXT://broker.example:19092")
    assert found.advertisement("PLAINTEXT") == Listener("PLAINTEXT", "broker.example", 19092)
    assert found.advertisement("REPLICATION") == Listener("REPLICATION", "broker.example", 0)


def test_a_combined_node_has_both() -> None:
    found = resolve(
        "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093", roles=("broker", "controller")
    )
    assert [each.name for each in found.client] == ["PLAINTEXT"]
    assert [each.name for each in found.controller] == ["CONTROLLER"]


@pytest.mark.parametrize(
    ("listeners", "roles", "message"),
    [
        ("CONTROLLER://:9093", ("broker",), "a listener for clients"),
        ("PLAINTEXT://:9092", ("controller",), "a listener of controller.listener.names"),
        ("PLAINTEXT://:9092,CONTROLLER://:9093", ("broker",), "free of controller listeners"),
        ("PLAINTEXT://:9092,CONTROLLER://:9093", ("controller",), "controller listeners only"),
    ],
)
def test_listeners_fit_the_roles(listeners: str, roles: Sequence[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        resolve(listeners, roles=roles)


def test_what_is_advertised_must_exist() -> None:
    with pytest.raises(ConfigError, match=r"advertised\.listeners: value 'OTHER'"):
        resolve("PLAINTEXT://:9092", advertised="OTHER://host:1")


def test_an_unknown_inter_broker_listener_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"inter\.broker\.listener\.name: value 'IN'"):
        resolve("OUT://:9092", inter_broker="IN")


@pytest.mark.parametrize("text", ["", "PLAINTEXT", "A://host", "A://host:70000", "A://h:1,A://h:2"])
def test_bad_listeners(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^listeners: value"):
        parse_listeners("listeners", text)


def test_ipv6() -> None:
    (listener,) = parse_listeners("listeners", "A://[::1]:9092")
    assert listener == Listener("A", "::1", 9092)
    assert str(listener) == "A://[::1]:9092"
    assert parse_servers("bootstrap", ["[::1]:9092"]) == (("::1", 9092),)


def test_voters_are_sorted_by_id() -> None:
    assert parse_voters("voters", ["2@b:2", "1@a:1"]) == (Voter(1, "a", 1), Voter(2, "b", 2))


@pytest.mark.parametrize("items", [["a:1"], ["x@a:1"], ["1@a"], ["1@a:0"], ["1@a:1", "1@b:1"]])
def test_bad_voters(items: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"^voters: value"):
        parse_voters("voters", items)
