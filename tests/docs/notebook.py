"""Runs the cells of docs/history.ipynb without Jupyter, and stores or compares their outputs.

Each cell's output is the text of its last expression, as Jupyter shows it. `python -m
tests.docs.notebook` writes the outputs, and needs Java for the cells with Spark.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "docs" / "history.ipynb"
SPARK = "SparkSession"
"""The cells from the first one with this name on need Spark."""


class Ran(NamedTuple):
    """One code cell that ran, with the output that the file has and the one that it made."""

    source: str
    stored: str | None
    made: str | None


def cells() -> list[dict[str, Any]]:
    """Return the code cells of the notebook."""
    found: list[dict[str, Any]] = json.loads(NOTEBOOK.read_text())["cells"]
    return [cell for cell in found if cell["cell_type"] == "code"]


def run(*, with_spark: bool) -> Iterator[Ran]:
    """Run the cells in order, in the directory of the notebook."""
    names: dict[str, Any] = {}
    for cell in cells():
        source = "".join(cell["source"])
        if SPARK in source and not with_spark:
            return
        with chdir(NOTEBOOK.parent):
            yield Ran(source, stored(cell), output(source, names))


def output(source: str, names: dict[str, Any]) -> str | None:
    """Run a cell and return the text of its last expression, or None if it has none."""
    tree = ast.parse(source)
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr):
        exec(compile(tree, NOTEBOOK.name, "exec"), names)
        return None
    tree.body.pop()
    exec(compile(tree, NOTEBOOK.name, "exec"), names)
    value = eval(compile(ast.Expression(last.value), NOTEBOOK.name, "eval"), names)
    return None if value is None else pretty(value)


def pretty(value: Any) -> str:
    """Return the text of a value, one line for each element of a list."""
    if isinstance(value, list):
        return "[" + ",\n ".join(map(repr, value)) + "]"
    return repr(value)


def stored(cell: dict[str, Any]) -> str | None:
    """Return the output that the file has for a cell, or None."""
    for each in cell["outputs"]:
        return "".join(each["data"]["text/plain"])
    return None


def write_outputs() -> None:
    """Run the notebook and store the outputs in its file."""
    notebook = json.loads(NOTEBOOK.read_text())
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, (cell, ran) in enumerate(zip(code, run(with_spark=True), strict=True), 1):
        cell["execution_count"] = number
        cell["outputs"] = []
        if ran.made is not None:
            result = {
                "data": {"text/plain": ran.made.splitlines(keepends=True)},
                "execution_count": number,
                "metadata": {},
                "output_type": "execute_result",
            }
            cell["outputs"] = [result]
    NOTEBOOK.write_text(json.dumps(notebook, indent=1) + "\n")


if __name__ == "__main__":
    write_outputs()
