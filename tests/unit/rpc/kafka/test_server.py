"""The server end of a link: order, bounds, and refused requests."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from quorate.quorum.protocol import headers
from quorate.quorum.protocol.apis import APIS, ApiKey
from quorate.quorum.protocol.codec import decode, encode
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from quorate.quorum.protocol.schemas.api_versions import ApiVersionsRequest, ApiVersionsResponse
from quorate.quorum.protocol.schemas.cluster import DescribeClusterRequest, DescribeClusterResponse
from quorate.quorum.protocol.schemas.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from quorate.quorum.protocol.schemas.metadata import MetadataRequest, MetadataResponse
from quorate.quorum.protocol.wire import Message
from quorate.quorum.rpc.kafka.server import (
    Connection,
    Handler,
    KafkaServer,
    RawHandler,
    RequestContext,
    ServerSettings,
)
from tests.unit.rpc.kafka.fakes import FakeClock, FakeLink

METADATA = MetadataRequest(topics=None)


def answer(cluster_id: str) -> MetadataResponse:
    return MetadataResponse(brokers=(), topics=(), cluster_id=cluster_id)


def frame(
    request: Message, version: int, correlation_id: int = 1, client_id: str | None = "me"
) -> memoryview:
    header_version = APIS[request.API_KEY].request_header_version(version)
    head = headers.request_header(
        request.API_KEY, version, correlation_id, client_id or "", header_version
    )
    if client_id is None:
        head = head[:8] + b"\xff\xff" + (b"\x00" if header_version >= 2 else b"")
    return memoryview(head + encode(request, version))


class Served:
    """A server whose metadata handler keeps its contexts and requests."""

    def __init__(
        self,
        handlers: dict[int, Handler] | None = None,
        raw: dict[int, RawHandler] | None = None,
        settings: ServerSettings | None = None,
    ) -> None:
        self.clock = FakeClock()
        self.link = FakeLink()
        self.contexts: list[RequestContext] = []
        self.requests: list[Any] = []
        self.server = KafkaServer(
            {ApiKey.METADATA: self.keep} if handlers is None else handlers,
            self.clock,
            raw_handlers=raw,
            settings=settings,
        )
        self.connection: Connection = self.server.accept(self.link)

    def keep(self, context: RequestContext, request: Any) -> None:
        self.contexts.append(context)
        self.requests.append(request)

    def receive(self, *frames: memoryview) -> None:
        for each in frames:
            self.connection.on_frame(each)

    def reads(self) -> bool:
        return not self.link.paused

    def answered(self) -> list[int]:
        return [headers.read_correlation_id(each) for each in self.link.sent]


def test_a_request_and_its_response() -> None:
    served = Served()
    served.receive(frame(METADATA, 12, correlation_id=77))
    (context,) = served.contexts
    assert (context.api_key, context.version, context.correlation_id) == (ApiKey.METADATA, 12, 77)
    assert (context.client_id, context.peer, context.received_us) == (
        "me",
        served.link.peer,
        1_000_000,
    )
    assert served.requests == [METADATA]
    context.respond(answer("c"))
    (sent,) = served.link.sent
    body = headers.response_body(memoryview(sent), 1)
    assert headers.read_correlation_id(sent) == 77
    assert decode(MetadataResponse, 12, body).cluster_id == "c"


@pytest.mark.parametrize("version", [1, 9])
def test_a_client_without_an_id(version: int) -> None:
    served = Served()
    served.receive(frame(METADATA, version, client_id=None))
    assert served.contexts[0].client_id is None


def test_responses_leave_in_the_order_of_the_requests() -> None:
    served = Served()
    served.receive(*(frame(METADATA, 9, correlation_id=each) for each in (1, 2, 3, 4)))
    first, second, third, fourth = served.contexts
    third.respond(answer("3"))
    second.respond(answer("2"))
    assert served.answered() == []
    first.respond(answer("1"))
    assert served.answered() == [1, 2, 3]
    fourth.respond(answer("4"))
    assert served.answered() == [1, 2, 3, 4]


def test_a_request_without_response_holds_up_nothing() -> None:
    """A Produce with acks=0 has no response."""
    served = Served()
    served.receive(*(frame(METADATA, 9, correlation_id=each) for each in (1, 2, 3)))
    first, second, third = served.contexts
    third.respond(answer("3"))
    second.no_response()
    first.respond(answer("1"))
    assert served.answered() == [1, 3]


def test_an_answer_is_given_once(caplog: pytest.LogCaptureFixture) -> None:
    """A second answer closes the connection. It does not raise in the code that gave it."""
    served = Served()
    served.receive(frame(METADATA, 9))
    served.contexts[0].respond(answer("c"))
    served.contexts[0].respond(answer("c"))
    assert len(served.link.sent) == 1
    assert served.link.closed
    assert "Metadata was answered twice" in caplog.text


def test_a_raw_handler_gets_the_body_and_answers_in_parts() -> None:
    bodies: list[bytes] = []

    def echo(context: RequestContext, body: memoryview) -> None:
        bodies.append(bytes(body))
        context.respond_raw(b"one", memoryview(b"two"))

    served = Served(handlers={}, raw={ApiKey.METADATA: echo})
    served.receive(frame(METADATA, 9, correlation_id=5))
    assert bodies == [encode(METADATA, 9)]
    assert served.link.sent == [b"\x00\x00\x00\x05\x00onetwo"]


def test_answers_after_the_connection_is_gone_go_nowhere() -> None:
    served = Served()
    served.receive(frame(METADATA, 9), frame(METADATA, 9))
    served.connection.on_closed(None)
    first, second = served.contexts
    assert first.closed
    second.respond(answer("2"))
    first.respond(answer("1"))
    assert served.link.sent == []
    assert len(served.server.quotas) == 0


def test_api_versions_from_the_future_is_answered_in_version_0() -> None:
    """KIP-511: the response names the served versions of ApiVersions, so that the client can ask
    again."""
    served = Served(handlers={ApiKey.API_VERSIONS: unexpected})
    request = headers.request_header(ApiKey.API_VERSIONS, 99, 8, "new", 2) + b"\x01\x02who knows"
    served.receive(memoryview(request))
    (sent,) = served.link.sent
    assert headers.read_correlation_id(sent) == 8
    response = decode(ApiVersionsResponse, 0, sent[4:])
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    (only,) = response.api_keys
    assert (only.api_key, only.min_version, only.max_version) == (ApiKey.API_VERSIONS, 0, 4)
    assert not served.link.closed


def unexpected(context: RequestContext, request: Any) -> None:
    raise AssertionError("no handler may see this")


def test_the_header_of_an_api_versions_response_is_always_version_0() -> None:
    served = Served(
        handlers={
            ApiKey.API_VERSIONS: lambda context, _: context.respond(
                ApiVersionsResponse(api_keys=())
            )
        }
    )
    request = ApiVersionsRequest(client_software_name="x", client_software_version="1")
    served.receive(frame(request, 3, correlation_id=2))
    assert served.link.sent == [b"\x00\x00\x00\x02" + encode(ApiVersionsResponse(api_keys=()), 3)]


Frames = Callable[[], memoryview]
REFUSED: dict[str, tuple[Frames, str]] = {
    "version": (
        lambda: memoryview(headers.request_header(ApiKey.METADATA, 40, 1, "x", 2)),
        "Metadata version 40 is not supported, only 0 to 13",
    ),
    "produce v2, advertised but refused": (
        lambda: memoryview(headers.request_header(ApiKey.PRODUCE, 2, 1, "x", 1)),
        "Produce version 2",
    ),
    "api that nobody knows": (
        lambda: memoryview(headers.request_header(999, 0, 1, "x", 1)),
        "this port does not serve API key 999",
    ),
    "api without a handler": (
        lambda: memoryview(headers.request_header(ApiKey.FETCH, 12, 1, "x", 2)),
        "this port does not serve API key 1",
    ),
    "no header": (lambda: memoryview(b"\x00\x03\x00"), "shorter than its header"),
    "half a header": (lambda: frame(METADATA, 9)[:9], "ends in its header"),
    "client id too long": (
        lambda: memoryview(b"\x00\x03\x00\x09" + bytes(4) + b"\x7f\xff" + b"x"),
        "client id of 32767",
    ),
    "client id no text": (
        lambda: memoryview(b"\x00\x03\x00\x09" + bytes(4) + b"\x00\x01\xff\x00"),
        "UTF-8",
    ),
    "half a body": (lambda: frame(METADATA, 9)[:-1], "cut off"),
}


@pytest.mark.parametrize(("make", "line"), REFUSED.values(), ids=REFUSED)
def test_closed_with_one_log_line(
    make: Frames, line: str, caplog: pytest.LogCaptureFixture
) -> None:
    served = Served(handlers={ApiKey.METADATA: unexpected, ApiKey.PRODUCE: unexpected})
    with caplog.at_level(logging.WARNING, "quorate.kafka"):
        served.receive(make(), make())
    assert served.link.closed
    (record,) = caplog.records
    assert record.name == "quorate.kafka"
    assert line in record.getMessage()
    assert "10.0.0.1:5000" in record.getMessage()


def test_tagged_fields_of_the_header_are_skipped() -> None:
    served = Served()
    head = headers.request_header(ApiKey.METADATA, 9, 1, "me", 2)[:-1] + b"\x01\x63\x02zz"
    served.receive(memoryview(head + encode(METADATA, 9)))
    assert served.requests == [METADATA]


def test_a_kafka_error_is_answered_where_the_api_has_a_place_for_it() -> None:
    def fail(context: RequestContext, request: Any) -> None:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "soon")

    served = Served(handlers={ApiKey.DESCRIBE_CLUSTER: fail, ApiKey.FIND_COORDINATOR: fail})
    served.receive(
        frame(DescribeClusterRequest(include_cluster_authorized_operations=False), 1),
        frame(FindCoordinatorRequest(key="group"), 3),
    )
    described, found = (memoryview(each)[5:] for each in served.link.sent)
    cluster = decode(DescribeClusterResponse, 1, described)
    assert (cluster.error_code, cluster.error_message) == (15, "soon")
    assert decode(FindCoordinatorResponse, 3, found).error_code == 15


def test_a_kafka_error_closes_the_connection_where_there_is_no_place(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(context: RequestContext, request: Any) -> None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "nonsense")

    served = Served(handlers={ApiKey.METADATA: fail})
    served.receive(frame(METADATA, 9))
    assert served.link.closed
    assert "Metadata failed: INVALID_REQUEST: nonsense" in caplog.text


def test_a_response_that_its_version_cannot_say_ends_the_connection() -> None:
    served = Served()
    served.receive(frame(METADATA, 9))
    served.contexts[0].respond(MetadataResponse(brokers=(), topics=(), controller_id=1 << 40))
    assert served.link.closed
    assert served.link.sent == []


def test_requests_in_flight_are_bounded_by_not_reading() -> None:
    served = Served(settings=ServerSettings(max_in_flight=2))
    served.receive(frame(METADATA, 9))
    assert served.reads()
    served.receive(frame(METADATA, 9))
    assert not served.reads()
    served.contexts[1].respond(answer("2"))
    assert not served.reads(), "the first still holds up both"
    served.contexts[0].respond(answer("1"))
    assert served.reads()


def test_bytes_in_flight_are_bounded_by_not_reading() -> None:
    request = frame(METADATA, 9)
    served = Served(settings=ServerSettings(max_in_flight_bytes=2 * len(request)))
    served.receive(request)
    assert served.reads()
    served.receive(request)
    assert not served.reads()
    served.contexts[0].respond(answer("1"))
    assert served.reads()


def test_a_client_that_does_not_take_its_answers_is_not_read() -> None:
    served = Served(settings=ServerSettings(max_pending_bytes=100, drain_check_ms=10))
    served.receive(frame(METADATA, 9))
    served.link.pending_bytes = 101
    served.contexts[0].respond(answer("1"))
    assert not served.reads()
    served.clock.advance(10)
    assert not served.reads()
    served.link.pending_bytes = 100
    served.clock.advance(10)
    assert served.reads()
    assert served.clock.waiting == 1, "the check of idle connections"


def test_nothing_is_looked_at_after_the_connection_is_gone() -> None:
    served = Served(settings=ServerSettings(max_pending_bytes=100))
    served.receive(frame(METADATA, 9))
    served.link.pending_bytes = 101
    served.contexts[0].respond(answer("1"))
    served.connection.on_closed(None)
    served.clock.advance(1000)
    assert served.clock.waiting == 0


def test_what_is_served_is_told() -> None:
    served = Served(handlers={ApiKey.METADATA: unexpected}, raw={ApiKey.PRODUCE: unexpected})
    assert served.server.api_keys == (ApiKey.PRODUCE, ApiKey.METADATA)
