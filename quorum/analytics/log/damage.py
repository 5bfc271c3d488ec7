"""The damage that a reader of the log meets, and the two ways to treat it.

A strict reader raises DamagedLog. A permissive reader collects the damage and continues with the
next sound batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from quorate.quorum.analytics.log.errors import DamagedLog

DAMAGED_BATCH = "damaged-batch"
"""The bytes of a batch are damaged. Its records are lost."""
DAMAGED_RECORD = "damaged-record"
"""A record in a sound batch cannot be decoded."""
CONTRADICTION = "contradiction"
"""Records change objects that do not exist, because earlier records are missing."""
UNFINISHED = "unfinished"
"""Damage follows the begin of a metadata transaction without an end, so its end may be lost."""
GAP = "gap"
"""The offsets of two neighbouring batches do not continue each other."""
DIVERGENCE = "divergence"
"""Two files of one cluster have different committed records."""
CONFLICT = "conflict"
"""The logs of two nodes have records of different epochs at one offset, as after an election."""


@dataclass(frozen=True, slots=True)
class Damage:
    """Offsets [first_offset, end_offset) that cannot be read.

    `end_offset` is None if no sound batch follows. `text` says what is damaged, and what to do."""

    kind: str
    first_offset: int
    end_offset: int | None
    text: str


Found = Callable[[Damage], None]
"""Takes each damage that a reader meets. If it returns, the reader continues behind it."""


def refuse(damage: Damage) -> NoReturn:
    """Raise DamagedLog with the text of the damage. This is the strict reader's `Found`."""
    raise DamagedLog(damage.text)
