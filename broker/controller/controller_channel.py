"""The interface through which the parts of a broker send requests to the active controller.

`done` is called exactly once, on the event loop: with the response, or with None if the request was
lost, timed out after `timeout_ms`, or found no controller in this time. After None the outcome is
unknown: the controller may have applied the request. A response may carry an error.
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
"""A callback for the response, or None if there is none."""


class ControllerChannel(Protocol):
    """A sender of requests to the active controller, whichever node that is."""

    @overload
    def send(
        self,
        message: BrokerRegistrationRequest,
        timeout_ms: int,
        done: Done[BrokerRegistrationResponse],
    ) -> None:
        """Register this broker."""
        ...

    @overload
    def send(
        self, message: BrokerHeartbeatRequest, timeout_ms: int, done: Done[BrokerHeartbeatResponse]
    ) -> None:
        """Send a heartbeat."""
        ...

    @overload
    def send(
        self, message: AlterPartitionRequest, timeout_ms: int, done: Done[AlterPartitionResponse]
    ) -> None:
        """Propose ISR changes."""
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
