"""The messages AddRaftVoter and RemoveRaftVoter (KIP-853): changes of the voters of the metadata
quorum.

The leader of the quorum carries them out, one change at a time (`../../node/voter_admin.py`). A
request may omit `cluster_id`; another cluster's id is refused with INCONSISTENT_CLUSTER_ID.
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

    `timeout_ms` is the maximum wait of the answer for the commit. The server caps it at 30 s."""

    API_KEY: ClassVar[int] = 80
    MAX_ELEMENTS: ClassVar[int] = MAX_CONTROLLER_ELEMENTS
    cluster_id: str | None = wire("string", nullable="0+", bound=CLUSTER_ID, default=None)
    timeout_ms: int = wire("int32")
    voter_id: int = wire("int32")
    voter_directory_id: Uuid = wire("uuid")
    listeners: tuple[RaftVoterListener, ...] = wire(count=LISTENERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddRaftVoterResponse(Message):
    """The outcome. `error_code` is 0 if the new voter set has committed the change. After
    REQUEST_TIMED_OUT the change may still be committed."""

    API_KEY: ClassVar[int] = 80
    throttle_time_ms: int = wire("int32", default=0)
    error_code: int = wire("int16", default=0)
    error_message: str | None = wire("string", nullable="0+", bound=ERROR_TEXT, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveRaftVoterRequest(Message):
    """Removes a controller from the voters. Both ids must match those of a voter."""

    API_KEY: ClassVar[int] = 81
    MAX_ELEMENTS: ClassVar[int] = MAX_CONTROLLER_ELEMENTS
    cluster_id: str | None = wire("string", nullable="0+", bound=CLUSTER_ID, default=None)
    voter_id: int = wire("int32")
    voter_directory_id: Uuid = wire("uuid")


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveRaftVoterResponse(Message):
    """The outcome, as in AddRaftVoterResponse."""

    API_KEY: ClassVar[int] = 81
    throttle_time_ms: int = wire("int32", default=0)
    error_code: int = wire("int16", default=0)
    error_message: str | None = wire("string", nullable="0+", bound=ERROR_TEXT, default=None)
