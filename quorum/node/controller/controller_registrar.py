"""Registers this controller at the active controller (KIP-919), as Kafka's
ControllerRegistrationManager does.

The controller registers when the committed image does not have its incarnation and the finalized
metadata.version has registrations. After a refusal, a lost link or a timeout it tries again after a
backoff. A new leader ends the backoff, because an older release that led before may not know the
request. The registration is complete when the committed image has it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from quorate.quorum.controller.features.controller_registration import registrations_supported
from quorate.quorum.controller.state.messages import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.seams import Clock, Random, Timer

FIRST_BACKOFF_MS = 100
"""The first backoff. It doubles with each failure in a row."""
MAX_BACKOFF_MS = 120_000
BACKOFF_JITTER = 0.02
"""The random part of a backoff, as a fraction of it in either direction."""

logger = logging.getLogger("quorate.quorum.controller")

Done = Callable[[ControllerRegistrationResponse | None], None]


class SendRegistration(Protocol):
    """Sends the request to the active controller."""

    def __call__(self, request: ControllerRegistrationRequest, done: Done) -> None:
        """Call `done` once, now or later, with the response. None means that there is none."""


class ControllerRegistrar:
    """The registration of one controller process. Owned by the node's event loop.

    Invariant: at most one request is in flight, or the timer of the next one runs."""

    def __init__(
        self,
        clock: Clock,
        random: Random,
        request: Callable[[], ControllerRegistrationRequest],
        send: SendRegistration,
    ) -> None:
        """`request` returns the request to send. It is called for each attempt."""
        self._clock = clock
        self._random = random
        self._request = request
        self._send = send
        self._wanted = False
        self._in_flight = False
        self._closed = False
        self._failures = 0
        self._timer: Timer | None = None

    def follow(self, image: MetadataImage, controller_id: int, incarnation_id: Uuid) -> None:
        """Register if the committed `image` lacks this incarnation of the controller. The call
        costs little if nothing is to do."""
        known = image.controllers.get(controller_id)
        registered = known is not None and known.incarnation_id == incarnation_id
        wanted = not registered and registrations_supported(image)
        if self._wanted and registered:
            logger.info("controller %d is registered in the metadata log", controller_id)
        newly = wanted and not self._wanted
        self._wanted = wanted
        if newly:
            self._try()

    def leader_changed(self) -> None:
        """Try again soon, because the quorum has another leader."""
        self._failures = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = self._clock.call_later(FIRST_BACKOFF_MS, self._elapsed)

    def close(self) -> None:
        """Send nothing more."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _elapsed(self) -> None:
        self._timer = None
        self._try()

    def _try(self) -> None:
        if self._wanted and not self._in_flight and self._timer is None and not self._closed:
            self._in_flight = True
            self._send(self._request(), self._answered)

    def _answered(self, response: ControllerRegistrationResponse | None) -> None:
        self._in_flight = False
        if self._closed or not self._wanted:
            return
        if response is not None and response.error == ErrorCode.NONE:
            # The record is committed. If the image does not have it soon, another process with this
            # node id has registered since.
            self._failures = 0
        elif response is not None and response.error != ErrorCode.NOT_CONTROLLER:
            code = ErrorCode.of(response.error).name
            logger.warning("the registration failed: %s %s", code, response.message)
        longest_ms = min(FIRST_BACKOFF_MS * 2.0 ** min(self._failures, 20), MAX_BACKOFF_MS)
        self._failures += 1
        jitter = 1 + BACKOFF_JITTER * (2 * self._random.random() - 1)
        self._timer = self._clock.call_later(longest_ms * jitter, self._elapsed)
