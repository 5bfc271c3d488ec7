"""Long requests in slices: fairness, order, the CPU limit, and the end of their connections."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.protocol import headers
from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.protocol.codec import decode
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.cluster import DescribeClusterRequest, DescribeClusterResponse
from quorate.quorum.rpc.kafka.node_resources import NodeResources
from quorate.quorum.rpc.kafka.request_scheduler import RequestScheduler, SchedulerLimits
from quorate.quorum.rpc.kafka.server import Connection, KafkaServer, RequestContext
from quorate.quorum.state_in_doubt import StateInDoubt
from tests.unit.rpc.kafka.fakes import FakeClock, FakeLink
from tests.unit.rpc.kafka.test_server import METADATA, answer, frame

LIMITS = SchedulerLimits(slice_ms=2, steps_per_slice=100, duty=0.5, request_cpu_ms=50)
CLUSTER = DescribeClusterRequest(include_cluster_authorized_operations=False)


class Working:
    """A server whose requests take `steps` steps of `step_ms` of CPU each."""

    def __init__(self, steps: int, step_ms: float) -> None:
        self.clock = FakeClock()
        self.steps = steps
        self.step_ms = step_ms
        self.ran: list[str] = []  # the client of each step
        self.ended: list[str] = []
        self.raises: Exception | None = None
        self.work = RequestScheduler(self.clock, LIMITS)
        self.resources = NodeResources(self.clock, self.work)
        self.server = KafkaServer(
            {ApiKey.METADATA: self.handle, ApiKey.DESCRIBE_CLUSTER: self.handle},
            self.clock,
            resources=self.resources,
        )

    def connect(self) -> tuple[Connection, FakeLink]:
        link = FakeLink()
        return self.server.accept(link), link

    def handle(self, context: RequestContext, request: Any) -> IncrementalWork[None]:
        name = context.client_id or ""
        try:
            for _ in range(self.steps):
                self.clock.used_cpu_ms += self.step_ms
                self.ran.append(name)
                yield
            if self.raises is not None:
                raise self.raises
            yield from context.respond_steps(answer(name))
        finally:
            self.ended.append(name)

    def run(self, rounds: int = 1000) -> None:
        for _ in range(rounds):
            if not self.clock.waiting:
                return
            self.clock.advance(1)
            if not len(self.work):
                return


def error_of(link: FakeLink) -> int:
    body = headers.response_body(memoryview(link.sent[0]), 1)
    return decode(DescribeClusterResponse, 1, body).error_code


def test_short_work_is_answered_immediately() -> None:
    working = Working(steps=1, step_ms=0.1)
    connection, link = working.connect()
    connection.on_frame(frame(METADATA, 9))
    assert len(link.sent) == 1
    assert not link.paused


def test_long_work_is_done_in_slices_and_its_connection_is_not_read() -> None:
    working = Working(steps=10, step_ms=1)
    connection, link = working.connect()
    connection.on_frame(frame(METADATA, 9))
    assert len(working.ran) == 2, "one slice of 2 ms"
    assert link.paused
    working.run()
    assert len(working.ran) == 10
    assert len(link.sent) == 1
    assert not link.paused


def test_slices_take_at_most_their_share_of_the_time() -> None:
    working = Working(steps=40, step_ms=1)
    connection, _ = working.connect()
    connection.on_frame(frame(METADATA, 9))
    begun_ms = working.clock.now_ms()
    working.run()
    assert working.clock.now_ms() - begun_ms >= (40 - LIMITS.slice_ms) / LIMITS.duty - 2


def test_slices_end_by_steps_where_the_cpu_clock_stands_still() -> None:
    working = Working(steps=150, step_ms=0)
    connection, link = working.connect()
    connection.on_frame(frame(METADATA, 9))
    assert len(working.ran) == LIMITS.steps_per_slice
    working.run()
    assert len(link.sent) == 1


def test_the_connection_that_used_least_is_next() -> None:
    working = Working(steps=30, step_ms=1)
    greedy, _ = working.connect()
    light, light_link = working.connect()
    greedy.on_frame(frame(METADATA, 9, client_id="greedy"))
    for _ in range(20):
        working.clock.advance(1)
    working.steps = 1
    light.on_frame(frame(METADATA, 9, client_id="light"))
    before = len(working.ran)
    while "light" not in working.ran:
        working.clock.advance(1)
    assert len(working.ran) - before <= 3, "the light one waited for more than a slice"
    working.run()
    assert len(light_link.sent) == 1


def test_two_long_requests_share() -> None:
    working = Working(steps=20, step_ms=1)
    for name in ("a", "b"):
        connection, _ = working.connect()
        connection.on_frame(frame(METADATA, 9, client_id=name))
    working.run()
    half = working.ran[: len(working.ran) // 2]
    assert abs(half.count("a") - half.count("b")) <= 4


def test_new_connections_do_not_starve_one_that_waits() -> None:
    """Each new connection has work for one slice, and the next one arrives when it is served."""
    working = Working(steps=20, step_ms=1)
    patient, patient_link = working.connect()
    patient.on_frame(frame(METADATA, 9, client_id="patient"))
    working.steps = 1
    for _ in range(100):
        connection, _ = working.connect()
        connection.on_frame(frame(METADATA, 9, client_id="new"))
        working.clock.advance(3)
    assert len(patient_link.sent) == 1


@pytest.mark.parametrize("raises", [None, ValueError("no such thing")])
def test_work_that_fails_leaves_nothing_that_waits(raises: Exception | None) -> None:
    """A delayed fetch is read again in steps, which are cut off or raise."""
    working = Working(steps=10**9 if raises is None else 10, step_ms=1)
    working.raises = raises
    connection, _ = working.connect()
    abandoned: list[int] = []

    def handle(context: RequestContext, request: Any) -> IncrementalWork[None]:
        context.on_abandoned = lambda: abandoned.append(1)
        return working.handle(context, request)

    working.server.routes[ApiKey.DESCRIBE_CLUSTER].handle = handle
    connection.on_frame(frame(CLUSTER, 1))
    working.run()
    assert abandoned == [1]


def test_work_without_end_is_cut_off_with_an_error(caplog: pytest.LogCaptureFixture) -> None:
    working = Working(steps=10**9, step_ms=1)
    connection, link = working.connect()
    with caplog.at_level(logging.WARNING, "quorate.kafka"):
        connection.on_frame(frame(CLUSTER, 1))
        working.run()
    assert len(working.ran) == LIMITS.request_cpu_ms
    assert working.ended == ["me"], "its steps are closed"
    response = decode(
        DescribeClusterResponse, 1, headers.response_body(memoryview(link.sent[0]), 1)
    )
    assert response.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert "cut off after 50 ms of CPU" in caplog.text
    assert working.work.cut_off == 1
    assert not link.closed
    connection.on_frame(frame(CLUSTER, 2))
    working.run()
    assert working.work.cut_off == 2
    assert caplog.text.count("cut off") == 1, "one line of an API in each interval of LogLimit"


def test_cut_off_work_closes_the_connection_where_its_error_has_no_place() -> None:
    working = Working(steps=10**9, step_ms=1)
    connection, link = working.connect()
    connection.on_frame(frame(METADATA, 9))
    working.run()
    assert link.closed
    assert link.sent == []


def test_the_end_of_a_connection_ends_its_work() -> None:
    working = Working(steps=100, step_ms=1)
    connection, link = working.connect()
    connection.on_frame(frame(METADATA, 9))
    connection.on_closed(None)
    assert working.ended == ["me"]
    ran = len(working.ran)
    working.clock.advance(1000)
    assert len(working.ran) == ran
    assert link.sent == []


def test_a_refusal_in_a_step_ends_the_work_of_its_connection() -> None:
    working = Working(steps=1, step_ms=3)

    def handle(context: RequestContext, request: Any) -> IncrementalWork[None]:
        yield
        context.connection.refuse("enough")
        yield
        working.ran.append("went on")

    server = KafkaServer({ApiKey.METADATA: handle}, working.clock, resources=working.resources)
    link = FakeLink()
    server.accept(link).on_frame(frame(METADATA, 9))
    assert link.closed
    assert working.ran == []


def test_responses_keep_the_order_of_the_requests() -> None:
    working = Working(steps=10, step_ms=1)
    connection, link = working.connect()
    connection.on_frame(frame(METADATA, 9, correlation_id=1))
    working.steps = 0
    connection.on_frame(frame(METADATA, 9, correlation_id=2))
    working.run()
    assert [headers.read_correlation_id(each) for each in link.sent] == [1, 2]


def test_an_exception_in_a_later_step_fails_the_request() -> None:
    working = Working(steps=10, step_ms=1)
    working.raises = ValueError("no such thing")
    connection, link = working.connect()
    connection.on_frame(frame(CLUSTER, 1))
    working.run()
    response = decode(
        DescribeClusterResponse, 1, headers.response_body(memoryview(link.sent[0]), 1)
    )
    assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert not link.paused


def test_a_state_in_doubt_in_a_later_step_stops_the_node() -> None:
    working = Working(steps=10, step_ms=1)
    working.raises = StateInDoubt("half done")
    connection, _ = working.connect()
    connection.on_frame(frame(CLUSTER, 1))
    with pytest.raises(StateInDoubt):
        working.run()


def test_cpu_is_shared_also_when_the_steps_of_one_are_long() -> None:
    """Round robin would give a connection with steps of 10 ms five times the CPU of another one."""
    working = Working(steps=0, step_ms=0)
    used: dict[str, float] = {"short": 0, "long": 0}

    def handle(context: RequestContext, request: Any) -> IncrementalWork[None]:
        name = context.client_id or ""
        while True:
            step_ms = 10 if name == "long" else 1
            working.clock.used_cpu_ms += step_ms
            used[name] += step_ms
            yield

    limits = SchedulerLimits(slice_ms=2, duty=0.5, request_cpu_ms=10_000)
    resources = NodeResources(working.clock, RequestScheduler(working.clock, limits))
    server = KafkaServer({ApiKey.METADATA: handle}, working.clock, resources=resources)
    for name in used:
        server.accept(FakeLink()).on_frame(frame(METADATA, 9, client_id=name))
    for _ in range(2000):
        working.clock.advance(1)
    assert sum(used.values()) > 500
    assert abs(used["long"] - used["short"]) <= 20
