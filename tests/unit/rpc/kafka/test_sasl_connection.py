"""Connections that must authenticate: the order of requests, failures, bounds, and sessions."""

from __future__ import annotations

import logging
from functools import partial
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.quorum.principal import ANONYMOUS, Principal
from quorate.quorum.protocol import headers
from quorate.quorum.protocol.apis import APIS, ApiKey
from quorate.quorum.protocol.codec import decode
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.api_versions import ApiVersionsRequest
from quorate.quorum.protocol.schemas.describe_producers import DescribeProducersRequest
from quorate.quorum.protocol.schemas.group_admin import ListGroupsRequest, ListGroupsResponse
from quorate.quorum.protocol.schemas.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from quorate.quorum.protocol.schemas.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from quorate.quorum.protocol.wire import Message
from quorate.quorum.rpc.kafka.api_versions import ApiVersionsHandler, Features
from quorate.quorum.rpc.kafka.context import RequestContext
from quorate.quorum.rpc.kafka.sasl import sasl_handlers
from quorate.quorum.rpc.kafka.sasl_connection import MIN_REAUTH_INTERVAL_MS, SaslConnection
from quorate.quorum.rpc.kafka.sasl_gate import SaslGate, SaslSettings
from quorate.quorum.rpc.kafka.server import KafkaServer
from quorate.quorum.sasl.bearer_token import BearerToken, TokenRefused
from quorate.quorum.sasl.mechanisms import Mechanisms
from quorate.quorum.sasl.oauthbearer_messages import END as NO_TOKEN
from quorate.quorum.sasl.oauthbearer_messages import client_first
from quorate.quorum.sasl.plain import PlainExchange
from quorate.quorum.sasl.unknown_users import UnknownUsers
from tests.unit.rpc.kafka.fakes import FakeClock, FakeLink
from tests.unit.rpc.kafka.test_server import frame

ALICE = Principal("User", "alice")
GOOD, OTHER, WRONG = b"\0alice\0secret", b"\0bob\0word", b"\0alice\0wrong"
DELAY_MS = 100
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "OAUTHBEARER")
TOKEN_MS = 60_000
"""The validity of a bearer token. It is longer than each test of the order of frames."""


class LimitedLink(FakeLink):
    """A link that records the bound of its frames."""

    limit: int | None = None

    def limit_frames(self, max_bytes: int | None) -> None:
        self.limit = max_bytes


class Port:
    """A listener with PLAIN and SCRAM, and one connection to it."""

    def __init__(self, *, max_reauth_ms: int = 0, **changes: int) -> None:
        self.clock = FakeClock()
        self.link = LimitedLink()
        self.served: list[RequestContext] = []
        random = Random(1)
        mechanisms = Mechanisms(
            MECHANISMS,
            verify=self.verify,
            plain_users={"alice": "secret", "bob": "word", "new\nline": "x"},
            credentials=dict,
            unknown_users=UnknownUsers(random),
            random=random,
        )
        reauth = {"PLAIN": max_reauth_ms}
        self.gate = SaslGate(mechanisms, SaslSettings(max_reauth_ms=reauth, **changes), self.clock)
        features = Features(supported={}, finalized={}, epoch=-1)
        versions = ApiVersionsHandler((18, 17, 36, 16), lambda: features)
        self.server = KafkaServer(
            {
                **sasl_handlers(self.clock),
                ApiKey.API_VERSIONS: versions.handle,
                ApiKey.LIST_GROUPS: self.serve,
                ApiKey.DESCRIBE_PRODUCERS: self.serve,
            },
            self.clock,
        )
        self.server.new_connection = partial(SaslConnection, self.gate)
        self.connection = self.server.accept(self.link)

    def verify(self, token: str) -> BearerToken:
        """Return the user of the only valid token."""
        if token != "good":
            raise TokenRefused("the token is bad", user="mallory")
        return BearerToken("alice", self.clock.wall_ms() + TOKEN_MS)

    def serve(self, context: RequestContext, request: Any) -> None:
        self.served.append(context)
        if context.api_key == ApiKey.LIST_GROUPS:
            context.respond(ListGroupsResponse(groups=()))
        else:
            context.fail(ErrorCode.UNKNOWN_SERVER_ERROR)

    def limit(self) -> int | None:
        return self.link.limit

    def is_closed(self) -> bool:
        return self.link.closed

    def send(self, request: Message | bytes, version: int = 1) -> None:
        data = request if isinstance(request, bytes) else frame(request, version)
        self.connection.on_frame(memoryview(data))

    def handshake(self, mechanism: str = "PLAIN", version: int = 1) -> None:
        self.send(SaslHandshakeRequest(mechanism=mechanism), version)

    def token(self, token: bytes, version: int = 1) -> None:
        self.send(SaslAuthenticateRequest(auth_bytes=token), version)

    def answer(self, api: ApiKey, version: int = 1) -> Any:
        """Return the last response."""
        header = APIS[api].response_header_version(version)
        body = headers.response_body(memoryview(self.link.sent[-1]), header)
        return decode(APIS[api].response, version, body)

    def authenticate(self, token: bytes = GOOD) -> SaslAuthenticateResponse:
        self.handshake()
        self.token(token)
        answer: SaslAuthenticateResponse = self.answer(ApiKey.SASL_AUTHENTICATE)
        return answer


