"""SaslHandshake (17) and SaslAuthenticate (36) where no authentication is under way.

That is the case on ports without SASL, and on connections that are authenticated. They are answered
with an error, because a client that is configured for SASL could not interpret a closed connection.
`sasl_connection.py` answers them while a client authenticates.
"""

from __future__ import annotations

from collections.abc import Mapping

from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from quorate.quorum.protocol.schemas.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from quorate.quorum.rpc.kafka.server import Handler, RequestContext

TOO_LATE = "SaslAuthenticate request received after successful authentication"
"""Kafka's message, also on ports without SASL."""


def no_handshake(context: RequestContext, request: SaslHandshakeRequest) -> None:
    """Answer ILLEGAL_SASL_STATE without mechanisms."""
    context.respond(SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=()))


def no_authentication(context: RequestContext, request: SaslAuthenticateRequest) -> None:
    """Answer ILLEGAL_SASL_STATE."""
    context.respond(
        SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=TOO_LATE)
    )


SASL_HANDLERS: Mapping[int, Handler] = {
    ApiKey.SASL_HANDSHAKE: no_handshake,
    ApiKey.SASL_AUTHENTICATE: no_authentication,
}
"""The handlers by API."""
