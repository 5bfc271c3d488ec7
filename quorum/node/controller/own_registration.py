"""The registration of this controller, and the way of registrations to the active controller.

`controller_registrar.py` decides when to send. The rule of the active controller is in
`quorum/controller/features/controller_registration.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from quorate.config.listeners import Listener
from quorate.quorum.controller.state.messages import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.records import Endpoint
from quorate.quorum.node.controller.controller_batch import Refusal
from quorate.quorum.node.controller.controller_registrar import ControllerRegistrar, Done
from quorate.quorum.node.controller.controller_shell import ControllerShell
from quorate.quorum.node.feature_support import supported_ranges
from quorate.quorum.node.node_core import NodeCore
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.rpc.channel import RpcFailure
from quorate.quorum.seams import Address

TIMEOUT_MS = 5_000
"""The time in which the active controller must answer."""
REFUSALS = {Refusal.FAILED: ErrorCode.UNKNOWN_SERVER_ERROR}
"""Kafka's errors for refused registrations. Every other refusal becomes NOT_CONTROLLER."""


class OwnRegistration:
    """The registration of one controller node. Owned by the node's event loop."""

    def __init__(
        self, core: NodeCore, shell: ControllerShell, addresses: Callable[[], Sequence[Address]]
    ) -> None:
        """`addresses` returns those of the open controller ports, in order of the listeners."""
        self._core = core
        self._shell = shell
        self._addresses = addresses
        self._registrar = ControllerRegistrar(
            core.seams.clock, core.seams.random, self._request, self._send
        )

    def follow(self, image: MetadataImage) -> None:
        """Register if the committed `image` lacks this incarnation of the controller."""
        self._registrar.follow(image, self._core.config.node_id, self._core.incarnation)

    def leader_changed(self) -> None:
        """Try again soon if an attempt waits, because the quorum has another leader."""
        self._registrar.leader_changed()

    def close(self) -> None:
        """Send nothing more."""
        self._registrar.close()

    def register(
        self,
        request: ControllerRegistrationRequest,
        reply: Callable[[ControllerRegistrationResponse], None],
    ) -> None:
        """Let the rules decide a registration, of this or another controller. Call `reply` once,
        when the record is committed or the request is refused."""

        def answer(response: Any) -> None:
            if isinstance(response, Refusal):
                error = REFUSALS.get(response, ErrorCode.NOT_CONTROLLER)
                reply(ControllerRegistrationResponse(error=error))
            else:
                reply(response)

        self._shell.submit(request, answer)

    def _request(self) -> ControllerRegistrationRequest:
        config = self._core.config
        bound = zip(config.listeners.controller, self._addresses(), strict=False)
        return ControllerRegistrationRequest(
            controller_id=config.node_id,
            incarnation_id=self._core.incarnation,
            endpoints=tuple(self._endpoint(listener, address) for listener, address in bound),
            features=supported_ranges(self._core.features().supported),
        )

    def _endpoint(self, listener: Listener, bound: Address) -> Endpoint:
        """Return the advertised address of the listener. Its missing parts are those of `bound`."""
        advertised = self._core.config.listeners.advertisement(listener.name)
        host = bound.host if advertised is None else advertised.host
        port = bound.port if advertised is None else advertised.port or bound.port
        return Endpoint(name=listener.name, host=host, port=port)

    def _send(self, request: ControllerRegistrationRequest, done: Done) -> None:
        """Send the registration to the active controller, which may be this one."""
        if self._shell.active:
            self.register(request, done)
            return
        channel = self._core.links.channel(self._core.raft.leader_id)
        if channel is None:
            done(None)
            return
        channel.request(
            request,
            TIMEOUT_MS,
            lambda answer: done(None if isinstance(answer, RpcFailure) else answer),
        )
