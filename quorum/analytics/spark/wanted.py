"""The rows that a query can use, derived from its conditions.

- Conditions on `offset`, and lower bounds of the time, exclude whole slices.
- A condition on a column that only some record types fill, such as `topic`, excludes the others
  before they are decoded. So does a condition on `type`.
- Equality with a column excludes rows before they are sent to Spark.

Conditions are Spark's filters. They are recognized by their class names, because Spark 4.0 has no
classes to import. A condition that is not recognized excludes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from quorate.quorum.analytics.log.first_pass import FOREVER
from quorate.quorum.analytics.log.segments import Slice
from quorate.quorum.analytics.spark.columns import FILLED_BY
from quorate.quorum.metadata.record_text import NAMES

EQUALITIES = ("EqualTo", "In")


@dataclass(frozen=True, slots=True)
class Wanted:
    """The record types (None: all), the inclusive range of offsets, the earliest time and the
    column values that a query can use."""

    types: frozenset[str] | None = None
    first_offset: int = 0
    last_offset: int = FOREVER
    first_ms: int | None = None
    values: tuple[tuple[str, frozenset[Any]], ...] = ()
    """Pairs of a column and its possible values."""

    def narrowed(self, condition: Any) -> Wanted:
        """Return the part that also satisfies `condition`, a Spark filter."""
        kind, path = type(condition).__name__, getattr(condition, "attribute", None)
        value: Any = getattr(condition, "value", None)
        if not isinstance(path, tuple) or len(path) != 1:
            return self
        column = path[0]
        if column == "offset":
            known = isinstance(value, int) and kind in OFFSETS
            return self._within(*OFFSETS[kind](value)) if known else self
        if column in TIMES:
            return self._since(kind, TIMES[column](value))
        if kind not in (*EQUALITIES, "IsNotNull") or (kind in EQUALITIES and value is None):
            return self
        chosen = self._of_types(TYPES_OF.get(column))
        if kind == "IsNotNull":
            return chosen
        values = frozenset((value,) if kind == "EqualTo" else value)
        if column == "type":
            return chosen._of_types(values)
        return replace(chosen, values=(*chosen.values, (column, values)))

    def _of_types(self, types: frozenset[str] | None) -> Wanted:
        if types is None:
            return self
        return replace(self, types=types if self.types is None else types & self.types)

    def _since(self, kind: str, at_ms: int | None) -> Wanted:
        if at_ms is None or kind not in ("EqualTo", "GreaterThan", "GreaterThanOrEqual"):
            return self
        return replace(self, first_ms=max(at_ms, self.first_ms or at_ms))

    def _within(self, first_offset: int, last_offset: int) -> Wanted:
        return replace(
            self,
            first_offset=max(self.first_offset, first_offset),
            last_offset=min(self.last_offset, last_offset),
        )

    def reaches(self, piece: Slice) -> bool:
        """Return True if the slice may contain rows that the query can use."""
        if self.first_ms is not None and piece.newest_ms < self.first_ms:
            return False
        if piece.snapshot is not None:
            return self.first_offset < piece.snapshot.end_offset <= self.last_offset + 1
        return piece.first_offset <= self.last_offset and self.first_offset < piece.end_offset


OFFSETS: dict[str, Callable[[int], tuple[int, int]]] = {
    "EqualTo": lambda value: (value, value),
    "GreaterThan": lambda value: (value + 1, FOREVER),
    "GreaterThanOrEqual": lambda value: (value, FOREVER),
    "LessThan": lambda value: (0, value - 1),
    "LessThanOrEqual": lambda value: (0, value),
}
"""For each comparison with an offset, the inclusive range of offsets that satisfy it."""


def _as_ms(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def _instant_as_ms(value: Any) -> int | None:
    if not isinstance(value, datetime):
        return None
    zoned = value if value.tzinfo else value.replace(tzinfo=UTC)
    return int(zoned.timestamp() * 1000) - 1  # rounded down


TIMES: Mapping[str, Callable[[Any], int | None]] = {
    "timestamp_ms": _as_ms,
    "timestamp": _instant_as_ms,
}
"""The columns with the time of a record, and the function that returns their values in ms."""


def _types_of() -> dict[str, frozenset[str]]:
    """Return, for each column that depends on the record type, the types that fill it."""
    columns = {column for fills in FILLED_BY.values() for column in fills}
    return {
        column: frozenset(
            NAMES[cls] for cls, fills in FILLED_BY.items() if column in fills and cls in NAMES
        )
        for column in columns - {"value"}
    }


TYPES_OF = _types_of()
"""The record types that fill a column. Rows about damage fill `value` and the remarks too."""
