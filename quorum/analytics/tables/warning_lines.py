"""The rows of the table `warnings` as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

MAX_LINES = 10
"""Maximum number of lines. The last one counts the rows that are left out."""


def warning_lines(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return one line per error, and one that counts the notes. Notes are common in sound logs."""
    said = list(rows)
    errors = [row for row in said if row["severity"] == "error"]
    lines = [f"error: {row['kind']}: {row['detail']}" for row in errors[:MAX_LINES]]
    if len(errors) > MAX_LINES:
        lines.append(f"and {len(errors) - MAX_LINES} more errors, in the table `warnings`")
    if notes := len(said) - len(errors):
        kinds = ", ".join(sorted({row["kind"] for row in said if row["severity"] != "error"}))
        lines.append(f"{notes} note{'s' * (notes > 1)} in the table `warnings`: {kinds}")
    return lines
