"""The results of a check of a stopped node's directory, one for each fault or note."""

from __future__ import annotations

import enum
from dataclasses import dataclass

UNKNOWN = -1
"""The value of `position` or `offset` if the result has none."""


class Kind(enum.Enum):
    """The meaning of a result for the data, and for a repair."""

    TORN = "torn"
    """An interrupted write or a missing segment above the trusted offset. In the metadata log, the
    node has not acknowledged these records. The next start cuts the log there. A repair also cuts
    the log there, unless the log has a DAMAGED result, too."""
    DERIVED = "derived"
    """A fault of a file that can be rebuilt from other files, or that a start can do without. The
    next start rebuilds, ignores or sets aside the file. A repair rebuilds only indexes and leader
    epochs, and only in a log without a DAMAGED result."""
    DAMAGED = "damaged"
    """Damage or loss of bytes that may have been acknowledged. A repair does not change a log that
    has such a result."""
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
    """The action that removes the fault, or an empty text if none is needed or known."""
    position: int = UNKNOWN
    """The position of the fault in the file, in bytes."""
    offset: int = UNKNOWN
    """The offset in the log at which the fault lies."""

    def __str__(self) -> str:
        where = self.path
        if self.position != UNKNOWN:
            where += f": byte {self.position}"
        if self.offset != UNKNOWN:
            where += f", offset {self.offset}"
        return f"{where}: {self.kind.value}: {self.what}" + (
            f"; {self.way_out}" if self.way_out else ""
        )
