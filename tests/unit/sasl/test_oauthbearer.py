"""The messages of OAUTHBEARER, and the server's end of it."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.quorum.sasl.bearer_token import BearerToken, TokenRefused
from quorate.quorum.sasl.exchange import AuthenticationFailed
from quorate.quorum.sasl.oauthbearer import OAuthBearerExchange
from quorate.quorum.sasl.oauthbearer_messages import (
    END,
    MAX_TOKEN_CHARS,
    Malformed,
    client_first,
    parse_client_first,
)
from quorate.quorum.sasl.session import session_ms

REFUSAL = b'{"status":"invalid_token"}'


def verify(token: str) -> BearerToken:
    if token != "good":
        raise TokenRefused("it is bad", user="alice")
    return BearerToken("alice", 7000)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (client_first("a.b-c_9"), ("a.b-c_9", "")),
        (b"n,a=alice,\x01auth=Bearer t\x01\x01", ("t", "alice")),
        (b"n,a=al=2Cice,\x01auth=bEARER   t\x01\x01", ("t", "al=2Cice")),
        (b"n,,\x01host=x\x01auth=Bearer t\x01traceId=1 2\x01\x01", ("t", "")),
    ],
)
def test_first_messages(message: bytes, expected: tuple[str, str]) -> None:
    assert parse_client_first(message) == expected


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer t\x01",
        b"y,,\x01auth=Bearer t\x01\x01",
        b"p=x,,\x01auth=Bearer t\x01\x01",
        b"n,a=,\x01auth=Bearer t\x01\x01",
        b"n,,\x01auth=Basic t\x01\x01",
        b"n,,\x01auth=Bearer t t\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"n,,\x01auth=Bearer t=\x01\x01",
        b"n,,\x01auth=Bearer t\nx\x01\x01",
        b"n,,\x01x=y\x01\x01",
        b"n,,\x01x1=y\x01auth=Bearer t\x01\x01",
        b"n,,\x01auth=Bearer \xff\x01\x01",
        client_first("x" * (MAX_TOKEN_CHARS + 1)),
        client_first("x")[:-1] + b"extension=value\x01" * (MAX_TOKEN_CHARS // 4) + b"\x01",
    ],
)
def test_malformed_first_messages(message: bytes) -> None:
    with pytest.raises(Malformed):
        parse_client_first(message)
    with pytest.raises(AuthenticationFailed) as raised:
        OAuthBearerExchange(verify).respond(message)
    assert raised.value.message is None  # Kafka's general text


@pytest.mark.parametrize("size", [MAX_TOKEN_CHARS, 2 * MAX_TOKEN_CHARS])
def test_a_client_cannot_make_a_log_line_of_a_new_kind_by_the_size_of_its_token(size: int) -> None:
    kinds = set()
    for more in range(1, 4):
        with pytest.raises(AuthenticationFailed, match=f"{MAX_TOKEN_CHARS}|bytes") as raised:
            OAuthBearerExchange(verify).respond(client_first("x" * (size + more)))
        kinds.add(raised.value.kind)
    assert len(kinds) == 1


def test_a_valid_token_completes_the_exchange() -> None:
    exchange = OAuthBearerExchange(verify)
    assert exchange.respond(client_first("good")) == b""
    assert (exchange.user, exchange.expires_wall_ms, exchange.refusal) == ("alice", 7000, None)


def test_another_token_is_refused_and_the_next_message_fails() -> None:
    for answer in (END, client_first("good"), b""):
        exchange = OAuthBearerExchange(verify)
        assert exchange.respond(client_first("bad")) == REFUSAL
        assert exchange.user is None
        with pytest.raises(AuthenticationFailed) as raised:
            exchange.respond(answer)
        assert raised.value.message == REFUSAL.decode()
        assert (raised.value.reason, raised.value.user) == ("it is bad", "alice")
        assert exchange.user is None


def test_the_authorization_id_is_the_user() -> None:
    same = OAuthBearerExchange(verify)
    same.respond(b"n,a=alice,\x01auth=Bearer good\x01\x01")
    assert same.user == "alice"
    other = OAuthBearerExchange(verify)
    with pytest.raises(
        AuthenticationFailed, match=r"id \(bob\) that is different from .* name \(alice\)"
    ):
        other.respond(b"n,a=bob,\x01auth=Bearer good\x01\x01")
    assert other.user is None


@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_malformed(message: bytes) -> None:
    with suppress(Malformed):
        parse_client_first(b"n,," + message)


@pytest.mark.parametrize(
    ("max_reauth_ms", "rest_ms", "expected"),
    [
        (0, None, None),
        (2000, None, 2000),
        (0, 5000, 5000),
        (2000, 5000, 2000),
        (9000, 5000, 5000),
        (9000, -5, 0),
        (0, -5, 0),
    ],
)
def test_the_lifetime_of_a_session(
    max_reauth_ms: int, rest_ms: int | None, expected: int | None
) -> None:
    assert session_ms(max_reauth_ms, rest_ms) == expected
