"""Windows of tables: filters, sorting, bounds."""

from __future__ import annotations

import pytest

from quorate.cli.console.views.table import Row, Table
from quorate.cli.console.windows import MAX_ROWS, BadWindow, Window, window_of

ROWS: list[Row] = [("b", 2, (4, 5)), ("a", 10, ()), ("c", None, (5,))]
TABLE = Table(("name", "leader", "isr"), ROWS)


def names(**query: str) -> list[object]:
    given = {key.rstrip("_"): value for key, value in query.items()}
    return [row[0] for row in window_of(TABLE, Window.of(given))["rows"]]


def test_without_parameters_the_order_is_the_tables() -> None:
    assert names() == ["b", "a", "c"]


def test_rows_are_sorted_by_value_and_not_by_text() -> None:
    assert names(sort="leader") == ["c", "b", "a"]
    assert names(sort="leader", down="1") == ["a", "b", "c"]
    assert names(sort="isr") == ["a", "b", "c"]


def test_every_word_of_the_filter_must_be_part_of_the_row() -> None:
    assert names(filter="4,5 B") == ["b"]
    assert names(filter="none") == ["c"]
    assert names(filter="b 10") == []


def test_a_window_counts_all_rows_and_holds_its_own() -> None:
    found = window_of(TABLE, Window.of({"filter": "5", "from": "1", "limit": "1"}))
    assert (found["total"], found["matching"], found["from"]) == (3, 2, 1)
    assert found["rows"] == [("c", None, (5,))]


@pytest.mark.parametrize(
    "query",
    [
        {"limit": str(MAX_ROWS + 1)},
        {"from": "-1"},
        {"from": "x"},
        {"filter": "x" * 201},
        {"other": "1"},
    ],
    ids=str,
)
def test_a_wrong_parameter_is_refused(query: dict[str, str]) -> None:
    with pytest.raises(BadWindow, match=next(iter(query))):
        Window.of(query)


def test_an_unknown_column_is_refused() -> None:
    with pytest.raises(BadWindow, match="no column 'age'"):
        window_of(TABLE, Window(sort="age"))
