"""One configuration key: its type, default, allowed values and documentation.

A value is a Python bool, int, float, str, tuple of str, or None for Kafka's null. `parse` and
`format` convert from and to Kafka's text. The tables are in `node_keys.py` and `topic_keys.py`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TypeAlias

from quorate.config.java_numbers import double_of, double_text

Value: TypeAlias = bool | int | float | str | tuple[str, ...] | None

MAX_INT = 2**31 - 1
MAX_LONG = 2**63 - 1
MIB = 1_048_576
DAY_MS = 86_400_000
BLANKS = "".join(map(chr, range(ord(" ") + 1)))
"""The characters that Java's String.trim removes. Python also removes blanks of Unicode."""


class ConfigError(ValueError):
    """A setting that is invalid, missing or unknown, or a file that cannot be read. The message
    names it."""


class Kind(enum.IntEnum):
    """The type of a key, with Kafka's codes in DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    PASSWORD = 9


class Update(enum.Enum):
    """Kafka's dynamic update mode: the level at which a key may change while the node runs.

    A READ_ONLY key changes only with a restart. A PER_BROKER key can be set for one broker by its
    id. A CLUSTER_WIDE key can be set for one broker or for all."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


CLUSTER_WIDE = Update.CLUSTER_WIDE


Check = Callable[[Value], str | None]
"""Returns None if the value is allowed, and otherwise what it must be ("between 1 and 9").

`throttled_replicas`, `host_names` and `connections_by_address` are such checks."""

LOWEST = {Kind.INT: -(2**31), Kind.SHORT: -(2**15), Kind.LONG: -(2**63)}
HIGHEST = {Kind.INT: MAX_INT, Kind.SHORT: 2**15 - 1, Kind.LONG: MAX_LONG}
"""The largest value of each integer kind. LOWEST has the smallest."""


def at_least(low: float) -> Check:
    """Return a check for numbers >= `low`."""
    return lambda value: (
        None if isinstance(value, int | float) and value >= low else f"at least {low}"
    )


def between(low: float, high: float, *, also: int | None = None) -> Check:
    """Return a check for numbers from `low` to `high`, or equal to `also`."""
    allowed = f"between {low} and {high}" + ("" if also is None else f" or {also}")

    def check(value: Value) -> str | None:
        assert isinstance(value, int | float)
        return None if value == also or low <= value <= high else allowed

    return check


def one_of(*names: str) -> Check:
    """Return a check that a STRING, or each element of a LIST, is one of `names`."""
    allowed = "one of " + ", ".join(names)

    def check(value: Value) -> str | None:
        each = value if isinstance(value, tuple) else (value,)
        return None if all(item in names for item in each) else allowed

    return check


def some_of(*names: str) -> Check:
    """Return a check that a LIST is not empty and each of its elements is one of `names`."""
    element = one_of(*names)
    return lambda value: element(value) if value else "not empty, " + "some of " + ", ".join(names)


def is_number(text: str) -> bool:
    """Return True if `text` is a number from 0 to 2^31 - 1, of at most 10 decimal digits.

    str.isdigit alone accepts characters and lengths that int() refuses."""
    return text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) <= MAX_INT


