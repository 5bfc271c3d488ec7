"""Kafka's records of features that Quorate does not have.

The only such feature is delegation tokens. Tools show the records, so that they can read the whole
log of an Apache Kafka cluster. A node refuses them with `UnknownRecord`, because
an image without them would be wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.quorum.metadata.records import MetadataRecord
from quorate.quorum.protocol.field_bounds import STORED_ELEMENTS, STORED_TEXT
from quorate.quorum.protocol.wire import wire


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationTokenRecord(MetadataRecord):
    """Creates or changes a delegation token (KIP-48). Times are wall times in milliseconds."""

    API_KEY: ClassVar[int] = 10
    owner: str = wire("string", bound=STORED_TEXT)
    requester: str = wire("string", bound=STORED_TEXT)
    renewers: tuple[str, ...] = wire("string", bound=STORED_TEXT, count=STORED_ELEMENTS)
    issue_timestamp: int = wire("int64")
    max_timestamp: int = wire("int64")
    expiration_timestamp: int = wire("int64")
    token_id: str = wire("string", bound=STORED_TEXT)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveDelegationTokenRecord(MetadataRecord):
    """Removes a delegation token."""

    API_KEY: ClassVar[int] = 26
    token_id: str = wire("string", bound=STORED_TEXT)


FOREIGN_TYPES: dict[int, type[MetadataRecord]] = {
    record.API_KEY: record
    for record in (
        DelegationTokenRecord,
        RemoveDelegationTokenRecord,
    )
}
"""The record classes that only tools can read, by api key."""
