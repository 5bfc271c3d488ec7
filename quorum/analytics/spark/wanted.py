"""The offsets and record types that a query can use, derived from its conditions.

Conditions are Spark's filters. They are recognized by their class names, because Spark 4.0 has no
classes to import. A condition that is not recognized excludes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from quorate.quorum.analytics.log.first_pass import FOREVER
from quorate.quorum.analytics.log.segments import Slice


@dataclass(frozen=True, slots=True)
class Wanted:
    """The record types (None: all) and the inclusive range of offsets that a query can use."""

    types: frozenset[str] | None = None
    first_offset: int = 0
    last_offset: int = FOREVER

    def narrowed(self, condition: Any) -> Wanted:
        """Return the part that also satisfies `condition`, a Spark filter."""
        kind, column = type(condition).__name__, getattr(condition, "attribute", None)
        value = getattr(condition, "value", None)
        if column == ("type",) and kind in ("EqualTo", "In") and value is not None:
            types = frozenset((value,) if kind == "EqualTo" else value)
            return replace(self, types=types if self.types is None else types & self.types)
        if column == ("offset",) and isinstance(value, int):
            return self._within(*OFFSETS[kind](value)) if kind in OFFSETS else self
        return self

    def _within(self, first_offset: int, last_offset: int) -> Wanted:
        return replace(
            self,
            first_offset=max(self.first_offset, first_offset),
            last_offset=min(self.last_offset, last_offset),
        )

    def reaches(self, piece: Slice) -> bool:
        """Return True if the slice may contain rows in the range of offsets."""
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
