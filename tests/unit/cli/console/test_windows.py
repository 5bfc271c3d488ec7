"""Windows of tables: filters, sorting, bounds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from quorate.cli.console import windows
from quorate.cli.console.slices import in_slices
from quorate.cli.console.views.table import Row, Table
from quorate.cli.console.windows import MAX_ROWS, STEP_ROWS, BadWindow, Window, window_of
from quorate.quorum.incremental_work import IncrementalWork, finished

ROWS: list[Row] = [("b", 2, (4, 5)), ("a", 10, ()), ("c", None, (5,))]
TABLE = Table(("name", "leader", "isr"), ROWS)


def names(**query: str) -> list[object]:
    given = {key.rstrip("_"): value for key, value in query.items()}
    return [row[0] for row in finished(window_of(TABLE, Window.of(given)))["rows"]]


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
    found = finished(window_of(TABLE, Window.of({"filter": "5", "from": "1", "limit": "1"})))
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
        finished(window_of(TABLE, Window(sort="age")))


LARGE = Table(
    ("topic", "partition", "lag"),
    [(f"topic-{number % 700}", number, number * 7919 % 1000) for number in range(30_000)],
)
"""The replicas of 10,000 partitions."""


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("first", [0, 150, 12_345, 29_950, 31_000])
def test_a_large_table_is_sorted_as_in_one_step(descending: bool, first: int) -> None:
    for place, column in enumerate(LARGE.columns):
        window = Window(sort=column, descending=descending, first=first)
        found = finished(window_of(LARGE, window))
        rows = list(LARGE.rows)
        rows.sort(key=lambda row: windows.order_of(row[place]), reverse=descending)
        assert found["rows"] == rows[first : first + MAX_ROWS], column
        assert (found["matching"], found["total"]) == (30_000, 30_000)


def test_no_step_handles_more_than_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    handled = 0

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def count(*arguments: Any) -> Any:
            nonlocal handled
            handled += 1
            return function(*arguments)

        return count

    monkeypatch.setattr(windows, "matches", counted(windows.matches))
    monkeypatch.setattr(windows, "order_of", counted(windows.order_of))
    steps = window_of(LARGE, Window.of({"filter": "topic", "sort": "lag", "from": "29900"}))
    counts = []
    for _ in steps:
        counts.append(handled)
        handled = 0
    assert counts == [STEP_ROWS] * 30 + [0] * 14, "two passes, and the skipped rows"
    assert handled == 0


async def test_two_viewers_of_large_tables_take_turns() -> None:
    turns: list[str] = []

    def steps(viewer: str) -> IncrementalWork[str]:
        for _ in range(3):
            turns.append(viewer)
            yield
        return viewer

    assert [*await asyncio.gather(in_slices(steps("a")), in_slices(steps("b")))] == ["a", "b"]
    assert turns == ["a", "b"] * 3
