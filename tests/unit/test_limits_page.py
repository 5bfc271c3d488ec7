"""docs/limits.md says what the code does: every constant and key, with its value."""

from __future__ import annotations

import dataclasses
import importlib
import re
from pathlib import Path

import pytest

from quorate.config.node_keys import NODE_KEYS
from quorate.quorum.node_message_bounds import INT32_MAX
from quorate.quorum.protocol import field_bounds as bounds

PAGE = Path(__file__).parents[2] / "docs" / "limits.md"
CONSTANT = re.compile(r"`((?:quorum|broker|cli|config)/[\w/]+)\.py` `(\w+(?:\.\w+)*)`")
KEY = re.compile(r"`([a-z]+(?:\.[a-z]+)+)`")


def rows() -> list[list[str]]:
    """Return the cells of each row: bound, default, where, effect."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [each for each in cells if each[0] != "bound"]


def held(where: str) -> object:
    """Return the value in the code that a row names."""
    if constant := CONSTANT.search(where):
        module = importlib.import_module("quorate." + constant[1].replace("/", "."))
        value: object = module
        for name in constant[2].split("."):
            value = default_of(value, name) if isinstance(value, type) else getattr(value, name)
        return value
    key = KEY.search(where)
    assert key is not None, f"{where!r} names neither a constant nor a key"
    return NODE_KEYS[key[1]].default


def default_of(settings: type, name: str) -> object:
    """Return the default of a field of a dataclass."""
    (field,) = (each for each in dataclasses.fields(settings) if each.name == name)
    return field.default


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[2])
def test_the_page_gives_the_value_in_the_code(row: list[str]) -> None:
    assert len(row) == 4, "bound, default, where, what a client sees"
    _, default, where, effect = row
    assert effect
    value = held(where)
    assert isinstance(value, int | float)
    assert default == f"{value:,}"


def test_every_bound_has_one_row() -> None:
    places = [row[2] for row in rows()]
    assert len(places) == len(set(places)) > 10


def test_no_bound_of_a_kafka_message_is_missing() -> None:
    text = PAGE.read_text()
    missing = [
        name
        for name, bound in vars(bounds).items()
        if isinstance(bound, bounds.Bound)
        and bound.limit not in (bounds.MAX_STRING_BYTES, INT32_MAX)
        and f"`{name}.limit`" not in text
    ]
    assert not missing
