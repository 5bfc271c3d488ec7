"""docs/history.ipynb runs, and its outputs are those that it shows."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("pyspark", reason="needs `pip install 'quorate[spark]'`")

from tests.docs.notebook import NOTEBOOK, SPARK, cells, output, run, stored


def test_it_is_a_notebook() -> None:
    notebook = json.loads(NOTEBOOK.read_text())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    assert all(cell["outputs"] or "=" in "".join(cell["source"]) for cell in cells())


def test_the_cells_without_spark_show_what_they_make() -> None:
    ran = list(run(with_spark=False))
    assert len(ran) > 6 and SPARK not in "".join(each.source for each in ran)
    for each in ran:
        assert each.made == each.stored, f"run `python -m tests.docs.notebook`: {each.source}"


def test_a_cell_shows_its_last_expression() -> None:
    names: dict[str, object] = {}
    assert output("a = 1\na + 1", names) == "2"
    assert output("b = [a, 2]", names) is None
    assert output("b", names) == "[1,\n 2]"
    assert stored({"outputs": []}) is None
