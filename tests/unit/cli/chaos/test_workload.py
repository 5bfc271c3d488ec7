"""The workload of a scenario: the sizes of keys, and the pace of metadata changes."""

from __future__ import annotations

import asyncio
from collections import Counter
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pytest

from quorate.cli.chaos.checks.availability import Availability, Outage
from quorate.cli.chaos.loading.loader import parse
from quorate.cli.chaos.loading.reading import ScenarioError
from quorate.cli.chaos.results.page import render
from quorate.cli.chaos.workload import admin_load
from quorate.cli.chaos.workload.admin_load import (
    ALTER,
    CREATE,
    DELETE,
    ELECT,
    OPERATIONS,
    AdminLoad,
)
from quorate.cli.chaos.workload.brokers import Leader
from quorate.cli.chaos.workload.comparison import Comparison
from quorate.cli.chaos.workload.ledger import CLIENTS, ROAMING, Ledger
from quorate.cli.chaos.workload.metadata_probe import MetadataProbe
from quorate.cli.chaos.workload.writer import Pace, Writer
from quorate.cli.client.batches import whole_batches
from quorate.cli.client.errors import NotReachable, Refused
from quorate.quorum.ids import ZERO_UUID
from quorate.quorum.protocol.schemas.init_producer_id import InitProducerIdRequest
from quorate.quorum.protocol.schemas.produce import ProduceRequest
from tests.unit.cli.chaos.histories import result, times

TEXT = """
title = "x"
[workload]
key_bytes = 20
metadata_interval_ms = 10
[[variants]]
name = "v"
[[variants.steps]]
do = "kill"
node = "leader"
"""


def test_the_workload_of_a_file() -> None:
    workload = parse(TEXT, "mine.toml", "mine").workload
    assert (workload.key_bytes, workload.metadata_interval_ms) == (20, 10)


def test_long_keys_still_name_their_records() -> None:
    ledger = Ledger(partitions=1, record_bytes=10, key_bytes=20)
    numbers = ledger.take(ROAMING, 0, 3)
    ledger.acknowledge(numbers, 0, now_s=1.0)
    comparison = Comparison(ledger.lines(), ledger.acknowledged, 1, clients=CLIENTS)
    for offset, number in enumerate(numbers):
        assert len(ledger.key(number)) == 20
        comparison.read(0, offset, ledger.key(number), ledger.value(number))
    assert comparison.verdict().good
    assert Ledger(1, 10).key(7) == b"7"


class Answering:
    """A client's metadata of one broker that commits every change."""

    topic = "t"

    def __init__(self) -> None:
        self.calls = 0
        self.third = asyncio.Event()

    def shuffled(self) -> list[int]:
        """Return the broker."""
        return [1]

    async def call(self, node_id: int, request: object, **options: Any) -> object:
        """Answer without an error."""
        self.calls += 1
        if self.calls == 3:
            self.third.set()
        return SimpleNamespace(responses=[SimpleNamespace(error_code=0)])


async def test_the_pace_of_metadata_changes() -> None:
    answering = Answering()
    slow = MetadataProbe(cast(Any, Answering()), 100, 3600.0)
    fast = MetadataProbe(cast(Any, answering), 100, 0.001)
    slow.start()
    fast.start()
    async with asyncio.timeout(10):
        await answering.third.wait()
    await slow.stop()
    await fast.stop()
    assert len(slow.committed_s) == len(slow.latencies.took_s) == 1


def test_the_page_shows_the_partitions_that_waited_longest() -> None:
    waited = [Outage(1_199, 2_000, 3_000)]
    page = render(result(1_200, writes=Availability(done=times(1_200, 100), outages=waited)))
    assert 'data-name="partition 1199"' in page
    assert 'data-name="partition 999"' not in page
    assert "The 1,000 partitions that waited longest are shown. 200 are left out." in page


class Producing:
    """A client's metadata of one broker, which records the requests that it gets."""

    topic, topic_id = "t", ZERO_UUID
    leaders: ClassVar[dict[int, Leader]] = {0: Leader(0, 1)}

    def __init__(self) -> None:
        self.requests: list[Any] = []

    def leader(self, partition: int) -> int:
        """Return the broker."""
        return 1

    async def call(self, node_id: int, request: Any, **options: Any) -> object:
        """Answer without an error."""
        self.requests.append(request)
        if isinstance(request, InitProducerIdRequest):
            return SimpleNamespace(error_code=0, producer_id=7, producer_epoch=3)
        done = SimpleNamespace(error_code=0, base_offset=0)
        return SimpleNamespace(responses=[SimpleNamespace(partition_responses=[done])])


