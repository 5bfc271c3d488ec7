"""The messages AddRaftVoter and RemoveRaftVoter (KIP-853): changes of the voters of the metadata
quorum.

The leader of the quorum carries them out, one change at a time (`../../node/voter_admin.py`). A
request may omit `cluster_id`. The id of another cluster is refused with INCONSISTENT_CLUSTER_ID.

Both responses have these errors, besides those about the ids and addresses in the request:

- REQUEST_TIMED_OUT: the change was not committed in time and may still be committed, or it is not
  possible yet. The message says which. For example, another change is pending, or the new voter
  has not caught up.
- UNSUPPORTED_VERSION: kraft.version is 0, so the voters are those of the configuration.
- NOT_CONTROLLER: the node does not lead the quorum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.quorum.ids import Uuid
from quorate.quorum.protocol.field_bounds import (
    CLUSTER_ID,
    ERROR_TEXT,
    HOST,
    LISTENER_NAME,
    LISTENERS,
    MAX_CONTROLLER_ELEMENTS,
)
from quorate.quorum.protocol.wire import Message, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftVoterListener:
    """One listener of a voter. Other nodes connect to the first listener of the request."""

    name: str = wire("string", bound=LISTENER_NAME)
    host: str = wire("string", bound=HOST)
    port: int = wire("uint16")


@dataclass(frozen=True, slots=True, kw_only=True)
class AddRaftVoterRequest(Message):
    """Adds a controller to the voters. It must be an observer that has caught up.

    The answer waits for the commit of the change, for `timeout_ms` or 30 s, if that is less."""

    API_KEY: ClassVar[int] = 80
    MAX_ELEMENTS: ClassVar[int] = MAX_CONTROLLER_ELEMENTS
    cluster_id: str | None = wire("string", nullable="0+", bound=CLUSTER_ID, default=None)
    timeout_ms: int = wire("int32")
    voter_id: int = wire("int32")
    voter_directory_id: Uuid = wire("uuid")
    listeners: tuple[RaftVoterListener, ...] = wire(count=LISTENERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddRaftVoterResponse(Message):
    """The outcome. `error_code` is 0 if a majority of the new voter set has stored the change, so
    that it is committed."""

    API_KEY: ClassVar[int] = 80
    throttle_time_ms: int = wire("int32", default=0)
    error_code: int = wire("int16", default=0)
    error_message: str | None = wire("string", nullable="0+", bound=ERROR_TEXT, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveRaftVoterRequest(Message):
    """Removes a controller from the voters. If no voter has both ids, or if it is the last voter,
    the error is VOTER_NOT_FOUND. The answer waits for the commit of the change, for 30 s at
    most."""

    API_KEY: ClassVar[int] = 81
    MAX_ELEMENTS: ClassVar[int] = MAX_CONTROLLER_ELEMENTS
    cluster_id: str | None = wire("string", nullable="0+", bound=CLUSTER_ID, default=None)
    voter_id: int = wire("int32")
    voter_directory_id: Uuid = wire("uuid")


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveRaftVoterResponse(Message):
    """The outcome, with the fields of AddRaftVoterResponse."""

    API_KEY: ClassVar[int] = 81
    throttle_time_ms: int = wire("int32", default=0)
    error_code: int = wire("int16", default=0)
    error_message: str | None = wire("string", nullable="0+", bound=ERROR_TEXT, default=None)
