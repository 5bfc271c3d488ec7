"""SaslHandshake (17) and SaslAuthenticate (36) where no authentication is under way.

That is the case on ports without SASL, and on connections that are authenticated. They are answered
with an error, because a client that is configured for SASL could not interpret a closed connection.
`sasl_connection.py` answers them while a client authenticates.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial

from quorate.quorum.log_limit import LogLimit
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
from quorate.quorum.seams import Clock

logger = logging.getLogger("quorate.kafka")
TOO_LATE = "SaslAuthenticate request received after successful authentication"
"""Kafka's message, also on ports without SASL."""


def no_handshake(lines: LogLimit, context: RequestContext, request: SaslHandshakeRequest) -> None:
    """Answer ILLEGAL_SASL_STATE without mechanisms, and write a line that `lines` limits."""
    left_out = lines.passes(context.peer.host)
    if left_out is not None:
        logger.warning(
            "a client at %s sends a SaslHandshake on a listener without SASL, or once it is "
            "authenticated. Does it need security.protocol=PLAINTEXT or SSL?%s",
            context.peer,
            left_out,
        )
    context.respond(SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=()))


def no_authentication(context: RequestContext, request: SaslAuthenticateRequest) -> None:
    """Answer ILLEGAL_SASL_STATE."""
    context.respond(
        SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=TOO_LATE)
    )


def sasl_handlers(clock: Clock) -> Mapping[int, Handler]:
    """Return the handlers of one port by API."""
    return {
        ApiKey.SASL_HANDSHAKE: partial(no_handshake, LogLimit(clock)),
        ApiKey.SASL_AUTHENTICATE: no_authentication,
    }
