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
KAFKA = (
    # compaction
    *(3330, 3587, 4529, 5413, 5490, 6030, 6264, 6266, 6568, 7098, 7322, 7385, 7400, 7441, 7467),
    *(8335, 8351, 8764, 9133, 9826, 12889, 13194, 13727, 13996, 14055, 16574, 17076),
    # eligible leaders; 20716 is a pull request
    *(16540, 18106, 18635, 19212, 19522, 20716),
    # follower reads
    *(9004, 13141, 13778, 14372, 14379, 15218),
    # throttles and quotas
    *(6937, 10779, 13614, 15080),
    *(6946, 9658, 9677, 9942, 9980, 10458, 14215, 14225, 14943, 16083),
    # log directories
    *(6949, 9087, 9654, 15391, 16082, 16157, 16234, 16297, 16365, 16424, 16583, 16606, 16709),
    *(16886, 16952, 17190, 19571),
    # registrations and configs
    *(5634, 8813, 12177, 13603, 13609, 16414, 17011, 17492),
)
"""The bugs of Kafka's replication and storage that have a row. Append a new one here and there."""
IDS = [f"R{each}" for each in range(1, 63)] + [f"A{each}" for each in range(1, 9)]
KAFKA_IDS = [f"K{each}" for each in KAFKA]
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
        if re.fullmatch(r"[RAK]\d+", cells[0]):
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


def names(test: str, docstring: str, row: Row) -> bool:
    if row.id[0] == "K":
        number = row.id[1:]
        if f"_kafka_{number}_" in test:
            return True
        return re.search(rf"\b(KAFKA-|PR ){number}\b", docstring) is not None
    return f"_{row.id.lower()}_" in test or re.search(rf"\b{row.id}\b", docstring) is not None


def test_every_bug_is_there_once() -> None:
    ids = [row.id for row in rows()]
    assert [each for each in ids if each[0] != "K"] == IDS
    assert sorted(each for each in ids if each[0] == "K") == sorted(KAFKA_IDS)


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
        assert names(name, docstring, row), f"{test} does not name {row.id}"
        told += f"{name} {docstring} "
    if row.id[0] == "K":
        return
    cited = [source for source in row.sources.split("; ") if source in told]
    assert cited or row.sources == NO_SOURCE, f"no test of {row.id} cites one of {row.sources}"


def test_every_scenario_stands_in_the_table() -> None:
    listed = {test for row in rows() for test in row.tests}
    for path in sorted(HERE.glob("test_*.py")):
        for name in docstrings(f"tests/scenarios/{path.name}"):
            if re.match(r"test_[ra]\d+_", name):
                assert f"{path.name}::{name}" in listed, f"{path.name}::{name} is not listed"
