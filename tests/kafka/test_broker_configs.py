"""Broker configs at run time: Apache Kafka 4.1.1 and Quorate answer the same requests alike, and
Kafka's ConfigCommand changes Quorate's brokers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from quorate.config.dynamic_keys import DYNAMIC_KEYS
from quorate.quorum.protocol.schemas.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from tests.clients.cluster import wait_for
from tests.golden.nodes import KAFKA, QUORATE, Program
from tests.kafka.one_node import Connection, OneNode
from tests.kafka.tools import missing

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]
SIDES = ("kafka", "quorate")
BROKER, SET, DELETE = 4, 0, 1
VALUES = (
    # (key, value): each is set for broker 1 and for all brokers, and only validated
    ("num.replica.fetchers", "3"),
    ("num.replica.fetchers", "2"),
    ("num.replica.fetchers", "0"),
    ("num.replica.fetchers", "x"),
    ("log.cleaner.threads", "2"),
    ("log.cleaner.threads", "9"),
    ("log.cleaner.threads", "0"),
    ("log.cleaner.dedupe.buffer.size", "1000000"),
    ("log.cleaner.dedupe.buffer.size", "2000000"),
    ("log.cleaner.enable", "false"),
    ("log.cleanup.policy", "shred"),
    ("log.cleanup.policy", "compact"),
    ("log.dirs", "/x"),
    ("log.flush.interval.ms", "-3"),
    ("log.index.size.max.bytes", "3"),
    ("log.message.timestamp.type", "Foo"),
    ("log.preallocate", "maybe"),
    ("log.retention.hours", "5"),
    ("log.retention.minutes", "5"),
    ("log.retention.ms", "-5"),
    ("log.retention.ms", "0"),
    ("log.retention.ms", "1000"),
    ("log.roll.hours", "2"),
    ("log.roll.jitter.ms", "-1"),
    ("log.roll.jitter.ms", "5"),
    ("log.roll.ms", "0"),
    ("log.segment.bytes", "100"),
    ("max.connection.creation.rate", "0"),
    ("max.connections", "0"),
    ("max.connections", "100"),
    ("max.connections.per.ip", "0"),
    ("max.connections.per.ip.overrides", "127.0.0.1:100"),
    ("max.connections.per.ip.overrides", "a:b:c"),
    ("message.max.bytes", "-1"),
    ("min.insync.replicas", "0"),
    ("node.id", "3"),
    ("producer.id.expiration.ms", "0"),
    ("ssl.keystore.location", "/x"),
    ("unclean.leader.election.enable", "perhaps"),
    ("leader.replication.throttled.rate", "1000"),
    ("leader.replication.throttled.rate", "-1"),
    ("compression.type", "lz4"),
    ("compression.type", "zip"),
)
REFUSED_HERE = (
    # docs/differences.md: Kafka accepts these, which would have no effect here.
    ("a.plugins.own", "x"),
    ("num.io.threads", "3"),
    ("background.threads", "11"),
    ("listener.name.plaintext.max.connections", "5"),
)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, OneNode]]:
    if reason := missing():
        pytest.skip(reason)
    root = tmp_path_factory.mktemp("broker-configs")
    with (
        OneNode(root / "kafka", KAFKA).running() as theirs,
        OneNode(root / "quorate", QUORATE).running() as ours,
    ):
        yield {"kafka": theirs, "quorate": ours}


def altered(
    connection: Connection, name: str, *changes: tuple[str, str | None], validate_only: bool = False
) -> int:
    """Set the configs of a broker, or delete those without a value. Return the error."""
    resource = IncrementalAlterConfigsResource(
        resource_type=BROKER,
        resource_name=name,
        configs=tuple(
            IncrementalAlterableConfig(
                name=key, config_operation=DELETE if text is None else SET, value=text
            )
            for key, text in changes
        ),
    )
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=validate_only)
    answer: Any = connection.ask(request, 1)
    return int(answer.responses[0].error_code)


def described(connection: Connection, name: str) -> dict[str, Any]:
    """Return the description of each dynamic key: value, source, flags, type and synonyms."""
    resource = DescribeConfigsResource(
        resource_type=BROKER, resource_name=name, configuration_keys=None
    )
    request = DescribeConfigsRequest(resources=(resource,), include_synonyms=True)
    answer: Any = connection.ask(request, 4)
    (result,) = answer.results
    assert result.error_code == 0
    return {
        each.name: (
            each.value,
            each.config_source,
            each.read_only,
            each.is_sensitive,
            each.config_type,
            [(one.name, one.value, one.source) for one in each.synonyms],
        )
        for each in result.configs
        if each.name in DYNAMIC_KEYS
    }


@pytest.mark.parametrize("name", ["1", ""], ids=["one", "all"])
def test_values_are_refused_alike(nodes: dict[str, OneNode], name: str) -> None:
    errors = {}
    for side in SIDES:
        with closing(nodes[side].connect()) as connection:
            errors[side] = [
                (*pair, altered(connection, name, pair, validate_only=True)) for pair in VALUES
            ]
    assert errors["quorate"] == errors["kafka"]
    assert {0, 42} == {error for _, _, error in errors["kafka"]}


def test_keys_that_would_have_no_effect_are_refused_here(nodes: dict[str, OneNode]) -> None:
    for side, expected in (("kafka", 0), ("quorate", 42)):
        with closing(nodes[side].connect()) as connection:
            for pair in REFUSED_HERE:
                assert altered(connection, "1", pair, validate_only=True) == expected, pair


def states_of(connection: Connection, side: str) -> list[dict[str, Any]]:
    """Return the described configs before each of some changes and after them."""

    def seen() -> dict[str, Any]:
        return {name: described(connection, name) for name in ("1", "")}

    states = [seen()]
    for name, *changes in (
        ("", ("log.retention.ms", "5000"), ("num.replica.fetchers", "2")),
        ("1", ("log.retention.ms", "6000"), ("log.roll.ms", "4000")),
        ("", ("leader.replication.throttled.rate", "77")),
        ("1", ("follower.replication.throttled.rate", "78")),
        ("1", ("num.replica.fetchers", "4")),
    ):
        assert altered(connection, str(name), *changes) == 0, (side, changes)
        wait_for(lambda: seen() != states[-1], f"{side} applies {changes}")
        states.append(seen())
    pool = "num.replica.fetchers"
    assert altered(connection, "", (pool, None)) == 0
    wait_for(lambda: pool not in described(connection, ""), f"{side} deletes {pool}")
    assert altered(connection, "1", (pool, None)) == 42, "from 4 to 1"
    return states


def test_the_described_configs_are_alike(nodes: dict[str, OneNode]) -> None:
    """Before the changes, after them, and after the deletion of a pool's threads in two steps."""
    found = {}
    for side in SIDES:
        with closing(nodes[side].connect()) as connection:
            found[side] = states_of(connection, side)
    for ours, theirs in zip(found["quorate"], found["kafka"], strict=True):
        for name, configs in theirs.items():
            assert configs == {key: ours[name].get(key) for key in configs}


