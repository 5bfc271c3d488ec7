"""Which HTTP requests a node answers, with and without TLS and a token."""

from __future__ import annotations

import pytest

from quorate.quorum.rpc.http_head import HeadRefused, parse_head
from quorate.quorum.seams import ANONYMOUS_PEER, PeerIdentity
from quorate.quorum.watch.http_access import HttpAccess

TOKEN = "0123456789abcdef"
CERTIFIED = PeerIdentity(verified=True)
OPEN = HttpAccess()
BY_TOKEN = HttpAccess(TOKEN)
BY_TLS = HttpAccess(demands_proof=True)
BOTH = HttpAccess(TOKEN, demands_proof=True)


@pytest.mark.parametrize(
    ("access", "identity", "bearer", "answered"),
    [
        (OPEN, None, None, True),
        (OPEN, ANONYMOUS_PEER, None, False),
        (OPEN, CERTIFIED, None, True),
        (BY_TOKEN, None, None, False),
        (BY_TOKEN, None, TOKEN, True),
        (BY_TOKEN, None, TOKEN[:-1], False),
        (BY_TOKEN, None, TOKEN + "0", False),
        (BY_TLS, ANONYMOUS_PEER, None, False),
        (BY_TLS, ANONYMOUS_PEER, "None", False),
        (BY_TLS, ANONYMOUS_PEER, "", False),
        (BY_TLS, CERTIFIED, None, True),
        (BY_TLS, None, None, False),
        (BOTH, ANONYMOUS_PEER, TOKEN, True),
        (BOTH, CERTIFIED, "wrong", True),
    ],
)
def test_a_request_shows_a_certificate_or_the_token(
    access: HttpAccess, identity: PeerIdentity | None, bearer: str | None, answered: bool
) -> None:
    for path in ("/metrics", "/v1/changes", "/no-such-path"):
        refusal = access.refusal(path, identity, bearer)
        assert (refusal is None) == answered
        assert refusal is None or (refusal.status, refusal.headers[0][0]) == (
            401,
            "WWW-Authenticate",
        )
    for path in ("/healthz", "/readyz"):
        assert access.refusal(path, identity, bearer) is None


def test_a_token_is_not_shown() -> None:
    assert TOKEN not in repr(BOTH)
    assert TOKEN not in repr(parse_head(head(f"Bearer {TOKEN}")))


def head(*values: str) -> bytes:
    lines = ["GET / HTTP/1.1", "Host: localhost", *(f"Authorization: {each}" for each in values)]
    return "\r\n".join(lines).encode()


@pytest.mark.parametrize(
    ("value", "bearer"),
    [
        (f"Bearer {TOKEN}", TOKEN),
        (f"bearer   {TOKEN}=", TOKEN + "="),
        (f"Basic {TOKEN}", None),
        ("Bearer", None),
        ("Bearer two words", None),
    ],
)
def test_the_token_of_a_request(value: str, bearer: str | None) -> None:
    assert parse_head(head(value)).bearer == bearer


def test_two_tokens_are_refused() -> None:
    with pytest.raises(HeadRefused):
        parse_head(head(f"Bearer {TOKEN}", f"Bearer {TOKEN}"))
