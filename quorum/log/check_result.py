"""The results of a check of a stopped node's directory, one for each fault or note."""

from __future__ import annotations

import enum
from dataclasses import dataclass

UNKNOWN = -1
"""The result has no byte position, or no offset."""


class Kind(enum.Enum):
    """The meaning of a result for the data, and for a repair."""

    TORN = "torn"
    """An interrupted write that was never acknowledged. The next start, or a repair, cuts it off.
    """
    DERIVED = "derived"
    """A fault of a file that can be rebuilt from other files, or that a start can do without. The
    next start settles it. A repair settles only indexes and leader epochs."""
    DAMAGED = "damaged"
    """Damage or loss of bytes that may have been acknowledged. A repair never changes them."""
    NOTE = "note"
    """A remark. Nothing has to be done."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One result. `str()` of it is the line that `quorate storage verify` prints."""

    kind: Kind
    path: str
    """The file, or the directory, that the result is about."""
    what: str
    """A phrase that follows the path: the fault."""
    way_out: str = ""
    """The action that removes the fault, empty if none is needed."""
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
