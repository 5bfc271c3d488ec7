"""The boundary of a Kafka port: only exceptions about the node's own state leave a request."""

from __future__ import annotations

import errno
import gc
import hashlib
import logging
import weakref
from typing import Any

import pytest

from quorate.quorum.log.files.errors import CorruptBatch, CorruptLog
from quorate.quorum.log_limit import INTERVAL_MS
from quorate.quorum.protocol import headers
from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.protocol.codec import decode
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.cluster import DescribeClusterRequest, DescribeClusterResponse
from quorate.quorum.raft.errors import InvariantViolation
from quorate.quorum.rpc.kafka import connection
from quorate.quorum.rpc.kafka.boundary import HASHED_BYTES, Boundary
from quorate.quorum.rpc.kafka.server import RequestContext
from quorate.quorum.rpc.tracebacks import drop_stack_frames
from quorate.quorum.state_in_doubt import StateInDoubt, changing
from tests.unit.rpc.kafka.fakes import FakeClock, FakeLink
from tests.unit.rpc.kafka.test_server import METADATA, Served, answer, frame

CLUSTER = DescribeClusterRequest(include_cluster_authorized_operations=False)
REQUEST_FAULTS = [
    ValueError("x"),
    KeyError("x"),
    OverflowError("x"),
    MemoryError(),
    RecursionError(),
    AssertionError("x"),
    OSError(errno.EMFILE, "too many open files"),
]
NODE_FAULTS = [
    StateInDoubt("half"),
    InvariantViolation("a leader lacks a snapshot"),
    CorruptLog("log", 0, 0, "damaged"),
    OSError(errno.EIO, "no disk"),
]


def raising(error: Exception) -> Served:
    def handle(context: RequestContext, request: Any) -> None:
        raise error

    return Served(handlers={ApiKey.METADATA: handle, ApiKey.DESCRIBE_CLUSTER: handle})


def error_of(served: Served) -> int:
    body = headers.response_body(memoryview(served.link.sent[0]), 1)
    return decode(DescribeClusterResponse, 1, body).error_code


@pytest.mark.parametrize("error", REQUEST_FAULTS, ids=repr)
def test_an_exception_of_a_handler_fails_its_request(error: Exception) -> None:
    served = raising(error)
    served.receive(frame(CLUSTER, 1))
    assert error_of(served) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert not served.link.closed
    assert served.server.routes[ApiKey.DESCRIBE_CLUSTER].failures == 1


@pytest.mark.parametrize("error", REQUEST_FAULTS, ids=repr)
def test_it_closes_the_connection_where_the_response_has_no_place_for_it(error: Exception) -> None:
    served = raising(error)
    served.receive(frame(METADATA, 9))
    assert served.link.closed
    assert served.link.sent == []


def test_an_exception_of_the_decoder_is_answered_in_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    served = raising(ValueError("x"))

    def reader(*args: object) -> None:
        raise MemoryError

    monkeypatch.setattr(connection, "reader", reader)
    served.receive(frame(CLUSTER, 1))
    served.receive(frame(CLUSTER, 1))
    assert error_of(served) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert len(served.link.sent) == 2
    assert served.connection.response_bytes == 0


def test_only_the_first_bytes_of_a_large_request_are_hashed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    request = bytes(range(256)) * (HASHED_BYTES // 128)
    boundary = Boundary(FakeClock())
    boundary.report(ValueError("x"), "Fetch", 12, "User:bob at 10.0.0.1:5000", request)
    assert hashlib.sha256(request[:HASHED_BYTES]).hexdigest()[:12] in caplog.text
    assert f"frame of {len(request)} bytes" in caplog.text


def test_a_corrupt_batch_is_a_corrupt_message() -> None:
    served = raising(CorruptBatch("no batch"))
    served.receive(frame(CLUSTER, 1))
    assert error_of(served) == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("error", NODE_FAULTS, ids=repr)
def test_a_fault_of_the_node_passes(error: Exception) -> None:
    served = raising(error)
    with pytest.raises(type(error)):
        served.receive(frame(CLUSTER, 1))


def test_a_change_left_half_done_passes() -> None:
    def handle(context: RequestContext, request: Any) -> None:
        with changing("the image"):
            raise ValueError("x")

    served = Served(handlers={ApiKey.METADATA: handle})
    with pytest.raises(StateInDoubt, match="the image"):
        served.receive(frame(METADATA, 9))


def test_an_exception_while_a_callback_answers_stays_in_its_request() -> None:
    """Return the caller of the callback is another part of the node, such as a partition."""
    served = Served()
    served.receive(frame(METADATA, 9))
    context = served.contexts[0]

    def build(value: int) -> None:
        raise ValueError(value)

    context.callback(build)(7)
    assert served.link.closed
    context.respond(answer("later"))
    assert served.link.sent == []


def test_one_line_names_the_request_and_further_ones_are_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    served = raising(ValueError("the cause"))
    with caplog.at_level(logging.WARNING, "quorate.kafka"):
        for _ in range(10):
            served.receive(frame(CLUSTER, 1))
        served.clock.advance(INTERVAL_MS)
        served.receive(frame(CLUSTER, 1))
    first, second = (each.getMessage() for each in caplog.records)
    for part in (
        "DescribeCluster v1 of User:ANONYMOUS at 10.0.0.1:5000 failed: ValueError: the cause",
        "sha256 ",
        "raise error",
    ):
        assert part in first
    assert "(9 more like it were not logged)" in second
    assert "\n" not in second, "the traceback is logged once"


class Large:
    """An object in place of a request's bytes."""


def test_an_exception_that_is_kept_keeps_no_frames() -> None:
    large = Large()
    reference = weakref.ref(large)

    def fail(held: Large) -> None:
        try:
            raise KeyError("inner")
        except KeyError as inner:
            raise ValueError("outer") from inner

    kept = None
    try:
        fail(large)
    except ValueError as error:
        kept = error
    del large
    assert kept is not None
    gc.disable()
    try:
        assert reference() is not None
        drop_stack_frames(kept)
        assert reference() is None
    finally:
        gc.enable()


MALFORMED = frame(METADATA, 9)[:-2]


def test_a_malformed_request_has_a_line_with_its_api_version_principal_and_hash(
    caplog: pytest.LogCaptureFixture,
) -> None:
    served = raising(ValueError("x"))
    served.receive(MALFORMED)
    assert served.link.closed
    (line,) = caplog.messages
    digest = hashlib.sha256(MALFORMED).hexdigest()[:12]
    assert line.startswith("closing the connection from 10.0.0.1:5000 of User:ANONYMOUS: malformed")
    assert line.endswith(f"(Metadata v9, frame of {len(MALFORMED)} bytes, sha256 {digest})")
    assert served.server.resources.refusals == {"Metadata": 1}


def test_connections_with_malformed_requests_share_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = raising(ValueError("x")).server
    for _ in range(100):
        link = FakeLink()
        server.accept(link).on_frame(memoryview(MALFORMED))
        assert link.closed
    assert len(caplog.messages) == 1
    assert server.resources.refusals == {"Metadata": 100}


@pytest.mark.parametrize("request_frame", [b"", b"\x00\x03\x7f\xff\x00\x00\x00\x01", b"\x7f" * 20])
def test_a_request_without_a_readable_header_is_counted(
    request_frame: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    served = raising(ValueError("x"))
    served.receive(memoryview(request_frame))
    assert served.link.closed and len(caplog.messages) == 1
    assert served.server.resources.refusals == {"unknown": 1}
    assert ("sha256" in caplog.text) == bool(request_frame)
