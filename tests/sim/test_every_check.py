"""Each text with which a check of the simulation fails stands in a test that makes the check fail.

The texts are the arguments of `Violation` and `require`. A test names a part of the text that it
expects. So a new check without a test fails here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sim.ablations.table import ABLATIONS

HERE = Path(__file__).parent
RAISERS = ("Violation", "require")
OWN_TESTS = "workloads"
"""Modules of this folder fail in similar words. Only the tests that import one count for it."""
SHORTEST = 6
"""The characters of the shortest part of a text that says which check it is."""
CHECKS = [
    *(each for each in sorted(HERE.rglob("*.py")) if each.parent != HERE),
    HERE / "run.py",
    HERE / "seeds.py",
]


def parts_of(node: ast.expr) -> list[str]:
    """Return the constant parts of a text that are long enough, without the spaces and commas at
    their ends."""
    values = node.values if isinstance(node, ast.JoinedStr) else [node]
    found = [
        " ".join(each.value.split()).strip(" ,;:.")
        for each in values
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    ]
    return [each for each in found if len(each) >= SHORTEST]


def texts(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the line and the parts of each text with which a check in `path` fails."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            parts = parts_of(node.args[-1]) if node.func.id in RAISERS and node.args else []
            if parts:
                yield node.lineno, parts


def strings_of(path: Path) -> frozenset[str]:
    """Return all strings of a test that may be a part of a text."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.JoinedStr | ast.Constant):
            for each in parts_of(node):
                words = re.sub(r"\\(.)", r"\1", each)
                found.update(part.strip(" ,;:.") for part in re.split(r"\.\*|\|", words))
    return frozenset(each for each in found if len(each) >= SHORTEST)


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def expected() -> dict[str, frozenset[str]]:
    """Return the strings of the tests of each module: those of the tests that import it, and what
    histories without a safeguard say. The module "" stands for those of all tests."""
    caught = frozenset(each.caught for each in ABLATIONS.values())
    found: dict[str, frozenset[str]] = {}
    for path in HERE.glob("test_*.py"):
        strings = strings_of(path)
        for module in ("", *imports(path)):
            found[module] = found.get(module, caught) | strings
    return found


def is_tested(parts: list[str], strings: frozenset[str]) -> bool:
    return any(part in each or each in part for part in parts for each in strings)


@pytest.fixture(scope="module")
def tests() -> dict[str, frozenset[str]]:
    return expected()


@pytest.mark.parametrize("path", CHECKS, ids=lambda path: str(path.relative_to(HERE)))
def test_each_check_has_a_test_in_which_it_fails(
    path: Path, tests: dict[str, frozenset[str]]
) -> None:
    module = ".".join(("tests.sim", *path.relative_to(HERE).with_suffix("").parts))
    strings = tests.get(module, tests[""]) if path.parent.name == OWN_TESTS else tests[""]
    untested = {line: parts for line, parts in texts(path) if not is_tested(parts, strings)}
    assert not untested, f"{path.relative_to(HERE)}: no test expects these texts: {untested}"


def test_a_text_without_a_test_is_found() -> None:
    parts = ["of two kings, only one can rule"]
    assert not is_tested(parts, frozenset({"of three kings", "only one rules"}))
    assert is_tested(parts, frozenset({"only one can"}))
