"""Encoding of metadata records with a check that every node can read them back.

Invariant: every value that the active controller appends decodes to the original record, with the
decoder that every node uses for replay. Otherwise the value would stop the active controller, and
then each of its successors at every start.
"""

from __future__ import annotations

from collections.abc import Sequence

from quorate.quorum.metadata.errors import MetadataError
from quorate.quorum.metadata.framing import decode_record, encode_record, preview
from quorate.quorum.metadata.records import MetadataRecord

MAX_RECORD_BYTES = 1 << 20
"""The maximum size of one record's value. The largest legitimate value is a registration with all
listeners and features, of a few kilobytes; a partition with 1,000 replicas has 28 kilobytes."""


class UnreadableRecord(MetadataError):
    """A record that is larger than MAX_RECORD_BYTES or does not decode to itself."""


def read_back(records: Sequence[MetadataRecord]) -> list[bytes]:
    """Return the encoded records, in order.

    Raise EncodeError if a record cannot be encoded. Raise UnreadableRecord or another MetadataError
    if it is too large or does not decode to itself.
    """
    values = []
    for record in records:
        value = encode_record(record)
        if len(value) > MAX_RECORD_BYTES:
            raise UnreadableRecord(
                f"a {type(record).__name__} of {len(value)} bytes is larger than "
                f"{MAX_RECORD_BYTES}: {preview(value)}"
            )
        if decode_record(value) != record:
            raise UnreadableRecord(
                f"a {type(record).__name__} does not decode to itself: {preview(value)}"
            )
        values.append(value)
    return values
