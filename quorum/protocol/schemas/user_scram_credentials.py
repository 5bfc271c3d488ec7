"""The DescribeUserScramCredentials messages (KIP-554)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.quorum.protocol.field_bounds import CLIENT_TEXT, ERROR_TEXT, RESOURCES
from quorate.quorum.protocol.wire import Message, wire


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
