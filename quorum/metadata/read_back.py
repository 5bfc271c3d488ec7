"""Encodes metadata records and reads each one back, before anything is appended.

Invariant: every value that the active controller appends decodes to the record that it was made
from, with the reader that every node replays it with. A value that a node could not read would stop
the active controller, and then each of its successors, at every start.
"""

from __future__ import annotations

from collections.abc import Sequence

from quorate.quorum.metadata.errors import MetadataError
from quorate.quorum.metadata.framing import decode_record, encode_record, preview
from quorate.quorum.metadata.records import MetadataRecord

MAX_RECORD_BYTES = 1 << 20
"""The largest value of one metadata record. The largest legitimate one, a registration with all of
its listeners and features, has a few kilobytes; a partition with 1,000 replicas has 28."""


class UnreadableRecord(MetadataError):
    """A record that no node could replay, if it were appended."""


def read_back(records: Sequence[MetadataRecord]) -> list[bytes]:
    """Return the encoded records, in order.

    Raise UnreadableRecord, EncodeError or another MetadataError if one of them cannot be encoded,
    is too large, or does not decode to itself."""
    values = [encode_record(record) for record in records]
    for record, value in zip(records, values, strict=True):
        if len(value) > MAX_RECORD_BYTES:
            raise UnreadableRecord(
                f"a {type(record).__name__} of {len(value)} bytes is larger than "
                f"{MAX_RECORD_BYTES}: {preview(value)}"
            )
        if decode_record(value) != record:
            raise UnreadableRecord(
                f"a {type(record).__name__} does not decode to itself: {preview(value)}"
            )
    return values
