"""The interface through which the parts of a broker send requests to the active controller.

`send` returns immediately. It calls `done` exactly once and later, on the event loop:

- with the response, which may carry any error except NOT_CONTROLLER
- with None if no response arrives within `timeout_ms`, if the connection is lost, if the channel is
  closed, or if the request cannot be sent

`timeout_ms` includes the search for the active controller and every repetition.

A sender that gets None must treat the outcome as unknown: the controller may have applied the
request. Only the sender knows if a repetition is safe. The channel itself therefore sends a request
again in only two cases: the request was never sent, or the node answered NOT_CONTROLLER
(`controller_client.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar, overload

from quorate.quorum.controller.state.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)

R = TypeVar("R")
Done = Callable[[R | None], None]
"""A callback that receives the response, or None if the outcome is unknown."""


class ControllerChannel(Protocol):
    """A sender of requests to the active controller, which it finds itself.

    Several requests may be in flight. The controller may receive them in another order than they
    were sent, if another controller becomes active meanwhile."""

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
        message: AssignReplicasToDirsRequest,
        timeout_ms: int,
        done: Done[AssignReplicasToDirsResponse],
    ) -> None:
        """Report the log directories of replicas on this broker."""
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
