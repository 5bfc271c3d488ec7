"""The marks of a test file, read from its text.

Each target of make runs the tests with some marks. pytest knows the marks of a test only after it
has imported the file, which takes seconds for all files, in every process. Therefore
`tests/conftest.py` asks this module which files cannot have a test that the target runs, and pytest
does not import them.

Invariant: `MarksOfFile.always` <= the marks of each test of the file <= `MarksOfFile.named`. The
conftest checks it for all files that are imported. The module does not read marks that are made in
another way than `pytest.mark.NAME`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from _pytest.mark.expression import Expression

MARKS = frozenset({"clients", "kafka", "long", "spark", "tools"})
"""The marks that the targets of make name."""
IMPORTED = {"tests.thirds": frozenset({"long"})}
"""The marks that tests get from a module that they import."""
NAMED = re.compile(r"\bmark\.(\w+)")
OF_ALL_TESTS = re.compile(r"^pytestmark = .*?(?=^[^\s\])])", re.MULTILINE | re.DOTALL)
"""The assignment that marks all tests of a file. It ends before the next line that is neither
indented nor a closing bracket."""
OPERATORS = frozenset({"and", "or", "not"})


class MarksOfFile(NamedTuple):
    always: frozenset[str]
    named: frozenset[str]

    def possible(self) -> Iterator[frozenset[str]]:
        """Yield each set of marks that a test of the file may have."""
        others = sorted(self.named - self.always)
        for count in range(len(others) + 1):
            for some in combinations(others, count):
                yield self.always.union(some)


def marks_of_text(text: str) -> MarksOfFile:
    """Return the marks of the tests in a file with this text."""
    imported = [marks for module, marks in IMPORTED.items() if f"from {module} import" in text]
    of_all = " ".join(OF_ALL_TESTS.findall(text))
    always = MARKS.intersection(NAMED.findall(of_all))
    return MarksOfFile(always, MARKS.intersection(NAMED.findall(text)).union(*imported))


@cache
def marks_of_file(path: Path) -> MarksOfFile:
    return marks_of_text(path.read_text())


def may_match(marks: MarksOfFile, expression: str) -> bool:
    """Return True if the expression of `pytest -m` may select a test of the file. The answer is
    True also for an expression that is malformed or has a word that is not in MARKS."""
    words = set(re.findall(r"\w+", expression)) - OPERATORS
    if not words or not words <= MARKS:
        return True
    try:
        compiled = Expression.compile(expression)
    except SyntaxError:
        return True  # pytest reports it
    return any(matches(compiled, each) for each in marks.possible())


def matches(expression: Expression, marks: Collection[str]) -> bool:
    return expression.evaluate(lambda name, /, **_: name in marks)
