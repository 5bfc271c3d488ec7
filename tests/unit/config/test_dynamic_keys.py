"""The keys that can change at run time, compared with Kafka 4.1.1's own list, and their rules.

tests/ports/test_dynamic_keys.py shows that each of them is applied.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from quorate.config.dynamic_broker_keys import BROKER_KEYS, DYNAMIC_BROKER_KEYS
from quorate.config.dynamic_keys import (
    DYNAMIC_KEYS,
    SETTABLE,
    check_change,
    settings_with,
    why_not_settable,
)
from quorate.config.dynamic_tls_keys import DYNAMIC_TLS_KEYS
from quorate.config.key import ConfigError, Update
from quorate.config.loader import load
from quorate.config.node_keys import NODE_KEYS
from quorate.config.not_in_effect import why_not_in_effect
from quorate.config.refused_keys import may_be_refused
from quorate.config.tls_keys import TLS
from tests.unit.config.test_key_wiring import COMBINED

FILE = Path(__file__).parent / "kafka_4_1_1_dynamic_keys.tsv"
KAFKAS_MODES: dict[str, str] = {
    line.split("\t")[0]: line.split("\t")[1] for line in FILE.read_text().splitlines()
}
"""Kafka's DynamicBrokerConfig.dynamicConfigUpdateModes, dumped from its jars."""
FIXED_HERE = {
    "listeners",
    "listener.security.protocol.map",
    "sasl.enabled.mechanisms",
    *(key.name for key in TLS),  # but with the prefix of a listener: see DYNAMIC_TLS_KEYS
}
"""docs/differences.md says why these are read-only."""
NODE: dict[str, Any] = dict(load(None, environment={}, overrides=COMBINED, hostname="here"))


@pytest.mark.parametrize("name", KAFKAS_MODES)
def test_a_dynamic_key_of_kafka_is_dynamic_or_refused(name: str) -> None:
    if name in NODE_KEYS and name not in FIXED_HERE:
        assert DYNAMIC_KEYS[name].update.value == KAFKAS_MODES[name]
        return
    assert name not in DYNAMIC_KEYS
    assert name in FIXED_HERE or may_be_refused(name) or why_not_in_effect(name) is not None
    assert why_not_settable((name,)) is not None


def test_the_dynamic_keys_of_tls_are_those_of_kafka() -> None:
    assert {key.name for key in TLS} & KAFKAS_MODES.keys() == DYNAMIC_TLS_KEYS
    assert {KAFKAS_MODES[name] for name in DYNAMIC_TLS_KEYS} == {"per-broker"}


def test_no_other_key_is_dynamic() -> None:
    assert DYNAMIC_KEYS.keys() == {
        name for name, key in BROKER_KEYS.items() if key.update is not Update.READ_ONLY
    }
    later = {"unclean.recovery.strategy"}  # KIP-966, part 2
    assert DYNAMIC_KEYS.keys() <= KAFKAS_MODES.keys() | DYNAMIC_BROKER_KEYS.keys() | later
    for row in DYNAMIC_KEYS.values():
        assert BROKER_KEYS[row.name].update is row.update


def test_a_key_without_an_effect_cannot_be_set() -> None:
    for name in DYNAMIC_KEYS:
        assert (name in SETTABLE) == (why_not_in_effect(name) is None)
        assert (name in SETTABLE) == (why_not_settable((name,)) is None)


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (("log.retention.ms",), None),
        (("log.dirs", "log.retention.ms", "node.id"), "dynamically: log.dirs, node.id. Set them"),
        (("num.io.threads",), "Cannot set num.io.threads, .* one event loop serves"),
        (("ssl.provider",), "Cannot set ssl.provider, .* security"),
        (("replica.alter.log.dirs.io.max.bytes.per.second",), None),
        (("listener.name.x.ssl.keystore.location", "listener.name.x.ssl.client.auth"), None),
        (("ssl.keystore.location",), "only per-listener using the listener prefix"),
        (("listener.name.x.ssl.allow.dn.changes",), "dynamically: listener.name.x.ssl.allow.dn"),
        (("listener.name.x.sasl.enabled.mechanisms",), "dynamically: listener.name.x.sasl"),
        (("a.plugins.own",), "Cannot set a.plugins.own, .* no such property is known"),
    ],
)
def test_the_reason_of_a_refusal_is_named(names: tuple[str, ...], reason: str | None) -> None:
    found = why_not_settable(names)
    if reason is None:
        assert found is None
    else:
        assert found is not None
        assert re.search(reason, found)