@pytest.mark.parametrize(("acks", "producer", "asked"), [(-1, 7, 1), (1, -1, 0)])
async def test_the_acks_of_a_producer(acks: int, producer: int, asked: int) -> None:
    brokers, ledger = Producing(), Ledger(partitions=1, record_bytes=10)
    writer = Writer(
        brokers=cast(Any, brokers), ledger=ledger, pace=Pace(2, 0.01), timeout_ms=100, acks=acks
    )
    await writer.start([0])
    async with asyncio.timeout(10):
        while ledger.confirmed < 4:  # noqa: ASYNC110 - the writer has no event
            await asyncio.sleep(0.01)
    await writer.stop(1)
    ids = [each for each in brokers.requests if isinstance(each, InitProducerIdRequest)]
    first, second = [each for each in brokers.requests if isinstance(each, ProduceRequest)][:2]
    assert (len(ids), first.acks, second.acks) == (asked, acks, acks)
    for number, request in enumerate((first, second)):
        content = memoryview(request.topic_data[0].partition_data[0].records or b"")
        ((_, header),) = whole_batches(content)
        sequence = number * 2 if acks == -1 else -1
        assert (header.producer_id, header.base_sequence) == (producer, sequence)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('acks = "0"', "mine.toml:4: acks: value '0' must be one of all, 1"),
        ("member_kill_interval_ms = 5", "mine.toml:4: member_kill_interval_ms: group_members must"),
        (
            "group_members = 21",
            "mine.toml:4: group_members: value 21 must be a whole number from 0",
        ),
    ],
)
def test_mistakes_in_a_workload(line: str, why: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        parse(TEXT.replace("key_bytes = 20", line), "mine.toml", "mine")
    assert str(refused.value).startswith(why)


class Admin:
    """An admin client whose first request of each kind has an unknown outcome."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.topics: set[str] = set()

    def create_topic(self, topic: str, partitions: int, replicas: int, *, min_isr: int) -> None:
        """Create the topic."""
        if topic in self.topics:
            raise Refused("TOPIC_ALREADY_EXISTS: it exists")
        self.topics.add(topic)
        self._unknown(CREATE)

    def change_a_config(self, topic: str, value: str) -> None:
        """Require the topic."""
        assert topic in self.topics
        self._unknown(ALTER)

    def elect_preferred(self, topic: str) -> None:
        """Require the topic of the run."""
        assert topic == "t"
        self._unknown(ELECT)

    def delete_topic(self, topic: str) -> None:
        """Delete the topic."""
        if topic not in self.topics:
            raise Refused("t: UNKNOWN_TOPIC_OR_PARTITION: there is no such topic")
        self.topics.remove(topic)
        self._unknown(DELETE)

    def _unknown(self, operation: str) -> None:
        self.asked[operation] += 1
        if self.asked[operation] == 1:
            raise NotReachable("the outcome is unknown")


async def test_the_requests_of_the_admin_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_load, "RETRY_S", 0.001)
    admin = Admin()
    load = AdminLoad(requests=admin, topic="t", interval_s=0.001)
    load.start()
    async with asyncio.timeout(10):
        while len(load.done) < 9:  # noqa: ASYNC110 - the client has no event
            await asyncio.sleep(0.01)
    await load.stop()
    assert [each.operation for each in load.done[:8]] == list(OPERATIONS) * 2
    assert all(each.done_s is not None for each in load.done[:8])
    unknown = {f"{each}: the outcome is unknown" for each in OPERATIONS}
    assert set(load.errors) == unknown, "an existing or missing topic then is a success"


async def test_the_admin_client_deletes_its_topic_when_it_stops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(admin_load, "RETRY_S", 0.001)
    admin = Admin()
    load = AdminLoad(requests=admin, topic="t", interval_s=3600)
    load.start()
    async with asyncio.timeout(10):
        while not load.done:  # noqa: ASYNC110 - the client has no event
            await asyncio.sleep(0.01)
    await load.stop()
    assert [each.operation for each in load.done] == [CREATE, DELETE]
    assert admin.topics == set()


async def test_a_request_that_never_succeeds_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Admin, topic: str, *others: object, **named: object) -> None:
        raise Refused("NOT_CONTROLLER")

    monkeypatch.setattr(Admin, "create_topic", refused)
    monkeypatch.setattr(admin_load, "END_S", 0.1)
    load = AdminLoad(requests=Admin(), topic="t", interval_s=0.001)
    load.start()
    await asyncio.sleep(0.1)
    with pytest.raises(Refused, match="topic t-extra-0 may be left behind: delete it"):
        await load.stop()
    assert [(each.operation, each.done_s) for each in load.done] == [(CREATE, None)]
