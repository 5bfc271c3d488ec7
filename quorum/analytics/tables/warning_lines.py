"""The table `warnings` as lines for a terminal."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from quorate.quorum.analytics.tables.warnings import ERROR

MAX_LINES = 10
"""Maximum number of errors that have a line of their own."""


def warning_lines(warnings: DataFrame) -> list[str]:
    """Return one line for each of the first errors, one that counts the other errors, and one that
    counts the notes, which are common in sound logs.

    Run two Spark jobs. The driver receives a bounded number of rows."""
    of_error = f.col("severity") == ERROR
    first = warnings.where(of_error).orderBy("first_offset").limit(MAX_LINES).collect()
    counts = warnings.groupBy("severity", "kind").count().collect()
    errors = sum(row["count"] for row in counts if row["severity"] == ERROR)
    notes = sum(row["count"] for row in counts if row["severity"] != ERROR)
    lines = [f"error: {row['kind']}: {row['detail']}" for row in first]
    if errors > len(first):
        lines.append(f"and {errors - len(first):,} more errors, in the table `warnings`")
    if notes:
        kinds = ", ".join(sorted(row["kind"] for row in counts if row["severity"] != ERROR))
        lines.append(f"{notes:,} note{'s' * (notes > 1)} in the table `warnings`: {kinds}")
    return lines
