"""The DescribeUserScramCredentials and AlterUserScramCredentials messages (KIP-554)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.quorum.protocol.field_bounds import (
    CLIENT_TEXT,
    ERROR_TEXT,
    MAX_CONTROLLER_ELEMENTS,
    RESOURCES,
    SCRAM_BYTES,
    USER_NAME,
)
from quorate.quorum.protocol.wire import Message, wire
from quorate.quorum.seams import Buffer


@dataclass(frozen=True, slots=True, kw_only=True)
class UserName:
    """A user whose credentials are to be described."""

    name: str = wire("string", bound=CLIENT_TEXT)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeUserScramCredentialsRequest(Message):
    """Asks for the credentials of some users. None, or no users, means all users."""

    API_KEY: ClassVar[int] = 50
    users: tuple[UserName, ...] | None = wire(nullable="0+", count=RESOURCES)


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialInfo:
    """One credential of a user: its mechanism and its number of iterations."""

    mechanism: int = wire("int8")
    iterations: int = wire("int32")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeUserScramCredentialsResult:
    """The credentials of one user."""

    user: str = wire("string")
    error_code: int = wire("int16", default=0)
    error_message: str | None = wire("string", nullable="0+", bound=ERROR_TEXT, default=None)
    credential_infos: tuple[CredentialInfo, ...] = wire(default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeUserScramCredentialsResponse(Message):
    """The credentials of the users."""

    API_KEY: ClassVar[int] = 50
    throttle_time_ms: int = wire("int32", default=0)
    error_code: int = wire("int16", default=0)
    error_message: str | None = wire("string", nullable="0+", bound=ERROR_TEXT, default=None)
    results: tuple[DescribeUserScramCredentialsResult, ...] = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramCredentialDeletion:
    """A credential to remove: the user, and the mechanism (1 SHA-256, 2 SHA-512)."""

    name: str = wire("string", bound=USER_NAME)
    mechanism: int = wire("int8")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramCredentialUpsertion:
    """A credential to set. The client has salted the password."""

    name: str = wire("string", bound=USER_NAME)
    mechanism: int = wire("int8")
    iterations: int = wire("int32")
    salt: Buffer = wire("bytes", bound=SCRAM_BYTES)
    salted_password: Buffer = wire("bytes", bound=SCRAM_BYTES)

    def __repr__(self) -> str:
        """Return the fields without the secret ones."""
        return (
            f"ScramCredentialUpsertion(name={self.name!r}, mechanism={self.mechanism}, "
            f"iterations={self.iterations}, [hidden])"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterUserScramCredentialsRequest(Message):
    """Removes and sets credentials of users."""

    API_KEY: ClassVar[int] = 51
    MAX_ELEMENTS: ClassVar[int] = MAX_CONTROLLER_ELEMENTS
    deletions: tuple[ScramCredentialDeletion, ...] = wire(count=RESOURCES)
    upsertions: tuple[ScramCredentialUpsertion, ...] = wire(count=RESOURCES)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterUserScramCredentialsResult:
    """The outcome for one user."""

    user: str = wire("string")
    error_code: int = wire("int16", default=0)
    error_message: str | None = wire("string", nullable="0+", bound=ERROR_TEXT, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterUserScramCredentialsResponse(Message):
    """The outcome for each user."""

    API_KEY: ClassVar[int] = 51
    throttle_time_ms: int = wire("int32", default=0)
    results: tuple[AlterUserScramCredentialsResult, ...] = wire()
