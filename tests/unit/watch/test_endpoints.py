"""/healthz, /readyz and /v1/changes of a real node, over real sockets."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from quorate.quorum.controller.messages import AllocateProducerIdsRequest
from quorate.quorum.log_limit import INTERVAL_MS
from quorate.quorum.node.node_core import NodeCore
from quorate.quorum.protocol.schemas.topics import CreatableTopic, CreateTopicsRequest
from quorate.quorum.raft.control_records import VoterEndpoint
from quorate.quorum.rpc.http import HttpResponse
from quorate.quorum.watch import changes
from quorate.quorum.watch.changes import MAX_LIMIT, MAX_WAIT_MS, NEXT_OFFSET
from quorate.quorum.watch.http_dispatch import MAX_OPEN, BadQuery, Endpoints, Query
from quorate.quorum.watch.watch import targets
from tests.unit.rpc.kafka.fakes import FakeClock
from tests.unit.watch.node import CombinedNode, get, made, running, until

pytestmark = pytest.mark.timeout(60)


async def create_topic(node: CombinedNode, name: str, partitions: int = 2) -> None:
    topic = CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=1, assignments=(), configs=()
    )
    answer = await node.ask(CreateTopicsRequest(topics=(topic,), timeout_ms=1000))
    assert [each.error_code for each in answer.topics] == [0]


async def test_a_node_is_ready_on_both_ports_once_it_serves(tmp_path: Path) -> None:
    async with made(tmp_path / "node") as node:
        health = await get(node.node_address, "/healthz")
        assert (health.status, health.json["status"]) == (200, "ok")
        early = await node.get("/readyz")
        assert early.status == 503
        assert early.json["ready"] is False
        assert "no leader of the metadata quorum is known" in early.json["reasons"]
        assert "the broker is not registered yet" in early.json["reasons"]
        node.core.start()
        await until(lambda: node.broker.running)
        for address in (node.node_address, node.controller_address):
            ready = await get(address, "/readyz")
            assert (ready.status, ready.json["reasons"]) == (200, [])
            assert ready.json["roles"] == ["broker", "controller"]
            assert ready.headers["Content-Type"] == "application/json"


async def test_a_broker_that_may_be_fenced_is_not_ready(tmp_path: Path) -> None:
    async with running(tmp_path / "node") as node:
        assert node.broker.lifecycle is not None
        node.broker.lifecycle.heard_ms -= 60_001
        answer = await node.get("/readyz")
        assert answer.status == 503
        assert "it may be fenced" in answer.json["reasons"][0]


async def test_a_path_that_is_not_there_names_those_that_are(tmp_path: Path) -> None:
    async with made(tmp_path / "node") as node:
        answer = await node.get("/health")
        assert answer.status == 404
        assert b"/healthz, /readyz, /metrics, /v1/changes" in answer.body


async def test_the_nodes_are_found_as_prometheus_looks_for_them(tmp_path: Path) -> None:
    async with running(tmp_path / "node") as node:
        (found,) = (await node.get("/v1/targets")).json
        assert found["targets"] == [str(node.controller_address)]
        assert found["labels"] == {"node_id": "1", "role": "controller"}


async def test_targets_have_brackets_around_ipv6_addresses(tmp_path: Path) -> None:
    endpoint = VoterEndpoint(name="CONTROLLER", host="::1", port=9093)
    voter = SimpleNamespace(voter_id=7, endpoints=(endpoint,))
    async with made(tmp_path / "node") as node:
        core = SimpleNamespace(voters=(voter,), config=node.core.config, image=node.core.image)
        assert list(targets(cast(NodeCore, core))) == [(7, "controller", "[::1]:9093")]


async def test_changes_are_paged_and_tell_their_causes(tmp_path: Path) -> None:
    async with running(tmp_path / "node") as node:
        await create_topic(node, "orders")
        end = node.core.replica.raft.high_watermark
        whole = await node.get("/v1/changes?from=0&limit=10000")
        assert whole.status == 200
        assert [each["offset"] for each in whole.lines][:end] == list(range(end))
        first = whole.lines[0]
        assert first["type"] == "LEADER_CHANGE"
        assert first["record"]["leaderId"] == 1
        created = [each for each in whole.lines if each["type"] == "PARTITION_RECORD"]
        assert [each["cause"] for each in created] == ["topic-created"] * 2
        assert created[0]["record"]["replicas"] == [1]
        assert created[0]["epoch"] == 1
        assert created[0]["timestamp_ms"] > 1_500_000_000_000

        paged, offset = [], 0
        while offset < end:
            page = await node.get(f"/v1/changes?from={offset}&limit=3")
            assert 0 < len(page.lines) <= 3
            paged += page.lines
            offset = int(page.headers[NEXT_OFFSET])
            assert offset == paged[-1]["offset"] + 1
        assert paged[:end] == whole.lines[:end]

        only = await node.get("/v1/changes?types=TOPIC_RECORD,REGISTER_BROKER_RECORD")
        assert [each["type"] for each in only.lines] == ["REGISTER_BROKER_RECORD", "TOPIC_RECORD"]
        assert int(only.headers[NEXT_OFFSET]) >= end


async def test_one_answer_reads_a_bounded_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "SLICE_BYTES", 1)
    monkeypatch.setattr(changes, "MAX_READ_BYTES", 1)
    async with running(tmp_path / "node") as node:
        await create_topic(node, "orders", 20)
        page = await node.get("/v1/changes?from=0&types=TOPIC_RECORD")
        assert page.lines == []
        assert 0 < int(page.headers[NEXT_OFFSET]) < node.core.replica.raft.high_watermark


async def test_who_waits_hears_of_the_next_change(tmp_path: Path) -> None:
    async with running(tmp_path / "node") as node:
        end = node.core.replica.raft.high_watermark
        waiting = asyncio.create_task(node.get(f"/v1/changes?from={end}&wait_ms={MAX_WAIT_MS}"))
        epoch = node.core.image.brokers[1].epoch
        await node.ask(AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch))
        answer = await waiting
        assert answer.lines[0]["offset"] == end
        end = node.core.replica.raft.high_watermark
        nothing = await node.get(f"/v1/changes?from={end}&wait_ms=1&types=TOPIC_RECORD")
        assert (nothing.status, nothing.lines) == (200, [])


WRONG = [
    ("from=x", "from='x' is not a whole number from 0"),
    ("from=-1", "from='-1' is not"),
    ("from=" + "9" * 40, "is not a whole number"),
    ("from=1000000", "above the high watermark"),
    ("limit=0", f"limit='0' is not a whole number from 1 to {MAX_LIMIT}"),
    (f"limit={MAX_LIMIT + 1}", "limit="),
    (f"wait_ms={MAX_WAIT_MS + 1}", "wait_ms="),
    ("types=TOPIC", "types: 'TOPIC' is no type of record"),
    ("offset=3", "no parameter 'offset'"),
    ("&".join(f"a{n}=" for n in range(100)), "the query cannot be read"),
]


async def test_what_is_asked_wrongly_is_said(tmp_path: Path) -> None:
    async with made(tmp_path / "node") as node:
        for query, said in WRONG:
            answer = await node.get(f"/v1/changes?{query}")
            assert (query, answer.status) == (query, 400)
            assert said in answer.body.decode()


async def test_what_only_a_snapshot_holds_is_gone(tmp_path: Path) -> None:
    async with running(tmp_path / "node") as node:
        node.core.log.start_offset = 2
        answer = await node.get("/v1/changes?from=1")
        assert answer.status == 410
        assert b"starts at 2" in answer.body
        assert (await node.get("/v1/changes")).lines[0]["offset"] == 2


class ExchangeLink:
    """The methods of a Link that an Exchange uses."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.done = asyncio.Event()

    def send(self, *parts: bytes) -> None:
        self.sent += parts

    def close(self) -> None:
        self.done.set()


