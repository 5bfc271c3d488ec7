"""The response to a group request, which may be sent later than the request is handled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.wire import Message


@dataclass(frozen=True, slots=True)
class Reply:
    """Sends the response to one request.

    `send` sends a response. `refusal` builds the response of this API that carries an error code.
    The coordinator must answer each request exactly once."""

    send: Callable[[Message], None]
    refusal: Callable[[ErrorCode], Message]

    def fail(self, error: ErrorCode) -> None:
        """Send an error response with this error code."""
        self.send(self.refusal(error))