VERSIONS = ApiVersionsRequest(client_software_name="a", client_software_version="1")
GROUPS = ListGroupsRequest()


def test_a_client_authenticates_and_its_requests_have_its_principal() -> None:
    port = Port()
    port.send(VERSIONS, 3)
    port.handshake()
    answer: SaslHandshakeResponse = port.answer(ApiKey.SASL_HANDSHAKE)
    assert (answer.error_code, answer.mechanisms) == (0, MECHANISMS)
    assert port.connection.principal == ANONYMOUS
    port.token(GOOD)
    told: SaslAuthenticateResponse = port.answer(ApiKey.SASL_AUTHENTICATE)
    assert (told.error_code, told.session_lifetime_ms) == (0, 0)
    port.send(GROUPS)
    (context,) = port.served
    assert context.principal == ALICE
    assert (port.gate.successful, port.gate.failed) == (1, 0)
    port.clock.advance(60_000)
    port.send(GROUPS)
    assert len(port.served) == 2, "no session ends"
    assert not port.is_closed()


def test_all_frames_may_come_in_one_write() -> None:
    port = Port()
    port.handshake()
    port.token(GOOD)
    port.send(GROUPS)
    assert len(port.served) == 1
    assert len(port.link.sent) == 3


@pytest.mark.parametrize("token", [WRONG, b"\0nobody\0secret"])
def test_a_failure_is_answered_and_closed_after_the_delay(
    token: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    port = Port()
    port.handshake()
    sent = len(port.link.sent)
    port.token(token)
    port.send(GROUPS)
    port.clock.advance(DELAY_MS - 1)
    assert len(port.link.sent) == sent
    assert not port.is_closed()
    port.clock.advance(1)
    answer: SaslAuthenticateResponse = port.answer(ApiKey.SASL_AUTHENTICATE)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == "Authentication failed: Invalid username or password"
    assert port.is_closed()
    assert port.served == []
    assert port.gate.failed == 1
    (line,) = (each.message for each in caplog.records if each.levelno == logging.WARNING)
    assert "failed to authenticate as 'alice' by PLAIN" in line or "'nobody'" in line
    assert "secret" not in caplog.text
    assert "wrong'" not in caplog.text


def test_scram_has_one_text_for_every_cause() -> None:
    port = Port()
    port.handshake("SCRAM-SHA-256")
    port.token(b"nonsense")
    port.clock.advance(DELAY_MS)
    assert port.answer(ApiKey.SASL_AUTHENTICATE).error_message == (
        "Authentication failed during authentication due to invalid credentials with SASL "
        "mechanism SCRAM-SHA-256"
    )


def test_an_unknown_mechanism_is_answered_with_the_list_and_closed_after_the_delay() -> None:
    port = Port()
    port.handshake("GSSAPI")
    assert port.link.sent == []
    port.clock.advance(DELAY_MS)
    answer: SaslHandshakeResponse = port.answer(ApiKey.SASL_HANDSHAKE)
    assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert answer.mechanisms == MECHANISMS
    assert port.is_closed()


@pytest.mark.parametrize("version", [0, 1])
def test_an_exception_in_an_exchange_closes_only_the_connection(
    version: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An exception of `on_frame` would stop the node."""

    def fail(exchange: PlainExchange, token: bytes) -> bytes:
        raise ValueError("a defect")

    monkeypatch.setattr(PlainExchange, "respond", fail)
    port = Port()
    port.handshake(version=version)
    if version:
        port.token(GOOD)
    else:
        port.send(GOOD)
    assert not port.is_closed()
    port.clock.advance(DELAY_MS)
    assert port.is_closed()
    assert "ValueError: a defect (frame of 0 bytes" in caplog.text
    assert port.gate.failed == 1


@pytest.mark.parametrize("what", ["mechanism", "tokens"])
def test_a_client_cannot_fill_the_log_with_failures(
    what: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It chooses a part of the reason, and connects as often as it likes."""
    port = Port()
    for number in range(2, 30):
        port.link = LimitedLink()
        port.connection = port.server.accept(port.link)
        port.handshake(f"mechanism-{number}" if what == "mechanism" else "PLAIN")
        if what == "tokens":
            port.token(bytes(number + 1))
    assert port.gate.failed == 28
    assert len([each for each in caplog.records if each.levelno == logging.WARNING]) == 1


def test_another_request_instead_of_a_token_gets_its_own_response() -> None:
    port = Port()
    port.handshake()
    port.send(GROUPS)
    port.clock.advance(DELAY_MS)
    assert port.answer(ApiKey.LIST_GROUPS).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert port.is_closed()
    assert port.served == []


def test_bare_tokens_after_a_handshake_of_version_0() -> None:
    port = Port()
    port.handshake(version=0)
    port.send(GOOD)
    assert port.link.sent[-1] == b""
    port.send(GROUPS)
    assert port.served[0].principal == ALICE
    bad = Port()
    bad.handshake(version=0)
    sent = len(bad.link.sent)
    bad.send(WRONG)
    bad.clock.advance(DELAY_MS)
    assert len(bad.link.sent) == sent, "a failure has no answer"
    assert bad.is_closed()


def test_software_without_a_name_may_ask_for_the_versions_again() -> None:
    port = Port()
    port.send(ApiVersionsRequest(client_software_name="", client_software_version=""), 3)
    port.send(VERSIONS, 3)
    assert not port.is_closed()
    port.send(VERSIONS, 3)
    assert port.is_closed()


def test_unknown_versions_of_api_versions_are_answered() -> None:
    port = Port()
    port.send(bytes(frame(VERSIONS, 4))[:2] + b"\x00\x63" + bytes(frame(VERSIONS, 4))[4:])
    port.send(VERSIONS, 3)
    assert len(port.link.sent) == 2
    assert not port.is_closed()


def test_large_frames_are_refused_until_the_client_has_authenticated() -> None:
    port = Port(max_receive_bytes=1000)
    assert port.limit() == 1000
    port.handshake()
    port.token(b"x" * 1001)
    assert port.is_closed()
    port = Port(max_receive_bytes=1000)
    port.authenticate()
    assert port.limit() is None, "the bound of the listener"
    request = DescribeProducersRequest(topics=())
    port.send(bytes(frame(request, 0)))
    assert port.served


def test_a_silent_client_is_closed_in_time() -> None:
    port = Port(timeout_ms=500)
    port.handshake()
    port.clock.advance(499)
    assert not port.is_closed()
    port.clock.advance(1)
    assert port.is_closed()
    port = Port(timeout_ms=500)
    port.authenticate()
    port.clock.advance(1000)
    assert not port.is_closed()


def test_a_refused_token_fails_once_if_the_client_then_is_silent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    port = Port(timeout_ms=500)
    port.handshake("OAUTHBEARER")
    port.token(client_first("bad"))
    port.clock.advance(500)
    assert port.is_closed()
    port.connection.on_closed(None)
    assert port.gate.failed == 1
    assert "'mallory' by OAUTHBEARER: the token is bad" in caplog.text


def test_a_request_after_the_session_closes_the_connection() -> None:
    port = Port(max_reauth_ms=2000)
    assert port.authenticate().session_lifetime_ms == 2000
    port.clock.advance(1999)
    port.send(GROUPS)
    assert len(port.served) == 1
    port.clock.advance(1)
    assert not port.is_closed(), "nothing happens to an idle one"
    port.send(GROUPS)
    assert port.is_closed()
    assert len(port.served) == 1
    assert port.gate.expired == 1


def test_a_client_authenticates_again() -> None:
    port = Port(max_reauth_ms=2000)
    port.authenticate()
    for _ in range(3):
        port.clock.advance(1800)
        assert port.authenticate().session_lifetime_ms == 2000
        port.send(GROUPS)
    assert len(port.served) == 3
    assert not port.is_closed()


def test_even_an_expired_session_can_be_renewed() -> None:
    port = Port(max_reauth_ms=2000)
    port.authenticate()
    port.clock.advance(3000)
    assert port.authenticate().error_code == 0
    port.send(GROUPS)
    assert port.served


def test_the_principal_must_stay_the_same() -> None:
    port = Port(max_reauth_ms=2000)
    port.authenticate()
    port.clock.advance(1500)
    port.handshake()
    port.token(OTHER)
    port.send(GROUPS)
    port.clock.advance(DELAY_MS)
    answer = port.answer(ApiKey.SASL_AUTHENTICATE)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert "Cannot change principals" in answer.error_message
    assert port.is_closed()
    assert port.connection.principal == ALICE
    assert port.served == []


def test_no_name_of_a_user_breaks_a_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    port = Port(max_reauth_ms=2000)
    port.authenticate(b"\0new\nline\0x")
    assert port.connection.principal == Principal("User", "new\nline")
    port.clock.advance(1500)
    port.handshake()
    port.token(OTHER)
    (line,) = (each.message for each in caplog.records if each.levelno == logging.WARNING)
    assert "Cannot change principals during re-authentication from 'User:new\\nline'" in line
    assert "\n" not in line


def test_the_mechanism_must_stay_the_same() -> None:
    port = Port(max_reauth_ms=2000)
    port.authenticate()
    port.clock.advance(1500)
    port.handshake("SCRAM-SHA-256")
    assert port.answer(ApiKey.SASL_HANDSHAKE).error_code == 0
    port.token(b"n,,n=alice,r=x")
    assert port.is_closed()


def test_a_request_between_the_frames_of_a_new_authentication_fails() -> None:
    port = Port(max_reauth_ms=2000)
    port.authenticate()
    port.clock.advance(1500)
    port.handshake()
    port.send(GROUPS)
    port.clock.advance(DELAY_MS)
    assert port.served == []
    assert port.is_closed()


@pytest.mark.parametrize("reauth_ms", [0, 60_000])
def test_a_needless_handshake_is_answered_with_an_error(reauth_ms: int) -> None:
    port = Port(max_reauth_ms=reauth_ms)
    port.authenticate()
    if reauth_ms:
        port.authenticate()
        port.clock.advance(999)
    port.handshake()
    assert port.answer(ApiKey.SASL_HANDSHAKE).error_code == ErrorCode.ILLEGAL_SASL_STATE
    port.token(GOOD)
    assert port.answer(ApiKey.SASL_AUTHENTICATE).error_code == ErrorCode.ILLEGAL_SASL_STATE
    port.send(GROUPS)
    assert port.served
    assert not port.is_closed()


# --- any sequence of frames, against a table

KINDS: dict[str, bytes] = {
    "versions": bytes(frame(VERSIONS, 3)),
    "handshake": bytes(frame(SaslHandshakeRequest(mechanism="PLAIN"), 1)),
    "unknown": bytes(frame(SaslHandshakeRequest(mechanism="X"), 1)),
    "good": bytes(frame(SaslAuthenticateRequest(auth_bytes=GOOD), 1)),
    "wrong": bytes(frame(SaslAuthenticateRequest(auth_bytes=WRONG), 1)),
    "bearer": bytes(frame(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1)),
    "token": bytes(frame(SaslAuthenticateRequest(auth_bytes=client_first("good")), 1)),
    "bad token": bytes(frame(SaslAuthenticateRequest(auth_bytes=client_first("bad")), 1)),
    "no token": bytes(frame(SaslAuthenticateRequest(auth_bytes=NO_TOKEN), 1)),
    "groups": bytes(frame(GROUPS, 1)),
    "http": b"GET / HTTP/1.1",
    "empty": b"",
}
END = "closed"
TABLE: dict[str, dict[str, str]] = {
    "new": {"versions": "told", "handshake": "tokens", "bearer": "a token"},
    "told": {"handshake": "tokens", "bearer": "a token"},
    "tokens": {"good": "done"},
    "a token": {"token": "done for a time", "bad token": "refused"},
    "refused": {},
    "done": dict.fromkeys(KINDS.keys() - {"http", "empty"}, "done"),
    "done for a time": {
        **dict.fromkeys(KINDS.keys() - {"http", "empty", "unknown"}, "done for a time"),
        "handshake": "another mechanism",
        "bearer": "again",
    },
    "again": {"token": "done for a time", "bad token": "refused"},
    "another mechanism": {},
}
"""The state after each kind of frame. Every other frame ends the connection."""


@settings(max_examples=300)
@given(st.lists(st.sampled_from(sorted(KINDS)), max_size=8))
def test_any_order_of_frames(kinds: list[str]) -> None:
    port, state, served = Port(), "new", 0
    for kind in kinds:
        state = TABLE.get(state, {}).get(kind, END)
        port.send(KINDS[kind])
        port.clock.advance(MIN_REAUTH_INTERVAL_MS)
        served += state.startswith("done") and kind == "groups"
        assert port.is_closed() == (state == END), (kinds, kind)
        assert len(port.served) == served
        proved = state not in ("new", "told", "tokens", "a token", "refused")
        assert (port.connection.principal == ALICE) == proved or state in (END, "refused")
