"""The pages of docs/protocol name only files, functions, tests and safeguards that exist.

The pages write names in these forms, in backquotes and outside of fenced blocks:

| form | what the test checks |
|---|---|
| `folder/file.py` | the file or folder exists below the root of the repository |
| `folder/file.py::name`, `folder/file.py::Class.name` | the file defines that name |
| `SAFEGUARD=name` | tests/sim/ablations has a safeguard of that name |
| a bare identifier, such as `epoch_start_offset` | the word occurs in the code |
| `[text](page.md)` | the link leads to a file |
| R17 | the catalogue of historic bugs has that row |

Where a page has the table `| rule | held by | guarded by |`, it has one row for each rule that the
page numbers.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.scenarios import test_catalogue
from tests.sim.ablations.table import ABLATIONS

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "protocol").glob("*.md"))
INDEX = "README.md"
SOURCES = ("broker", "cli", "config", "quorate", "quorum", "tests", "benchmarks")
TOP = (*SOURCES, "docs")
TABLE = "| rule | held by | guarded by |"

FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
BUG = re.compile(r"\bR[1-9][0-9]*\b")
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
RULE = re.compile(r"^(\d+)\. ", re.MULTILINE)
ROW = re.compile(r"^\| (\d+) \|", re.MULTILINE)


@cache
def words() -> frozenset[str]:
    """Return every identifier-like word in the Python files of the project."""
    files = (path for folder in SOURCES for path in (ROOT / folder).rglob("*.py"))
    return frozenset(word for path in files for word in WORD.findall(path.read_text()))


@cache
def defined(path: str) -> frozenset[str]:
    """Return the functions, classes, methods and assigned names of a module, dotted by class."""
    return frozenset(_names(ast.parse((ROOT / path).read_text()).body, ""))


def _names(body: list[ast.stmt], prefix: str) -> Iterator[str]:
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield prefix + name
            case ast.ClassDef(name=name):
                yield prefix + name
                yield from _names(node.body, f"{prefix}{name}.")
            case ast.Assign(targets=targets):
                yield from (prefix + each.id for each in targets if isinstance(each, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield prefix + name


def problem_of(span: str) -> str:
    """Return what is wrong with one name in backquotes, or an empty string."""
    if span.startswith("SAFEGUARD="):
        known = span.removeprefix("SAFEGUARD=") in ABLATIONS
        return "" if known else f"there is no safeguard {span}"
    path, separator, name = span.partition("::")
    in_tree = path.split("/")[0] in TOP and "/" in path and " " not in path
    if separator or in_tree:
        if not in_tree or not (ROOT / path).exists():
            return f"there is no file {path}: write the path from the root of the repository"
        return "" if not separator or name in defined(path) else f"{path} does not define {name}"
    if span.endswith(".py"):
        return f"{span} needs its path from the root of the repository"
    if IDENTIFIER.fullmatch(span) and not set(span.split(".")) <= words():
        return f"the word {span} does not occur in the code"
    return ""


def problems(text: str) -> list[str]:
    """Return what a page names that does not exist, and which rules lack a row."""
    prose = FENCE.sub("", text)
    found = [problem for span in SPAN.findall(prose) if (problem := problem_of(span))]
    links = [link for link in LINK.findall(prose) if "://" not in link]
    dead = [link for link in links if not (ROOT / "docs" / "protocol" / link).exists()]
    found += [f"the link to {link} leads nowhere" for link in dead]
    unknown = set(BUG.findall(prose)) - set(test_catalogue.IDS)
    found += [f"the catalogue of historic bugs has no {bug}" for bug in sorted(unknown)]
    if TABLE in prose:
        rules, _, table = prose.partition(TABLE)
        numbered, listed = RULE.findall(rules), ROW.findall(table)
        if numbered != listed:
            found.append(f"rules {numbered} are numbered, rows {listed} stand in the table")
    return found


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_a_page_names_what_exists(page: Path) -> None:
    assert problems(page.read_text()) == []


def test_the_index_links_every_page() -> None:
    linked = LINK.findall((ROOT / "docs" / "protocol" / INDEX).read_text())
    assert [page.name for page in PAGES if page.name not in (INDEX, *linked)] == []


@pytest.mark.parametrize(
    "text",
    [
        "`quorum/raft/no_such_file.py`",
        "`quorum/raft/vote.py::no_such_function`",
        "`quorum/raft/raft.py::Raft.no_such_method`",
        "`tests/unit/raft/test_votes.py::test_no_such_test`",
        "`vote.py`",
        "`vote.py::campaign`",
        "`SAFEGUARD=no-such-safeguard`",
        "`no_such_identifier_" + "anywhere`",
        "[no page](no-such-page.md)",
        "R63",
        f"1. A rule.\n2. A rule without a row.\n\n{TABLE}\n|---|---|---|\n| 1 | x | y |\n",
    ],
)
def test_what_does_not_exist_is_found(text: str) -> None:
    assert len(problems(text)) == 1


def test_what_exists_is_accepted() -> None:
    names = (
        "`quorum/raft/vote.py::campaign` `quorum/raft/epoch_limits.py::MAX_EPOCH_JUMP`",
        "`quorum/raft`",
        "`tests/unit/raft/test_votes.py` `SAFEGUARD=pre-vote` `epoch_start_offset` R17",
        "`quorum/raft/raft.py::Raft.flushed` [index](data-directory.md)",
        f"1. A rule.\n\n{TABLE}\n|---|---|---|\n| 1 | x | y |\n",
    )
    assert problems("\n".join(names)) == []
