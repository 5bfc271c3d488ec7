"""How a broker's parts reach the active controller, whoever that is now.

`done` is called exactly once, on the loop: with the controller's response, or None when the request
was lost, timed out or met no controller. None says nothing about whether it was applied.
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


class ControllerChannel(Protocol):
    @overload
    def send(
        self,
        message: BrokerRegistrationRequest,
        timeout_ms: int,
        done: Done[BrokerRegistrationResponse],
    ) -> None: ...

    @overload
    def send(
        self, message: BrokerHeartbeatRequest, timeout_ms: int, done: Done[BrokerHeartbeatResponse]
    ) -> None: ...

    @overload
    def send(
        self, message: AlterPartitionRequest, timeout_ms: int, done: Done[AlterPartitionResponse]
    ) -> None: ...

    @overload
    def send(
        self,
        message: AllocateProducerIdsRequest,
        timeout_ms: int,
        done: Done[AllocateProducerIdsResponse],
    ) -> None: ...
