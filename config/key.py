"""One configuration key: its type, default, what it allows, and what it is for.

A value is a plain Python one (bool, int, float, str, tuple of str, or None for Kafka's null);
`parse` and `format` go from and to Kafka's text. The tables are `node_keys.py` and `topic_keys.py`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TypeAlias

Value: TypeAlias = bool | int | float | str | tuple[str, ...] | None

MAX_INT = 2**31 - 1
MAX_LONG = 2**63 - 1


class ConfigError(ValueError):
    """What is wrong with one setting: names the key, the value, and what it must be."""


class Kind(enum.IntEnum):
    """Kafka's type codes, as DescribeConfigs answers them."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7


class Update(enum.Enum):
    """Who may change the key while the node runs (Kafka's dynamic update modes)."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


Check = Callable[[Value], str | None]
"""None when the value is allowed, else how it must be ("between 1 and 9")."""

LOWEST = {Kind.INT: -(2**31), Kind.SHORT: -(2**15), Kind.LONG: -(2**63)}
HIGHEST = {Kind.INT: MAX_INT, Kind.SHORT: 2**15 - 1, Kind.LONG: MAX_LONG}


def at_least(low: float) -> Check:
    return lambda value: (
        None if isinstance(value, int | float) and value >= low else f"at least {low}"
    )


def between(low: float, high: float, *, also: int | None = None) -> Check:
    allowed = f"between {low} and {high}" + ("" if also is None else f" or {also}")

    def check(value: Value) -> str | None:
        assert isinstance(value, int | float)
        return None if value == also or low <= value <= high else allowed

    return check


def one_of(*names: str) -> Check:
    """For a STRING, and for each element of a LIST."""
    allowed = "one of " + ", ".join(names)

    def check(value: Value) -> str | None:
        each = value if isinstance(value, tuple) else (value,)
        return None if all(item in names for item in each) else allowed

    return check


def some_of(*names: str) -> Check:
    """For a LIST that must not be empty."""
    element = one_of(*names)
    return lambda value: element(value) if value else "not empty, " + "some of " + ", ".join(names)


def is_number(text: str) -> bool:
    """Return True if `text` is a decimal number that an int32 holds.

    str.isdigit alone accepts characters and lengths that int() refuses."""
    return text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= MAX_INT


def throttled_replicas(value: Value) -> str | None:
    """`*`, or `partition:broker` pairs."""
    assert isinstance(value, tuple)
    if value == ("*",):
        return None
    pairs = [item.split(":") for item in value]
    if all(len(pair) == 2 and is_number(pair[0]) and is_number(pair[1]) for pair in pairs):
        return None
    return "* or [partitionId]:[brokerId],[partitionId]:[brokerId],..."


def host_names(value: Value) -> str | None:
    """Names as they stand in a Host header, without a port."""
    assert isinstance(value, tuple)
    if all(item and not any(c.isspace() or c in "/:@[]*" for c in item) for item in value):
        return None
    return "host names without ports: name,name,..."


def connections_by_address(value: Value) -> str | None:
    """`address:number` pairs, for max.connections.per.ip.overrides."""
    allowed = "IPADDRESS:NUMBER,IPADDRESS:NUMBER,..."
    assert isinstance(value, str)
    for pair in value.split(",") if value else ():
        host, _, count = pair.strip().rpartition(":")
        try:
            ip_address(host.strip("[]"))
        except ValueError:
            return allowed
        if not is_number(count):
            return allowed
    return None


@dataclass(frozen=True, slots=True)
class Key:
    """`kafka_default` is set where our default departs from Kafka's (see docs/differences.md).

    `synonyms` of a topic key are the node keys that give its default: the first one that is set,
    times its factor; the last one gives the default."""

    name: str
    kind: Kind
    default: Value
    doc: str
    check: Check | None = None
    update: Update = Update.READ_ONLY
    kafka_default: Value = None
    synonyms: tuple[tuple[str, int], ...] = ()
    internal: bool = False

    def parse(self, text: str) -> Value:
        """The typed value of Kafka's text; ConfigError says what is allowed."""
        text = text.strip()
        value = PARSERS[self.kind](self, text)
        allowed = None if self.check is None else self.check(value)
        if allowed is not None:
            raise self.refused(text, allowed)
        return value

    def refused(self, text: str, allowed: str) -> ConfigError:
        return ConfigError(f"{self.name}: value {text!r} must be {allowed}")

    def format(self, value: Value) -> str | None:
        """Kafka's text of a typed value."""
        if value is None:
            return None
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, tuple):
            return ",".join(value)
        return str(value)


def parse_boolean(key: Key, text: str) -> Value:
    if text.lower() not in ("true", "false"):
        raise key.refused(text, "true or false")
    return text.lower() == "true"


def parse_integer(key: Key, text: str) -> Value:
    try:
        value = int(text)
    except ValueError:
        raise key.refused(text, "a whole number") from None
    low, high = LOWEST[key.kind], HIGHEST[key.kind]
    if "_" in text or not low <= value <= high:
        raise key.refused(text, f"a whole number between {low} and {high}")
    return value


def parse_double(key: Key, text: str) -> Value:
    try:
        return float(text)
    except ValueError:
        raise key.refused(text, "a number") from None


def parse_list(_key: Key, text: str) -> Value:
    return tuple(item.strip() for item in text.split(",")) if text else ()


PARSERS: dict[Kind, Callable[[Key, str], Value]] = {
    Kind.BOOLEAN: parse_boolean,
    Kind.STRING: lambda _key, text: text,
    Kind.INT: parse_integer,
    Kind.SHORT: parse_integer,
    Kind.LONG: parse_integer,
    Kind.DOUBLE: parse_double,
    Kind.LIST: parse_list,
}


def table(*keys: Key) -> dict[str, Key]:
    """By name, sorted; a name stands once."""
    by_name = {key.name: key for key in sorted(keys, key=lambda key: key.name)}
    assert len(by_name) == len(keys), "a key is declared twice"
    return by_name