def test_a_key_of_one_broker_cannot_be_set_for_all() -> None:
    name = "listener.name.x.ssl.keystore.location"
    reason = why_not_settable((name,), one_broker=False)
    assert reason is not None and "broker id must be specified" in reason
    settings, ignored = settings_with(NODE, {name: "/all"}, {})
    assert settings == NODE and list(ignored) == [name]
    assert settings_with(NODE, {}, {name: "/own"}) == ({**NODE, name: "/own"}, {})


def changed(**values: Any) -> dict[str, Any]:
    return {**NODE, **{name.replace("_", "."): value for name, value in values.items()}}


@pytest.mark.parametrize(
    ("before", "after", "allowed"),
    [
        # Kafka's limits of thread pools, as it answered: at most double, at least half
        ({"num_replica_fetchers": 1}, {"num_replica_fetchers": 2}, True),
        ({"num_replica_fetchers": 1}, {"num_replica_fetchers": 3}, False),
        ({"num_replica_fetchers": 5}, {"num_replica_fetchers": 2}, True),
        ({"num_replica_fetchers": 5}, {"num_replica_fetchers": 1}, False),
        ({"log_cleaner_threads": 1}, {"log_cleaner_threads": 2}, True),
        ({"log_cleaner_threads": 1}, {"log_cleaner_threads": 0}, False),
        ({"log_cleaner_threads": 1}, {"log_cleaner_threads": 9}, False),
        # one MiB for each thread of the cleaner
        ({}, {"log_cleaner_dedupe_buffer_size": 2_000_000}, True),
        ({"log_cleaner_threads": 2}, {"log_cleaner_dedupe_buffer_size": 2_000_000}, False),
        ({}, {"max_connections_per_ip": 0}, False),
        ({}, {"max_connections_per_ip": 0, "max_connections_per_ip_overrides": "::1:5"}, True),
        # only what changes is checked
        ({"log_cleaner_dedupe_buffer_size": 5}, {"max_connections": 7}, True),
    ],
)
def test_changes_that_kafka_refuses(
    before: dict[str, Any], after: dict[str, Any], allowed: bool
) -> None:
    old, new = changed(**before), changed(**{**before, **after})
    if allowed:
        check_change(old, new)
    else:
        with pytest.raises(ConfigError):
            check_change(old, new)


def test_the_nodes_own_value_overrides_the_value_of_all_brokers_and_the_file() -> None:
    name = "log.retention.ms"
    assert settings_with({**NODE, name: 5}, {}, {})[0][name] == 5
    assert settings_with({**NODE, name: 5}, {name: "6"}, {})[0][name] == 6
    assert settings_with({**NODE, name: 5}, {name: "6"}, {name: "7"})[0][name] == 7


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.plugins.own", "x"),
        ("node.id", "77"),
        ("num.io.threads", "3"),
        ("log.retention.ms", "soon"),
        ("log.retention.ms", "0"),
        ("log.roll.ms", "0"),
        ("log.roll.jitter.ms", "-1"),
        ("max.connections", "0"),
        ("max.connection.creation.rate", "0"),
    ],
)
def test_a_stored_config_that_cannot_be_applied_is_ignored(name: str, text: str) -> None:
    """An earlier version may have stored it."""
    settings, ignored = settings_with(NODE, {}, {name: text, "log.retention.bytes": "9"})
    assert settings == {**NODE, "log.retention.bytes": 9}
    assert ignored.keys() == {name}
