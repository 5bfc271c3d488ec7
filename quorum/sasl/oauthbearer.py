"""The server's end of OAUTHBEARER (RFC 7628, KIP-255, KIP-768): the client shows a bearer token.

A token that is not accepted is answered with JSON and no error. The client then sends \\x01, and
the authentication fails, as in Kafka. No error, log line or attribute contains the token.
"""

from __future__ import annotations

from quorate.quorum.clipped import clipped, shown
from quorate.quorum.sasl.bearer_token import TokenRefused, Verify
from quorate.quorum.sasl.exchange import AuthenticationFailed, Exchange
from quorate.quorum.sasl.oauthbearer_messages import Malformed, parse_client_first, refusal

INVALID_TOKEN = "invalid_token"


class OAuthBearerExchange(Exchange):
    """An authentication by OAUTHBEARER. `verify` returns the user that a token proves."""

    def __init__(self, verify: Verify) -> None:
        self._verify = verify

    def respond(self, token: bytes) -> bytes:
        """Return the empty answer to a valid token, or the refusal of another one. A message after
        a refusal fails the authentication."""
        if self.refusal is not None:
            raise self.refusal
        try:
            first = parse_client_first(token)
        except Malformed as error:
            raise AuthenticationFailed(str(error), kind="the first message is malformed") from None
        try:
            bearer = self._verify(first.token)
        except TokenRefused as refused:
            answer = refusal(INVALID_TOKEN)
            self.refusal = AuthenticationFailed(
                refused.reason, refused.user, answer.decode(), kind=refused.kind
            )
            return answer
        if first.authorization_id not in ("", bearer.user):
            text = "Authentication failed: Client requested an authorization id (%s) that is "
            text += "different from the token's principal name (%s)"
            message = text % (clipped(first.authorization_id), clipped(bearer.user))
            raise AuthenticationFailed(shown(message, len(message)), bearer.user, message, text)
        self.user, self.expires_wall_ms = bearer
        return b""
