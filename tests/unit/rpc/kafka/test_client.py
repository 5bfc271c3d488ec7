"""The client end of a link: pipelining, timeouts, lost links, versions."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from quorate.quorum.protocol import headers
from quorate.quorum.protocol.apis import APIS, ApiKey
from quorate.quorum.protocol.codec import DecodeError, decode, encode
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from quorate.quorum.protocol.schemas.metadata import MetadataRequest, MetadataResponse
from quorate.quorum.rpc.kafka.client import (
    ClientError,
    ClientSettings,
    Disconnected,
    KafkaClient,
    NotSent,
    RequestTimedOut,
    UnsupportedVersion,
)
from quorate.quorum.seams import Address
from tests.unit.rpc.kafka.fakes import FakeClock, FakeLink, FakeTransport

METADATA = APIS[ApiKey.METADATA]
VERSIONS = APIS[ApiKey.API_VERSIONS]
Outcome = tuple[bytes | None, ClientError | None]


class Client:
    """A KafkaClient over a link in memory."""

    def __init__(self, **settings: Any) -> None:
        self.link = FakeLink(peer=Address("broker", 9092))
        self.clock = FakeClock()
        self.client = KafkaClient(self.link, self.clock, ClientSettings(**settings))
        self.outcomes: dict[str, Outcome] = {}

    def send(self, name: str, timeout_ms: int | None = None) -> None:
        def done(body: memoryview | None, error: ClientError | None) -> None:
            assert name not in self.outcomes, "called back twice"
            self.outcomes[name] = (None if body is None else bytes(body), error)

        self.client.send_raw(METADATA, 9, name.encode(), done=done, timeout_ms=timeout_ms)

    def receive(self, correlation_id: int, body: bytes, header_version: int = 1) -> None:
        head = headers.response_header(correlation_id, header_version)
        self.client.on_frame(memoryview(head + body))

    def error_of(self, name: str) -> type[ClientError] | None:
        return type(error) if (error := self.outcomes[name][1]) else None


def test_requests_are_pipelined_and_answered_in_order() -> None:
    client = Client(client_id="tester")
    client.send("one")
    client.send("two")
    assert client.link.sent == [
        headers.request_header(ApiKey.METADATA, 9, 1, "tester", 2) + b"one",
        headers.request_header(ApiKey.METADATA, 9, 2, "tester", 2) + b"two",
    ]
    assert client.client.in_flight == 2
    client.receive(1, b"first")
    assert client.outcomes == {"one": (b"first", None)}
    client.receive(2, b"second")
    assert client.outcomes["two"] == (b"second", None)


@pytest.mark.parametrize(
    "answer",
    [b"\x00\x00", b"\x00\x00\x00\x02\x00late", b"\x00\x00\x00\x01\x01"],
    ids=["short", "another request's", "cut off in its header"],
)
def test_a_wrong_answer_is_a_protocol_error_and_no_answer(answer: bytes) -> None:
    client = Client()
    client.send("one")
    with pytest.raises(DecodeError):
        client.client.on_frame(memoryview(answer))
    client.client.on_closed(None)
    assert client.error_of("one") is Disconnected


def test_an_answer_that_nobody_asked_for() -> None:
    with pytest.raises(DecodeError, match="not the oldest"):
        Client().receive(1, b"")


def test_a_lost_link_fails_all_that_waits_and_all_that_comes() -> None:
    client = Client()
    client.send("one")
    client.send("two")
    client.client.on_closed(OSError("reset"))
    assert client.error_of("one") is client.error_of("two") is Disconnected
    client.send("three")
    assert "three" not in client.outcomes, "never called back inside the call"
    client.clock.advance(0)
    error = client.outcomes["three"][1]
    assert isinstance(error, NotSent)
    assert not error.sent
    assert client.client.closed
    assert client.clock.waiting == 0


def test_a_timeout_takes_the_link_with_it() -> None:
    """Responses arrive in order, so no request behind the lost one can be answered."""
    client = Client(request_timeout_ms=100)
    client.send("one")
    client.clock.advance(60)
    client.send("two")
    client.receive(1, b"")
    client.clock.advance(40)
    assert list(client.outcomes) == ["one"], "the second has 60 ms left"
    client.clock.advance(60)
    assert client.error_of("two") is RequestTimedOut
    assert client.link.aborted
    assert client.clock.waiting == 0


def test_a_shorter_timeout_behind_a_longer_one() -> None:
    client = Client()
    client.send("slow", timeout_ms=10_000)
    client.send("fast", timeout_ms=50)
    client.clock.advance(50)
    assert client.error_of("fast") is RequestTimedOut


def test_one_timer_serves_all() -> None:
    client = Client()
    for name in "abcdef":
        client.send(name)
    assert client.clock.waiting == 1


def test_requests_in_flight_are_bounded() -> None:
    client = Client(max_in_flight=1)
    client.send("one")
    client.send("two")
    client.clock.advance(0)
    assert client.error_of("two") is NotSent
    assert len(client.link.sent) == 1
    client.receive(1, b"")
    assert client.error_of("one") is None


def test_closing_fails_what_waits() -> None:
    client = Client()
    client.send("one")
    client.client.close()
    assert client.error_of("one") is Disconnected
    assert client.link.closed


async def test_call_encodes_and_decodes() -> None:
    client = Client()
    call = asyncio.ensure_future(client.client.call(MetadataRequest(topics=None), 9))
    await asyncio.sleep(0)
    response = MetadataResponse(brokers=(), topics=(), cluster_id="c")
    client.receive(1, encode(response, 9))
    assert await call == response


async def test_a_call_fails_with_the_link() -> None:
    client = Client()
    call = asyncio.ensure_future(client.client.call(MetadataRequest(topics=None), 9))
    await asyncio.sleep(0)
    client.client.on_closed(None)
    with pytest.raises(Disconnected, match="broker:9092"):
        await call


async def test_a_cancelled_call_leaves_its_place_in_the_order() -> None:
    client = Client()
    call = asyncio.ensure_future(client.client.call(MetadataRequest(topics=None), 9))
    await asyncio.sleep(0)
    call.cancel()
    client.send("next")
    client.receive(1, b"for nobody")
    client.receive(2, b"mine")
    assert client.outcomes["next"] == (b"mine", None)
    with pytest.raises(asyncio.CancelledError):
        await call


async def test_connect_makes_a_client_of_the_link() -> None:
    link = FakeLink()
    client = await KafkaClient.connect(FakeTransport(link), FakeClock(), Address("here", 1))
    assert client.link is link
    assert not client.closed


def served(**versions: tuple[int, int]) -> tuple[ApiVersion, ...]:
    return tuple(
        ApiVersion(api_key=ApiKey[name], min_version=low, max_version=high)
        for name, (low, high) in versions.items()
    )


async def test_negotiation() -> None:
    client = Client()
    negotiation = asyncio.ensure_future(client.client.negotiate())
    await asyncio.sleep(0)
    head = headers.request_header(ApiKey.API_VERSIONS, 4, 1, "quorate", 2)
    asked = decode(ApiVersionsRequest, 4, client.link.sent[0][len(head) :])
    assert asked.client_software_name == "quorate"
    offered = served(METADATA=(0, 9), FETCH=(4, 30), LIST_OFFSETS=(11, 12))
    client.receive(1, encode(ApiVersionsResponse(api_keys=offered), 4), header_version=0)
    assert await negotiation == {3: (0, 9), 1: (4, 30), 2: (11, 12)}
    assert client.client.version_of(ApiKey.METADATA) == 9
    assert client.client.version_of(ApiKey.FETCH) == APIS[ApiKey.FETCH].max_version
    with pytest.raises(UnsupportedVersion, match="ListOffsets: broker:9092 serves versions 11"):
        client.client.version_of(ApiKey.LIST_OFFSETS)
    with pytest.raises(UnsupportedVersion):
        client.client.version_of(ApiKey.CREATE_TOPICS)


async def test_negotiation_with_an_old_server() -> None:
    """KIP-511: the server answers error 35 in version 0, and the client asks in a version that it
    offers."""
    client = Client()
    negotiation = asyncio.ensure_future(client.client.negotiate())
    await asyncio.sleep(0)
    refusal = ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=served(API_VERSIONS=(0, 2))
    )
    client.receive(1, encode(refusal, 0), header_version=0)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert headers.read_fixed(client.link.sent[1]) == (ApiKey.API_VERSIONS, 2, 2)
    answer = ApiVersionsResponse(api_keys=served(METADATA=(0, 5)))
    client.receive(2, encode(answer, 2), header_version=0)
    assert await negotiation == {3: (0, 5)}


async def test_negotiation_with_a_server_that_refuses_what_it_offers() -> None:
    client = Client()
    negotiation = asyncio.ensure_future(client.client.negotiate())
    await asyncio.sleep(0)
    refusal = ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=served(API_VERSIONS=(0, 4))
    )
    client.receive(1, encode(refusal, 0), header_version=0)
    with pytest.raises(UnsupportedVersion, match="version 4 of ApiVersions"):
        await negotiation


def test_before_negotiation_our_highest_version_is_taken() -> None:
    assert Client().client.version_of(ApiKey.API_VERSIONS) == VERSIONS.max_version
