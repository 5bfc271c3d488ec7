"""The workload of a scenario: the sizes of keys, and the pace of metadata changes."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from quorate.cli.chaos.checks.observations import Availability, Outage
from quorate.cli.chaos.loading.loader import parse
from quorate.cli.chaos.results.page import render
from quorate.cli.chaos.workload.comparison import Comparison
from quorate.cli.chaos.workload.ledger import CLIENTS, ROAMING, Ledger
from quorate.cli.chaos.workload.metadata_probe import MetadataProbe
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