def is_encodable(text: str) -> bool:
    """Return False if a part of `text` is no UTF-8. Python keeps such bytes of the environment as
    surrogates, which no message can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def throttled_replicas(value: Value) -> str | None:
    """Check for `*`, or for a list of `partition:broker` pairs."""
    assert isinstance(value, tuple)
    if value == ("*",):
        return None
    pairs = [item.split(":") for item in value]
    if all(len(pair) == 2 and is_number(pair[0]) and is_number(pair[1]) for pair in pairs):
        return None
    return "* or [partitionId]:[brokerId],[partitionId]:[brokerId],..."


def host_names(value: Value) -> str | None:
    """Check for a list of host names without ports, as the Host header of HTTP has them."""
    assert isinstance(value, tuple)
    if all(item and not any(c.isspace() or c in "/:@[]*" for c in item) for item in value):
        return None
    return "host names without ports: name,name,..."


def connections_by_address(value: Value) -> str | None:
    """Check for a text of `address:number` pairs with commas between them
    (max.connections.per.ip.overrides).

    Addresses are IP addresses and not host names."""
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
    """One configuration key. `doc` is its help text.

    `kafka_default` is the default of Kafka, if it differs (docs/differences.md). Otherwise it is
    None. An `internal` key is for tests: no response describes it to clients. `update` is only for
    node keys; topic keys can always be changed.

    `synonyms` of a topic key are (node key, factor) pairs. The default on a node is the value of
    the first of these node keys that has a value, times its factor. The node key's own default
    counts as a value unless it is None. A negative value is not multiplied."""

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
        """Return the typed value of Kafka's text, without BLANKS around it. Raise ConfigError if it
        is not allowed."""
        text = text.strip(BLANKS)
        if "\0" in text or not is_encodable(text):
            raise self.refused(text, "UTF-8 text without NUL")
        value = PARSERS[self.kind](self, text)
        allowed = None if self.check is None else self.check(value)
        if allowed is not None:
            raise self.refused(text, allowed)
        return value

    def refused(self, text: str, allowed: str) -> ConfigError:
        """Return a ConfigError that says what the value must be: "must be " and `allowed`. It never
        quotes a PASSWORD."""
        if self.kind is Kind.PASSWORD:
            return ConfigError(f"{self.name}: value [hidden] must be {allowed}")
        return ConfigError(f"{self.name}: value {text!r} must be {allowed}")

    def format(self, value: Value) -> str | None:
        """Return a typed value as Kafka's text, or None for null."""
        if value is None:
            return None
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, tuple):
            return ",".join(value)
        if isinstance(value, float):
            return double_text(value)
        return str(value)

    def normalized(self, text: str | None) -> str | None:
        """Return the text of the typed value, which Kafka describes: 7 for 007. A text that is not
        valid, or None, is returned unchanged."""
        try:
            return text if text is None else self.format(self.parse(text))
        except ConfigError:
            return text


def parse_boolean(key: Key, text: str) -> Value:
    """Return the value of true or false in any case. Raise ConfigError otherwise."""
    if text.lower() not in ("true", "false"):
        raise key.refused(text, "true or false")
    return text.lower() == "true"


def parse_integer(key: Key, text: str) -> Value:
    """Return the integer. Raise ConfigError if it does not fit the kind of the key."""
    try:
        value = int(text)
    except ValueError:
        raise key.refused(text, "a whole number") from None
    low, high = LOWEST[key.kind], HIGHEST[key.kind]
    if "_" in text or text != text.strip() or not low <= value <= high:
        raise key.refused(text, f"a whole number between {low} and {high}")
    return value


def parse_double(key: Key, text: str) -> Value:
    """Return the number. Raise ConfigError if it is not one."""
    try:
        return double_of(text)
    except ValueError:
        raise key.refused(text, "a number") from None


def parse_list(_key: Key, text: str) -> Value:
    """Return the elements of a comma-separated list, without blanks around them."""
    return tuple(item.strip(BLANKS) for item in text.split(",")) if text else ()


PARSERS: dict[Kind, Callable[[Key, str], Value]] = {
    Kind.BOOLEAN: parse_boolean,
    Kind.STRING: lambda _key, text: text,
    Kind.INT: parse_integer,
    Kind.SHORT: parse_integer,
    Kind.LONG: parse_integer,
    Kind.DOUBLE: parse_double,
    Kind.LIST: parse_list,
    Kind.PASSWORD: lambda _key, text: text,
}


def table(*keys: Key) -> dict[str, Key]:
    """Return the keys by name, sorted. No name may occur twice."""
    by_name = {key.name: key for key in sorted(keys, key=lambda key: key.name)}
    assert len(by_name) == len(keys), "a key is declared twice"
    return by_name
