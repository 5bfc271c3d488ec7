"""The page docs/tables.md, made from the registry of the history tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from quorate.quorum.analytics.tables import TABLES, columns_in
from quorate.quorum.analytics.tables.descriptions import summary_of
from quorate.quorum.analytics.tables.warnings import KINDS

PAGE = Path(__file__).parents[2] / "docs" / "tables.md"
HEAD = """# The tables of a cluster's history

`make docs` writes this page from the docstrings of `quorum/analytics/tables`.
`DESCRIBE TABLE leadership` shows the same texts in Spark. Times are in UTC. An interval contains
its beginning and not its end.
"""


def page() -> str:
    """Return the page."""
    return HEAD + "".join(_section(name) for name in TABLES)


def _section(name: str) -> str:
    return "\n".join(_lines(name)) + "\n"


def _lines(name: str) -> Iterator[str]:
    yield f"\n## {name}\n"
    yield f"{summary_of(TABLES[name].make)}\n"
    yield "| column | type | meaning |"
    yield "|---|---|---|"
    for column in columns_in(name):
        kind = column.type.replace(",", ", ")
        yield f"| `{column.name}` | `{kind}` | {column.text} |"
    if name == "warnings":
        yield "\n| kind | severity |"
        yield "|---|---|"
        yield from (f"| `{kind}` | {severity} |" for kind, severity in KINDS.items())
