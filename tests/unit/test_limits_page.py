"""docs/limits.md says what the code does: every constant and key, with its value.

A constant named MAX_* or *_LIMIT has a row, or not_input_bounds.txt says why it bounds no input."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import re
import typing
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorate.config.node_keys import NODE_KEYS
from quorate.quorum.node_message_bounds import INT32_MAX
from quorate.quorum.protocol import field_bounds as bounds

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "limits.md"
NO_BOUNDS = Path(__file__).parent / "not_input_bounds.txt"
FOLDERS = ("quorum", "broker", "cli/console")
NAMED_AS_BOUND = re.compile(r"_?MAX_\w+|\w+_LIMIT")
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
        annotated = typing.get_args(value)  # a field of node messages: the type and its bound
        return getattr(annotated[1], "most", None) if annotated else value
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


def constants() -> Iterator[tuple[str, str]]:
    """Yield (path, name) of each constant of a module whose name says that it is a bound."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for statement in ast.parse(path.read_text()).body:
                targets: list[ast.expr] = []
                if isinstance(statement, ast.Assign):
                    targets = statement.targets
                elif isinstance(statement, ast.AnnAssign):
                    targets = [statement.target]
                for target in targets:
                    for each in ast.walk(target):
                        if isinstance(each, ast.Name) and NAMED_AS_BOUND.fullmatch(each.id):
                            yield path.relative_to(ROOT).as_posix(), each.id


def no_bounds() -> dict[tuple[str, str], str]:
    """Return the constants that bound no input, each with its reason."""
    found: dict[tuple[str, str], str] = {}
    reason = ""
    for line in NO_BOUNDS.read_text().splitlines():
        if line.startswith("#"):
            reason = line.removeprefix("#").strip()
        elif line:
            path, name = line.split()
            found[path, name] = reason
    return found


def test_every_constant_that_is_named_as_a_bound_has_a_row_or_a_reason() -> None:
    with_row = {
        (f"{match[1]}.py", match[2].partition(".")[0])
        for row in rows()
        if (match := CONSTANT.search(row[2]))
    }
    named, excused = set(constants()), no_bounds()
    assert len(named) > 150
    missing = named - with_row - excused.keys()
    assert not missing, "docs/limits.md has no row, or not_input_bounds.txt no reason"
    assert not excused.keys() - named, "these constants do not exist"
    assert not excused.keys() & with_row, "these constants have a row"
    assert all(excused.values())
