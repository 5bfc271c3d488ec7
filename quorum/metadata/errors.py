"""The errors of metadata records and images.

None is retriable, because the same bytes fail again.
"""

from __future__ import annotations


class MetadataError(Exception):
    """Base of all errors about metadata records and images."""

    retriable = False


class UnknownRecord(MetadataError):
    """A record type or record version that this version of Quorate does not know.

    `name` is Kafka's name of the type, or None if the type is unknown."""

    def __init__(self, api_key: int, version: int, name: str | None) -> None:
        self.api_key = api_key
        self.version = version
        self.name = name
        known = f"{name} version {version}" if name else f"record type {api_key} version {version}"
        super().__init__(
            f"{known} is unknown: it was written at a newer metadata.version or by a feature that "
            "Quorate does not have; read it with the version that wrote it"
        )


class MalformedRecord(MetadataError):
    """Bytes that are not a metadata record, or whose frame version is unknown.

    If the CRC of the batch was checked, the bytes are as they were written."""


class ReplayError(MetadataError):
    """A record contradicts the image that it is replayed on.

    A node whose committed log holds such a record must stop, because every later image would be
    wrong.
    """
