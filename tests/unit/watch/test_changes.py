"""/v1/changes of a real node, over real sockets."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from quorate.quorum.controller.state.messages import AllocateProducerIdsRequest
from quorate.quorum.log.batches.batch import build_value_batch
from quorate.quorum.metadata.framing import encode_record
from quorate.quorum.metadata.records import ConfigRecord, PartitionChangeRecord
from quorate.quorum.watch import changes
from quorate.quorum.watch.changes import MAX_LIMIT, MAX_WAIT_MS, NEXT_OFFSET, Asked
from tests.unit.rpc.kafka.fakes import FakeClock
from tests.unit.watch.node import create_topic, made, running

pytestmark = pytest.mark.timeout(60)


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
        assert 1 <= created[0]["epoch"] <= node.core.replica.raft.epoch
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


async def test_a_waiting_client_receives_the_next_change(tmp_path: Path) -> None:
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
    ("causes=unclean", "causes: 'unclean' is no cause"),
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


def asked_for(**query: str) -> Asked:
    return Asked.of(query)


def test_records_are_chosen_by_cause() -> None:
    """The cause is searched in the bytes of a batch before its records are decoded. A text that
    holds the name of a cause is not enough."""
    lost = PartitionChangeRecord(leader=4, cause="unclean-election 130 120")
    other = PartitionChangeRecord(isr=(4,), cause="isr-expand")
    named = ConfigRecord(resource_type=2, resource_name="t", name="n", value="unclean-election")
    batches = ([other, other], [named], [other, lost])
    data, offset = b"", 10
    for records in batches:
        values = [encode_record(each) for each in records]
        data += build_value_batch(values, base_offset=offset, leader_epoch=1, timestamp_ms=7)
        offset += len(values)
    found = list(changes.lines(data, 10, asked_for(causes="unclean-election,isr-shrink-lag")))
    assert [at for at, line in found] == [11, 12, 13, 14], "one entry for a batch without the cause"
    assert [at for at, line in found if line] == [14]
    assert json.loads(found[-1][1])["cause"] == "unclean-election 130 120"
    whole = list(changes.lines(data, 10, asked_for()))
    assert [at for at, line in whole if line] == [10, 11, 12, 13, 14]
