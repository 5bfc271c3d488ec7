"""The order of requests on a connection that must authenticate (KIP-43, KIP-152, KIP-368).

No handler sees a request before the authentication is complete. Until then, only ApiVersions,
SaslHandshake and SaslAuthenticate are decoded. `action` has the rule of every frame.
"""

from __future__ import annotations

import enum

from quorate.quorum.protocol.apis import ApiKey


class State(enum.Enum):
    """The state of the authentication of one connection."""

    INITIAL = "nothing has arrived"
    VERSIONS_TOLD = "the client knows the versions of the APIs"
    TOKENS = "the client sends its tokens in SaslAuthenticate requests"
    BARE_TOKENS = "the client sends its tokens as bare frames, after a SaslHandshake of version 0"
    DONE = "the client is authenticated"
    MECHANISM_CHANGED = "the client wants to authenticate again by another mechanism"


class Action(enum.Enum):
    """The action for one frame."""

    TELL_VERSIONS = enum.auto()
    """Answer ApiVersions."""
    SHAKE_HANDS = enum.auto()
    """Answer SaslHandshake, and begin the exchange of its mechanism."""
    TAKE_TOKEN = enum.auto()
    """Pass the token of a SaslAuthenticate request to the exchange."""
    TAKE_BARE_TOKEN = enum.auto()
    """Pass the whole frame to the exchange."""
    AUTHENTICATE_AGAIN = enum.auto()
    """Answer SaslHandshake on an authenticated connection."""
    REFUSE = enum.auto()
    """Answer ILLEGAL_SASL_STATE. The connection stays open."""
    FAIL = enum.auto()
    """Answer ILLEGAL_SASL_STATE and close the connection, both after the delay of failures."""
    SERVE = enum.auto()
    """Pass the request to its handler."""
    CLOSE = enum.auto()
    """Close the connection without an answer."""


VERSIONS, HANDSHAKE, AUTHENTICATE = (
    ApiKey.API_VERSIONS,
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
)
RULES: dict[State, tuple[dict[int, Action], Action]] = {
    # state: (the action of each API key, the action of all others)
    State.INITIAL: (
        {VERSIONS: Action.TELL_VERSIONS, HANDSHAKE: Action.SHAKE_HANDS},
        Action.CLOSE,
    ),
    State.VERSIONS_TOLD: ({HANDSHAKE: Action.SHAKE_HANDS}, Action.CLOSE),
    State.TOKENS: ({AUTHENTICATE: Action.TAKE_TOKEN}, Action.FAIL),
    State.BARE_TOKENS: ({}, Action.TAKE_BARE_TOKEN),
    State.DONE: (
        {HANDSHAKE: Action.AUTHENTICATE_AGAIN, AUTHENTICATE: Action.REFUSE},
        Action.SERVE,
    ),
    State.MECHANISM_CHANGED: ({}, Action.CLOSE),
}


def action(state: State, api_key: int) -> Action:
    """Return the action for a frame that begins with `api_key`."""
    of_key, others = RULES[state]
    return of_key.get(api_key, others)
