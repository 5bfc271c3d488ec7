"""The HTTP requests that a node answers, with and without TLS and a token."""

from __future__ import annotations

import pytest

from quorate.quorum.principal import USER, Principal
from quorate.quorum.rpc.http_head import HeadRefused, parse_head
from quorate.quorum.seams import ANONYMOUS_PEER, PeerIdentity
from quorate.quorum.watch.http_access import HttpAccess

TOKEN = "0123456789abcdef"
OTHER_TOKEN = "fedcba9876543210"
HOST = "10.0.0.9"
CERTIFIED = PeerIdentity(verified=True)
ALICE = Principal(USER, "alice")
OPEN = HttpAccess()
BY_TOKEN = HttpAccess(lambda: (TOKEN,))
BY_TLS = HttpAccess(demands_proof=True)
BOTH = HttpAccess(lambda: (OTHER_TOKEN, TOKEN), demands_proof=True)


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
        (BOTH, ANONYMOUS_PEER, OTHER_TOKEN, True),
        (BY_TOKEN, None, OTHER_TOKEN, False),
        (BOTH, CERTIFIED, "wrong", True),
    ],
)
def test_a_request_shows_a_certificate_or_the_token(
    access: HttpAccess, identity: PeerIdentity | None, bearer: str | None, answered: bool
) -> None:
    for path in ("/metrics", "/v1/changes", "/no-such-path"):
        refusal = access.refusal(path, identity, bearer, HOST)
        assert (refusal is None) == answered
        assert refusal is None or (refusal.status, refusal.headers[0][0]) == (
            401,
            "WWW-Authenticate",
        )
    for path in ("/healthz", "/readyz"):
        assert access.refusal(path, identity, bearer, HOST) is None


NODE = PeerIdentity(uris=("quorate://c/node/4",), verified=True)
OF_ANOTHER_CLUSTER = PeerIdentity(uris=("quorate://d/node/4",), verified=True)


@pytest.mark.parametrize(
    ("identity", "bearer", "status"),
    [
        (CERTIFIED, None, 403),
        (CERTIFIED, TOKEN, None),
        (PeerIdentity(ALICE, verified=True), None, None),
        (PeerIdentity(ALICE), None, 401),
        (NODE, None, None),
        (OF_ANOTHER_CLUSTER, None, 403),
        (ANONYMOUS_PEER, None, 401),
    ],
)
def test_with_an_authorizer_a_certificate_needs_a_permission(
    identity: PeerIdentity, bearer: str | None, status: int | None
) -> None:
    def may_describe(principal: Principal, host: str) -> bool:
        assert host == HOST
        return principal == ALICE

    access = HttpAccess(
        lambda: (TOKEN,),
        demands_proof=True,
        may_describe=may_describe,
        node_prefix="quorate://c/node/",
    )
    refusal = access.refusal("/v1/changes", identity, bearer, HOST)
    assert (None if refusal is None else refusal.status) == status
    assert access.refusal("/readyz", identity, bearer, HOST) is None


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
