"""The rows of the configs of brokers and topics: those that differ from the default first.

All functions are pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from quorate.cli.configs.command import SOURCES
from quorate.cli.console.views.table import Row
from quorate.config.sensitive import HIDDEN
from quorate.quorum.protocol.schemas.configs import DescribeConfigsResourceResult

CONFIGS = ("kind", "name", "key", "value", "source", "default")
DEFAULT = 5
"""The source of a config that nobody has set."""


@dataclass(frozen=True, slots=True)
class ConfigOwner:
    """A broker or a topic. `kind` is "broker" or "topic", and `name` the broker id or the topic."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class ConfigRows:
    """The rows of one owner: the configs that are set somewhere, and those with their default."""

    changed: tuple[Row, ...] = ()
    defaults: tuple[Row, ...] = ()


def rows_of(owner: ConfigOwner, configs: Sequence[DescribeConfigsResourceResult]) -> ConfigRows:
    """Return the rows of an owner's configs, in the order of the keys."""
    changed: list[Row] = []
    defaults: list[Row] = []
    for each in sorted(configs, key=lambda each: each.name):
        row = (
            owner.kind,
            owner.name,
            each.name,
            HIDDEN if each.is_sensitive else each.value,
            SOURCES.get(each.config_source, "UNKNOWN"),
            default_of(each),
        )
        (defaults if each.config_source == DEFAULT else changed).append(row)
    return ConfigRows(tuple(changed), tuple(defaults))


def default_of(config: DescribeConfigsResourceResult) -> str | None:
    """Return the default of a config, or None if it has none or is a secret. A default that belongs
    to another key has the form key=value: that of a topic may be set in units of a broker's key."""
    if config.is_sensitive or config.config_source == DEFAULT:
        return None if config.is_sensitive else config.value
    for each in config.synonyms:
        if each.source == DEFAULT:
            return each.value if each.name == config.name else f"{each.name}={each.value}"
    return None


def config_rows(found: Iterable[ConfigRows], most: int) -> tuple[list[Row], int]:
    """Return at most `most` rows, and the number of rows that are left out. All that differ from
    the default precede all others."""
    kept = list(found)
    rows = [row for each in kept for row in each.changed]
    rows += [row for each in kept for row in each.defaults]
    return rows[:most], max(0, len(rows) - most)
