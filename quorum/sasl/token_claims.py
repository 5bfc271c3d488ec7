"""The rules of the claims of a bearer token (RFC 7519, and Kafka's BrokerJwtValidator).

The signature is verified before. All times in claims are seconds since 1970 UTC, which may have a
fraction. A token without an expiration or without a user is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from quorate.quorum.clipped import quoted
from quorate.quorum.sasl.bearer_token import BearerToken, TokenRefused

MAX_TIME_S = 253_402_300_799
"""The last second of the year 9999. A later time is no time."""
MAX_USER_BYTES = 1024
"""The maximum length of a user's name in UTF-8, as of users of SCRAM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRules:
    """The expectations of one listener. No audience and no issuer is expected by default.

    `user_claim` is the claim with the name of the user. The clocks of the provider and the broker
    may differ by `clock_skew_ms`."""

    audiences: tuple[str, ...] = ()
    issuer: str | None = None
    clock_skew_ms: int = 30_000
    scope_claim: str = "scope"
    user_claim: str = "sub"


def bearer_token(claims: Mapping[str, Any], rules: ClaimRules, wall_ms: int) -> BearerToken:
    """Return the user that the claims of a token with a valid signature prove at `wall_ms`. Raise
    TokenRefused."""
    user = _user(claims, rules.user_claim)
    expires_ms = _time_ms(claims, "exp", user)
    issued_ms = _time_ms(claims, "iat", user)
    begins_ms = _time_ms(claims, "nbf", user) if "nbf" in claims else None
    skew_ms = rules.clock_skew_ms
    checks = (
        (wall_ms < expires_ms + skew_ms, "the token has expired"),
        (
            begins_ms is None or begins_ms <= wall_ms + skew_ms,
            "the token is not valid yet",
        ),
        (issued_ms <= wall_ms + skew_ms, "the token was issued in the future"),
        (
            expires_ms >= max(issued_ms, begins_ms or 0),
            "the token expires before it begins",
        ),
        (
            rules.issuer is None or claims.get("iss") == rules.issuer,
            "the token is of another issuer",
        ),
        (_is_for(claims.get("aud"), rules.audiences), "the token is for another audience"),
        (_scopes_are_valid(claims.get(rules.scope_claim)), "the scopes of the token are malformed"),
    )
    for holds, reason in checks:
        if not holds:
            raise TokenRefused(reason, user=user)
    return BearerToken(user, expires_ms)


def _user(claims: Mapping[str, Any], claim: str) -> str:
    """Return the name of the user."""
    kind = "the token names no user"
    user = claims.get(claim)
    if not isinstance(user, str) or not user.strip():
        raise TokenRefused(f"the token has no claim {quoted(claim)} with the name of a user")
    try:
        size = len(user.encode())
    except UnicodeEncodeError:
        raise TokenRefused("the name of the user is not UTF-8", kind=kind) from None
    if size > MAX_USER_BYTES:
        raise TokenRefused(
            f"the name of the user has {size} bytes, at most {MAX_USER_BYTES}", kind=kind
        )
    return user


def _time_ms(claims: Mapping[str, Any], claim: str, user: str) -> int:
    """Return a time in ms since 1970 UTC."""
    value = claims.get(claim)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is None or not is_number or not 0 <= value <= MAX_TIME_S:
        raise TokenRefused(f"the claim {claim} of the token is no time", user=user)
    return int(value * 1000)


def _is_for(audience: object, expected: tuple[str, ...]) -> bool:
    """Return True if a token with this `aud` is for one of the `expected` audiences. If none is
    expected, a token must name none, as in Kafka."""
    if audience is None:
        return not expected
    named = [audience] if isinstance(audience, str) else audience
    return isinstance(named, list) and any(each in named for each in expected)


def _scopes_are_valid(scopes: object) -> bool:
    """Return True if the scopes are one text that is not blank, or different ones. Kafka ignores a
    value of another type."""
    named = [scopes] if isinstance(scopes, str) else scopes
    if not isinstance(named, list):
        return True
    texts = [each.strip() for each in named if isinstance(each, str)]
    return len(texts) == len(named) and all(texts) and len(set(texts)) == len(texts)
