"""SaslHandshake (17) on ports without SASL: answered, so that a client that was set up for it reads
an error instead of a closed connection."""

from __future__ import annotations

from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from quorate.quorum.rpc.kafka.server import RequestContext


def no_sasl(context: RequestContext, request: SaslHandshakeRequest) -> None:
    context.respond(SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=()))
