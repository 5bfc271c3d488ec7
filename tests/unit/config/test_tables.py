"""Quorate's tables of keys, compared with those of Kafka 4.1.1 (name, type, default, range)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from quorate.config.key import ConfigError, Key, Kind
from quorate.config.node_keys import NODE_KEYS
from quorate.config.topic_keys import TOPIC_KEYS

HERE = Path(__file__).parent
OURS = ("quorate.", "log.level", "log.format", "metrics.per.partition")
KIP_966_PART_2 = {"unclean.recovery.strategy"}
UNTIL_4_0 = {"leader.imbalance.per.broker.percentage"}
SINCE_4_2 = {"controller.quorum.auto.join.enable"}
# Kafka declares these as text and splits it later; an absent list is null here.
SPLIT_LATER = {"log.dirs", "controller.listener.names"}
REMOTE_STORAGE = ("remote.", "local.")
OF_THE_AUTHORIZER = {"super.users", "allow.everyone.if.no.acl.found"}
"""The keys that Kafka's authorizer reads itself, so that Kafka's table does not have them."""


def kafka_table(name: str) -> dict[str, tuple[str, str, str]]:
    """Return (type, default, range) of each key in a table that was dumped from Kafka's jars."""
    rows = [line.split("\t") for line in (HERE / name).read_text().splitlines()]
    return {row[0]: (row[1], row[2], row[3]) for row in rows}


KAFKA_NODE = kafka_table("kafka_4_1_1_node_keys.tsv")
KAFKA_TOPIC = kafka_table("kafka_4_1_1_topic_keys.tsv")
OUR_KEYS = [
    *(
        (key, KAFKA_NODE)
        for name, key in NODE_KEYS.items()
        if not name.startswith(OURS)
        and name not in SINCE_4_2 | KIP_966_PART_2 | UNTIL_4_0 | OF_THE_AUTHORIZER
    ),
    *((key, KAFKA_TOPIC) for name, key in TOPIC_KEYS.items() if name not in KIP_966_PART_2),
]


def identity(value: object) -> str:
    """Return the name of a key for the id of a parametrized test."""
    return value.name if isinstance(value, Key) else ""


@pytest.mark.parametrize(("key", "kafka"), OUR_KEYS, ids=identity)
def test_type_and_default_are_kafkas(key: Key, kafka: dict[str, tuple[str, str, str]]) -> None:
    kind, default, _ = kafka[key.name]
    if key.name not in SPLIT_LATER:
        assert key.kind.name == kind
    ours = key.kafka_default if key.kafka_default is not None else key.default
    if default in ("(null)", "(required)"):
        assert not ours
    else:
        assert (key.format(ours) or "") == default


@pytest.mark.parametrize(("key", "kafka"), OUR_KEYS, ids=identity)
def test_range_is_kafkas(key: Key, kafka: dict[str, tuple[str, str, str]]) -> None:
    allowed = kafka[key.name][2]
    match = re.match(r"\[(-?[\d.]+),\.\.\.(?:,(-?[\d.]+))?\]( or -1)?", allowed)
    if match is None:
        return
    low, high = match[1], match[2]
    assert key.parse(low) is not None
    with pytest.raises(ConfigError):
        key.parse(str(int(low) - (3 if match[3] else 1)))
    if high:
        assert key.parse(high) is not None
        with pytest.raises(ConfigError):
            key.parse(str(int(high) + 1))


@pytest.mark.parametrize(
    ("text", "described"),
    [
        (".5", "0.5"),
        ("5.", "5.0"),
        ("+1e3", "1000.0"),
        ("0.5d", "0.5"),
        ("0.5F", "0.5"),
        ("1e-4", "1.0E-4"),
        ("12345678", "1.2345678E7"),
        ("Infinity", "Infinity"),
    ],
)
def test_a_number_is_read_and_written_as_java_does(text: str, described: str) -> None:
    key = Key("a.number", Kind.DOUBLE, 0.0, "A number.")
    assert key.format(key.parse(text)) == described


@pytest.mark.parametrize("text", ["", "1_0", "inf", "nan", "NaN", "0x1p3", "1 0", "\u0661"])
def test_a_text_that_is_no_number_is_refused(text: str) -> None:
    """Java also reads NaN, which no comparison bounds, and hexadecimal numbers."""
    with pytest.raises(ConfigError):
        Key("a.number", Kind.DOUBLE, 0.0, "A number.").parse(text)


def test_the_blanks_around_a_value_are_those_of_java() -> None:
    key = TOPIC_KEYS["retention.ms"]
    assert key.parse("\t 5\x1f") == 5
    with pytest.raises(ConfigError):
        key.parse("5\u2003")
    with pytest.raises(ConfigError):
        TOPIC_KEYS["cleanup.policy"].parse("delete,\u00a0compact")


def test_every_topic_key_is_there_but_those_of_remote_storage() -> None:
    missing = set(KAFKA_TOPIC) - set(TOPIC_KEYS)
    assert all(name.startswith(REMOTE_STORAGE) for name in missing)


def test_every_departure_from_a_default_is_documented() -> None:
    text = (HERE.parents[2] / "docs" / "differences.md").read_text()
    departing = [key.name for key in NODE_KEYS.values() if key.kafka_default is not None]
    assert departing
    for name in departing:
        assert f"`{name}`" in text
    for name in NODE_KEYS:
        if name.startswith(OURS):
            assert f"`{name}`" in text


def test_every_synonym_is_a_node_key() -> None:
    for key in TOPIC_KEYS.values():
        assert all(name in NODE_KEYS for name, _ in key.synonyms), key.name
