"""The record types of many records, from the first bytes of their values."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from quorate.quorum.analytics.spark.columns import FILLED_BY, Fill
from quorate.quorum.analytics.spark.framed import Framed
from quorate.quorum.analytics.spark.vectors import Cursors, Ints, Mask
from quorate.quorum.metadata.framing import (
    FRAME_VERSION,
    READABLE_TYPES,
    READABLE_VERSIONS,
    TYPE_NAMES,
)

HEAD_BYTES = 3
"""The length of frame version, type and version, one byte each."""


class Kind(NamedTuple):
    """A record type and a version of it that this version of Quorate can read."""

    cls: type
    version: int
    name: str

    def fills(self, columns: Sequence[str]) -> dict[str, Fill]:
        """Return the way in which records of this kind fill each of the columns."""
        filled = FILLED_BY.get(self.cls, {})
        return {name: filled[name] for name in columns if name in filled}


def heads_of(framed: Framed) -> Ints:
    """Return frame version, type and version of each row as one number, or -1.

    Each of the three takes one byte in all records of present versions. Rows that differ get -1."""
    at = Cursors(framed.data, framed.value_start, framed.value_end)
    heads = (at.byte() << 16) | (at.byte() << 8) | at.byte()
    usual = framed.regular & (at.at <= at.end) & (heads & 0x808080 == 0)
    return np.where(usual, heads, -1)


@cache
def known(head: int) -> Kind | None:
    """Return the type and version for a head, or None if they are not known."""
    frame, api_key, version = head >> 16, head >> 8 & 0xFF, head & 0xFF
    cls: Any = READABLE_TYPES.get(api_key)
    if head < 0 or frame != FRAME_VERSION or cls is None or version > READABLE_VERSIONS[cls]:
        return None
    return Kind(cls, version, TYPE_NAMES[cls])


def of_types(types: frozenset[str], heads: Ints, kinds: dict[int, Kind | None]) -> Mask:
    """Return a mask that is false for the rows of other known types."""
    others = [head for head, kind in kinds.items() if kind and kind.name not in types]
    return ~np.isin(heads, others)
