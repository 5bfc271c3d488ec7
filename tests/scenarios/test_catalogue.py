"""The table in README.md is true: every historic bug once, each with tests that exist and name it,
or with a reason why it cannot happen here."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
IDS = [f"R{each}" for each in range(1, 63)] + [f"A{each}" for each in range(1, 9)]
CANNOT = "cannot happen: "
MIN_REASON_WORDS = 8
NO_SOURCE = "-"


class Row(NamedTuple):
    id: str
    what: str
    sources: str
    shown_by: str

    @property
    def tests(self) -> list[str]:
        return re.findall(r"`([^`]+::[^`]+)`", self.shown_by)


@cache
def rows() -> list[Row]:
    found = []
    for line in (HERE / "README.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if re.fullmatch(r"[RA]\d+", cells[0]):
            assert len(cells) == len(Row._fields), line
            found.append(Row(*cells))
    return found


@cache
def docstrings(path: str) -> dict[str, str]:
    """Of the tests in that file, by name; one line each."""
    return {
        node.name: " ".join((ast.get_docstring(node) or "").split())
        for node in ast.parse((ROOT / path).read_text()).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def names(test: str, docstring: str, bug: str) -> bool:
    return f"_{bug.lower()}_" in test or re.search(rf"\b{bug}\b", docstring) is not None


def test_every_bug_is_there_once() -> None:
    assert [row.id for row in rows()] == IDS


@pytest.mark.parametrize("row", rows(), ids=[row.id for row in rows()])
def test_what_a_row_says(row: Row) -> None:
    assert row.what and row.sources
    if not row.tests:
        assert row.shown_by.startswith(CANNOT)
        assert len(row.shown_by.removeprefix(CANNOT).split()) >= MIN_REASON_WORDS
        return
    told = ""
    for test in row.tests:
        path, name = test.split("::")
        docstring = docstrings(path if "/" in path else f"tests/scenarios/{path}").get(name)
        assert docstring is not None, f"there is no {test}"
        assert names(name, docstring, row.id), f"{test} does not name {row.id}"
        told += f"{name} {docstring} "
    cited = [source for source in row.sources.split("; ") if source in told]
    assert cited or row.sources == NO_SOURCE, f"no test of {row.id} cites one of {row.sources}"


def test_every_scenario_stands_in_the_table() -> None:
    listed = {test for row in rows() for test in row.tests}
    for path in sorted(HERE.glob("test_*.py")):
        for name in docstrings(f"tests/scenarios/{path.name}"):
            if re.match(r"test_[ra]\d+_", name):
                assert f"{path.name}::{name}" in listed, f"{path.name}::{name} is not listed"