async def exchanged(endpoints: Endpoints, target: bytes) -> bytes:
    link = ExchangeLink()
    exchange = endpoints.accept(link)  # type: ignore[arg-type]
    exchange.on_frame(memoryview(target))
    await link.done.wait()
    exchange.on_closed(None)
    return link.sent[0]


async def test_a_handler_that_fails_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(query: Query) -> HttpResponse:
        raise ZeroDivisionError

    with caplog.at_level(logging.ERROR):
        answer = await exchanged(Endpoints(FakeClock(), {"/x": broken}), b"/x?a=b")
    assert answer.startswith(b"HTTP/1.1 500 ")
    assert "GET /x failed" in caplog.text


async def test_requests_that_fail_fill_no_log(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(query: Query) -> HttpResponse:
        raise ValueError

    clock = FakeClock()
    endpoints = Endpoints(clock, {"/x": broken})
    for _ in range(100):
        assert (await endpoints.answer("/x")).status == 500
    assert caplog.messages == ["GET /x failed"]
    clock.advance(INTERVAL_MS)
    await endpoints.answer("/x")
    assert caplog.messages[1:] == ["GET /x failed (99 more like it were not logged)"]


async def test_no_more_requests_than_allowed_are_under_way() -> None:
    async def slow(query: Query) -> HttpResponse:
        await asyncio.Event().wait()
        raise AssertionError

    async def fast(query: Query) -> HttpResponse:
        raise BadQuery("gone", 410)

    endpoints = Endpoints(FakeClock(), {"/slow": slow, "/fast": fast}, always={"/health": fast})
    open_ = [endpoints.accept(ExchangeLink()) for _ in range(MAX_OPEN)]  # type: ignore[arg-type]
    for each in open_:
        each.on_frame(memoryview(b"/slow"))
    assert (await exchanged(endpoints, b"/fast")).startswith(b"HTTP/1.1 503 ")
    assert (await exchanged(endpoints, b"/health")).startswith(b"HTTP/1.1 410 "), "always answered"
    for each in open_:
        each.on_closed(None)
    assert endpoints.open == 0
    assert (await exchanged(endpoints, b"/fast")).startswith(b"HTTP/1.1 410 ")


async def test_a_wait_for_a_commit_leaves_nothing_behind(tmp_path: Path) -> None:
    """While the quorum is lost nothing is committed, so nothing else would clear the list."""
    async with made(tmp_path / "node") as node:
        waits = changes.Changes(node.core.seams.clock, node.core.log, lambda: 0)
        response = await waits.get({"wait_ms": "5"})
        assert response.headers == ((NEXT_OFFSET, "0"),)
        assert not waits._waiting


class BusyClock(FakeClock):
    """Each reading of the CPU time is 3 ms after the one before."""

    used_ms = 0.0

    def cpu_ms(self) -> float:
        self.used_ms += 3
        return self.used_ms


async def test_pages_are_made_one_slice_at_a_time_with_rests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """64 pages at once held the loop for as many slices in each of its iterations."""
    rests: list[float] = []
    sleep = asyncio.sleep

    async def rest(delay_s: float) -> None:
        rests.append(delay_s)
        await sleep(0)

    async with running(tmp_path / "node") as node:
        for number in range(5):
            await create_topic(node, f"t{number}", partitions=50)
        monkeypatch.setattr(changes, "SLICE_BYTES", 256)
        monkeypatch.setattr(asyncio, "sleep", rest)
        high_watermark = node.core.replica.raft.high_watermark
        pages = changes.Changes(BusyClock(), node.core.log, lambda: high_watermark)
        slices: list[int] = []
        fill_slice = pages._fill_slice

        def counted(page: changes.Page, asked: changes.Asked) -> bool:
            slices.append(len(rests))
            return fill_slice(page, asked)

        monkeypatch.setattr(pages, "_fill_slice", counted)
        answers = await asyncio.gather(*(pages.get({}) for _ in range(3)))
        assert len({answer.body for answer in answers}) == 1
        assert answers[0].headers == ((NEXT_OFFSET, str(high_watermark)),)
        assert slices == list(range(len(slices))), "a rest follows each slice, whoever asked"
        assert set(rests[: len(slices)]) == {changes.REST_FACTOR * 3 / 1000}
