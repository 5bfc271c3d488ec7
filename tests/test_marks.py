"""The marks that `tests/marks.py` reads are those that pytest sees. No selected test is lost."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.conftest import pytest_collection_modifyitems, pytest_ignore_collect
from tests.marks import MarksOfFile, marks_of_text, may_match

TESTS = Path(__file__).parent
STEPS = (
    "not (clients or spark or kafka or long or tools)",
    "(clients or spark) and not (kafka or long or tools)",
    "kafka and not long",
    "tools and not long",
    "long",
    "long and not kafka",
)


@pytest.mark.parametrize(
    ("text", "always", "named"),
    [
        ("def test(): ...\n", "", ""),
        ("pytestmark = pytest.mark.clients\n\nX = 1\n", "clients", "clients"),
        (
            "pytestmark = [\n    pytest.mark.spark,\n]\n@pytest.mark.long\ndef test(): ...\n",
            "spark",
            "spark long",
        ),
        (
            "pytestmark = [pytest.mark.kafka, pytest.mark.long]\nclass X:\n",
            "kafka long",
            "kafka long",
        ),
        ("pytest.param(1, marks=pytest.mark.tools)\n", "", "tools"),
        ("from tests.thirds import THIRDS\n", "", "long"),
    ],
)
def test_the_marks_of_a_text(text: str, always: str, named: str) -> None:
    assert marks_of_text(text) == MarksOfFile(frozenset(always.split()), frozenset(named.split()))


def test_a_file_is_left_out_only_if_none_of_its_tests_can_match() -> None:
    def matching(always: str, named: str) -> list[bool]:
        marks = MarksOfFile(frozenset(always.split()), frozenset(named.split()))
        return [may_match(marks, step) for step in STEPS]

    assert matching("", "") == [True, False, False, False, False, False]
    assert matching("", "clients") == [True, True, False, False, False, False]
    assert matching("clients", "clients long") == [False, True, False, False, True, True]
    assert matching("spark kafka", "spark kafka long") == [False, False, True, False, True, False]


@pytest.mark.parametrize("expression", ["", "asyncio", "long or asyncio", "long long", "long("])
def test_an_expression_that_is_not_understood_leaves_no_file_out(expression: str) -> None:
    assert may_match(marks_of_text(""), expression)


def test_marks_of_other_modules_are_known() -> None:
    """The text of a test file does not show a mark that it imports."""
    helpers = (each for each in TESTS.rglob("*.py") if not each.name.startswith("test_"))
    marking = {each for each in helpers if marks_of_text(each.read_text()).named}
    assert marking == {TESTS / "thirds.py"}


class Marked:
    """A test of a file that has no mark in its text."""

    def __init__(self, path: Path, *marks: str) -> None:
        self.path, self.nodeid = path, path.name
        self._marks = [getattr(pytest.mark, each).mark for each in marks]

    def iter_markers(self) -> list[pytest.Mark]:
        return self._marks

    def get_closest_marker(self, name: str) -> None:
        return None


def test_a_mark_that_the_text_does_not_show_is_an_error(tmp_path: Path) -> None:
    """A step that asks for the mark would lose the test."""
    path = tmp_path / "test_it.py"
    path.write_text("def test_it(): ...\n")
    pytest_collection_modifyitems([Marked(path), Marked(path, "parametrize")])  # type: ignore[list-item]
    with pytest.raises(pytest.UsageError, match=r"test_it.py has the marks \['long'\]"):
        pytest_collection_modifyitems([Marked(path, "long")])  # type: ignore[list-item]


def test_an_assignment_that_does_not_mark_all_tests_is_an_error(tmp_path: Path) -> None:
    """A step that leaves the mark out would lose the tests without it."""
    path = tmp_path / "test_it.py"
    path.write_text("pytestmark = pytest.mark.long\n\nX = 1\n")
    pytest_collection_modifyitems([Marked(path, "long")])  # type: ignore[list-item]
    with pytest.raises(pytest.UsageError, match=r"and \['long'\] for all tests"):
        pytest_collection_modifyitems([Marked(path)])  # type: ignore[list-item]


@pytest.mark.parametrize("argument", ["tests", "{}", "{}::test_it"])
def test_a_file_that_is_an_argument_is_never_left_out(argument: str, tmp_path: Path) -> None:
    path = tmp_path / "test_it.py"
    path.write_text("def test_it(): ...\n")

    def left_out(path: Path, expression: str) -> bool:
        option = SimpleNamespace(markexpr=expression)
        config = SimpleNamespace(option=option, args=[argument.format(path)])
        return bool(pytest_ignore_collect(path, config))  # type: ignore[arg-type]

    assert left_out(path, "long") == (argument == "tests")
    assert not left_out(path, "not long")
    assert not left_out(tmp_path, "long") and not left_out(tmp_path / "conftest.py", "long")
