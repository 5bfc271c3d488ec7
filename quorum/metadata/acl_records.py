"""Kafka's records of ACLs (KIP-801)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.records import MetadataRecord
from quorate.quorum.protocol.field_bounds import STORED_TEXT
from quorate.quorum.protocol.wire import wire


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessControlEntryRecord(MetadataRecord):
    """Adds an ACL. The codes are those of `protocol/acl_codes.py`."""

    API_KEY: ClassVar[int] = 18
    id: Uuid = wire("uuid")
    resource_type: int = wire("int8")
    resource_name: str = wire("string", bound=STORED_TEXT)
    pattern_type: int = wire("int8")
    principal: str = wire("string", bound=STORED_TEXT)
    host: str = wire("string", bound=STORED_TEXT)
    operation: int = wire("int8")
    permission_type: int = wire("int8")


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveAccessControlEntryRecord(MetadataRecord):
    """Removes the ACL with this id. Another id contradicts the image."""

    API_KEY: ClassVar[int] = 19
    id: Uuid = wire("uuid")


ACL_TYPES: dict[int, type[MetadataRecord]] = {
    record.API_KEY: record for record in (AccessControlEntryRecord, RemoveAccessControlEntryRecord)
}
"""The record classes of this module by api key."""
