"""The HTML page of a run: complete, escaped, and readable with any number of partitions."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from quorate.cli.chaos.checks.availability import Availability, Outage
from quorate.cli.chaos.results.page import render
from quorate.cli.chaos.results.page_chart import MAX_LANES
from quorate.cli.chaos.timeline.timeline import StateInterval
from tests.unit.cli.chaos.histories import intervals, result, times

VOID = {"meta", "input", "br", "link", "img"}


class Tags(HTMLParser):
    """A parser that asserts that all tags are closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.lanes = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember an opened tag, and count the lanes."""
        if tag not in VOID:
            self.open.append(tag)
        self.lanes += "lane" in (dict(attrs).get("class") or "").split()

    def handle_endtag(self, tag: str) -> None:
        """Assert that the tag closes the one that was opened last."""
        assert self.open.pop() == tag


@pytest.mark.parametrize("partitions", [1, 12, 200])
def test_one_lane_per_partition_and_node(partitions: int) -> None:
    page = render(result(partitions))
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert tags.lanes == partitions + 2 + 1, "with two nodes and one axis"
    assert ('class="scale dense"' in page) == (partitions > 40)
    assert "src=" not in page
    assert "http" not in page, "nothing is fetched"


def test_what_it_says() -> None:
    page = render(result())
    assert "<b>GOOD</b>verdict" in page
    assert "No heartbeat came for broker.session.timeout.ms." in page
    assert "prefers-color-scheme: dark" in page
    assert "&lt;b&gt;What&lt;/b&gt;" in page
    assert "new leaders: broker 5 for &lt;all&gt;" in page
    assert "partition 3: a write waited 900 ms" in page
    assert '<tr class="bad"><td class=v>BAD' not in page


def test_a_bad_one() -> None:
    page = render(result(taken_back=4))
    assert "<b>BAD</b>verdict" in page
    assert "4 of them changed or missing later" in page


def lanes_of(page: str) -> list[str]:
    """Return the names of the lanes, in their order."""
    return re.findall(r'<div class="lane [^"]*" data-name="([^"]*)"', page)


def test_lanes_of_nodes_come_first_and_then_the_partitions_to_which_most_happened() -> None:
    waits = [Outage(7, 5_000, 5_400), Outage(3, 5_000, 5_900), Outage(3, 6_000, 6_100)]
    extra = StateInterval(11, "led", 9_000, 10_000, "preferred", 4, 2)
    found = result(
        writes=Availability(done=times(12, 100, 5_000, 9_000), outages=waits),
        leadership=[*intervals(12), extra],
    )
    lanes = lanes_of(render(found))
    assert lanes[:2] == ["controller 1", "broker 4"]
    assert lanes[2:6] == ["partition 3", "partition 7", "partition 11", "partition 0"]
    assert len(lanes) == 2 + 12


def test_of_many_partitions_the_worst_are_shown() -> None:
    waits = [Outage(1_999, 5_000, 5_900)]
    found = result(2_000, writes=Availability(done=times(2_000, 100), outages=waits))
    page = render(found)
    assert lanes_of(page)[2] == "partition 1999"
    assert len(lanes_of(page)) == 2 + MAX_LANES
    assert "1,000 are left out." in page


def test_each_lane_says_in_words_what_it_shows() -> None:
    page = render(result())
    names = re.findall(r'role=img aria-label="([^"]*)"', page)
    assert len(set(names)) == len(lanes_of(page))
    assert "controller 1: active controller from 0.0 s to 10.0 s" in names
    assert ("broker 4: messages dropped from 2.0 s to 8.0 s, fenced from 5.0 s to 10.0 s") in names
    assert "partition 3: 1 changes of the leader, no writes for 900 ms" in names
