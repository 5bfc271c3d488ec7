"""PLAIN: each outcome with Kafka's text."""

from __future__ import annotations

import pytest

from quorate.quorum.sasl.exchange import AuthenticationFailed
from quorate.quorum.sasl.plain import PlainExchange

USERS = {"alice": "secret", "é": "ü"}


@pytest.mark.parametrize(
    ("token", "user"),
    [
        (b"\0alice\0secret", "alice"),
        (b"alice\0alice\0secret", "alice"),
        ("\0é\0ü".encode(), "é"),
    ],
)
def test_a_user_with_its_password(token: bytes, user: str) -> None:
    exchange = PlainExchange(USERS)
    assert exchange.respond(token) == b""
    assert exchange.user == user


@pytest.mark.parametrize(
    ("token", "message"),
    [
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0bob\0secret", "Authentication failed: Invalid username or password"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"\0\0secret", "Authentication failed: username not specified"),
        (
            b"bob\0alice\0secret",
            (
                "Authentication failed: Client requested an authorization id that is different "
                "from username"
            ),
        ),
        (b"bob\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"alice\0secret", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"\0alice\0secret\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0\xff\0\xff", "Authentication failed: Invalid username or password"),
    ],
)
def test_a_failure(token: bytes, message: str) -> None:
    exchange = PlainExchange(USERS)
    with pytest.raises(AuthenticationFailed) as failure:
        exchange.respond(token)
    assert failure.value.message == message
    assert exchange.user is None


def test_an_unknown_user_has_no_empty_password() -> None:
    with pytest.raises(AuthenticationFailed):
        PlainExchange({}).respond(b"\0bob\0x")
