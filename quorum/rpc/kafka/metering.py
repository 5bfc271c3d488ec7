"""Switches the metering of a port on while quotas are set, and off while none is.

A port without quotas creates plain contexts and calls its handlers directly. A request therefore
costs nothing more than without quotas. Requests that arrived before the switch are not metered.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.quotas.client_quotas import ClientQuotas
from quorate.quorum.rpc.kafka.context import RequestContext
from quorate.quorum.rpc.kafka.metered_context import MeteredContext
from quorate.quorum.rpc.kafka.server_state import Handler, RawHandler, ServerState


class Metering:
    """The metering of one port. The event loop owns it."""

    def __init__(
        self,
        server: ServerState,
        quotas: ClientQuotas,
        handlers: Mapping[int, Handler | RawHandler] | None = None,
    ) -> None:
        """Prepare the metering of `server`, which stays off. `handlers` replace the port's own
        handlers of their APIs while it is on."""
        self._server = server
        self._quotas = quotas
        self._plain = {key: route.handle for key, route in server.routes.items()}
        self._metered = {
            key: metered((handlers or {}).get(key, handle)) for key, handle in self._plain.items()
        }
        self._on = False

    def follow(self) -> None:
        """Switch the metering on or off, as the quotas now require."""
        if self._on == self._quotas.enabled:
            return
        self._on = self._quotas.enabled
        handlers = self._metered if self._on else self._plain
        for key, route in self._server.routes.items():
            route.handle = handlers[key]
        self._server.new_context = (
            partial(MeteredContext, self._quotas, self._server.routes)
            if self._on
            else RequestContext
        )


def metered(handle: Handler | RawHandler) -> Handler:
    """Return `handle`, but report to a metered context when it has returned."""

    def call(context: RequestContext, request: Any) -> IncrementalWork[None] | None:
        try:
            return handle(context, request)
        finally:
            if isinstance(context, MeteredContext):
                context.handled()

    return call
