"""SaslHandshake (17) on ports without SASL.

It is answered with an error, because a client that is configured for SASL could not interpret a
closed connection.
"""

from __future__ import annotations

from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from quorate.quorum.rpc.kafka.server import RequestContext


def no_sasl(context: RequestContext, request: SaslHandshakeRequest) -> None:
    """Answer ILLEGAL_SASL_STATE without mechanisms."""
    context.respond(SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=()))
