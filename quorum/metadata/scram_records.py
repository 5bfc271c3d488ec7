"""Kafka's records of SCRAM credentials (KIP-554, KIP-900).

A credential is as good as a password against this cluster. The repr of its record therefore hides
its salt and keys, because errors and log lines show records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.quorum.metadata.records import MetadataRecord
from quorate.quorum.protocol.field_bounds import STORED_BYTES, STORED_TEXT
from quorate.quorum.protocol.wire import wire
from quorate.quorum.seams import Buffer


@dataclass(frozen=True, slots=True, kw_only=True)
class UserScramCredentialRecord(MetadataRecord):
    """Sets the credential of a user for one mechanism: 1 is SCRAM-SHA-256, 2 is SCRAM-SHA-512."""

    API_KEY: ClassVar[int] = 11
    name: str = wire("string", bound=STORED_TEXT)
    mechanism: int = wire("int8")
    salt: Buffer = wire("bytes", bound=STORED_BYTES)
    stored_key: Buffer = wire("bytes", bound=STORED_BYTES)
    server_key: Buffer = wire("bytes", bound=STORED_BYTES)
    iterations: int = wire("int32")

    def __repr__(self) -> str:
        """Return the fields without the secret ones."""
        return (
            f"UserScramCredentialRecord(name={self.name!r}, mechanism={self.mechanism}, "
            f"iterations={self.iterations}, [hidden])"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveUserScramCredentialRecord(MetadataRecord):
    """Removes the credential of a user for one mechanism."""

    API_KEY: ClassVar[int] = 22
    name: str = wire("string", bound=STORED_TEXT)
    mechanism: int = wire("int8")


SCRAM_TYPES: dict[int, type[MetadataRecord]] = {
    record.API_KEY: record
    for record in (UserScramCredentialRecord, RemoveUserScramCredentialRecord)
}
"""The record classes of this module by api key."""
