"""The lifetime of an authenticated session (KIP-368)."""

from __future__ import annotations


def session_ms(max_reauth_ms: int, credential_rest_ms: int | None) -> int | None:
    """Return the time in ms after which a client must authenticate again. None means never.

    `max_reauth_ms` is connections.max.reauth.ms, in which 0 stands for no bound.
    `credential_rest_ms` is the rest of the validity of its token, or None if the credential does
    not expire. It is negative for a token that is valid only because clocks differ. The session of
    such a token ends immediately, as in Kafka."""
    bounds = [] if credential_rest_ms is None else [max(0, credential_rest_ms)]
    if max_reauth_ms > 0:
        bounds.append(max_reauth_ms)
    return min(bounds, default=None)