def configs(node: OneNode, program: Program, *arguments: str) -> Any:
    at = ("--bootstrap-server", f"127.0.0.1:{node.port}", "--entity-type", "brokers")
    return program.run("configs", *at, *arguments)


@pytest.mark.parametrize("entity", [("--entity-name", "1"), ("--entity-default",)])
@pytest.mark.parametrize("program", [KAFKA, QUORATE], ids=["kafkas-tool", "our-tool"])
def test_the_tools_change_a_broker(
    nodes: dict[str, OneNode], program: Program, entity: tuple[str, ...]
) -> None:
    node = nodes["quorate"]
    key = "max.connections=4321"
    added = configs(node, program, *entity, "--alter", "--add-config", key)
    assert added.code == 0, added.errors
    assert added.lines[-1].startswith("Completed updating")

    def shown() -> str:
        return "\n".join(configs(node, program, *entity, "--describe").lines)

    wait_for(lambda: key in shown(), "the config is described")
    refused = configs(node, program, *entity, "--alter", "--add-config", "a.plugins.own=1")
    assert refused.code != 0
    assert "would have no effect" in refused.errors + "\n".join(refused.lines)
    deleted = configs(node, program, *entity, "--alter", "--delete-config", "max.connections")
    assert deleted.code == 0, deleted.errors
    wait_for(lambda: key not in shown(), "the config is deleted")
