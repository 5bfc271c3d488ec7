"""What a check of a directory says: one finding per line, each with its way out."""

from __future__ import annotations

import enum
from dataclasses import dataclass

UNKNOWN = -1


class Kind(enum.Enum):
    TORN = "torn"
    """An interrupted write that nobody acknowledged: the next start, or a repair, cuts it."""
    DERIVED = "derived"
    """Wrong, but the rest says it all again: the next start, or a repair, makes it anew."""
    DAMAGED = "damaged"
    """May have been acknowledged: never changed by a repair."""
    NOTE = "note"
    """Nothing is wrong."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    kind: Kind
    path: str
    what: str
    way_out: str = ""
    position: int = UNKNOWN
    offset: int = UNKNOWN

    def __str__(self) -> str:
        where = self.path
        if self.position != UNKNOWN:
            where += f": byte {self.position}"
        if self.offset != UNKNOWN:
            where += f", offset {self.offset}"
        return f"{where}: {self.kind.value}: {self.what}" + (
            f"; {self.way_out}" if self.way_out else ""
        )
