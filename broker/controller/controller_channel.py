"""The interface through which the parts of a broker send requests to the active controller.

`send` returns immediately. It calls `done` exactly once and later, on the event loop:

- with the response, which may carry an error
- with None if there is no response within `timeout_ms`, the connection was lost, or the request
  could not be sent

After None the outcome is unknown: the controller may have applied the request. Only the sender
knows if a repetition is safe, so the channel itself sends a request again in only two cases. Either
the request was never sent, or the node answered NOT_CONTROLLER (`controller_client.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar, overload

from quorate.quorum.controller.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)

R = TypeVar("R")
Done = Callable[[R | None], None]
"""A callback that receives the response, or None if there is none."""


class ControllerChannel(Protocol):
    """A sender of requests to the active controller, which it finds itself.

    The order of the requests may change when the active controller does."""

    @overload
    def send(
        self,
        message: BrokerRegistrationRequest,
        timeout_ms: int,
        done: Done[BrokerRegistrationResponse],
    ) -> None:
        """Send the registration of this broker. Its response carries the broker epoch."""
        ...

    @overload
    def send(
        self, message: BrokerHeartbeatRequest, timeout_ms: int, done: Done[BrokerHeartbeatResponse]
    ) -> None:
        """Send a heartbeat of this broker."""
        ...

    @overload
    def send(
        self, message: AlterPartitionRequest, timeout_ms: int, done: Done[AlterPartitionResponse]
    ) -> None:
        """Propose ISR changes of partitions that this broker leads."""
        ...

    @overload
    def send(
        self,
        message: AllocateProducerIdsRequest,
        timeout_ms: int,
        done: Done[AllocateProducerIdsResponse],
    ) -> None:
        """Ask for a block of producer ids."""
        ...
