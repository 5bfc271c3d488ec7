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
from quorate.quorum.protocol.layout import SIZE_BYTES, layout

HEAD_BYTES = 3
"""The length of frame version, type and version, one byte each."""
TOPIC_ID = "topic_id"
"""The field with the id of the topic that a record is about."""


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


def of_topics(
    beginnings: frozenset[int], framed: Framed, heads: Ints, kinds: dict[int, Kind | None]
) -> Mask:
    """Return a mask that is false for rows with the id of another topic.

    `beginnings` are the first eight bytes of the topic ids, as signed numbers. Another id with the
    same beginning, and a record with an unusual encoding, are not excluded."""
    mask: Mask = np.ones(len(framed), np.bool_)
    wanted = np.array(sorted(beginnings), np.int64)
    for head, kind in kinds.items():
        if kind is None or TOPIC_ID not in FILLED_BY.get(kind.cls, {}):
            continue
        rows = np.flatnonzero(heads == head)
        start = framed.value_start[rows] + HEAD_BYTES
        at = Cursors(framed.data, start, framed.value_end[rows], kind.version)
        for field in layout(kind.cls, kind.version, True).plain:
            if field.name == TOPIC_ID:
                break
            at.read(field, wanted=False)
        found = framed.data.numbers("int64", at.at)
        mask[rows] = np.isin(found, wanted) | ~at.ok | (at.at + SIZE_BYTES["uuid"] > at.end)
    return mask
