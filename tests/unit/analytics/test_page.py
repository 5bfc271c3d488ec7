"""The report's page, made of rows by hand."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest

from quorate.quorum.analytics.log.text import clock, span
from quorate.quorum.analytics.page.page import render
from quorate.quorum.analytics.page.page_text import History

VOID = {"meta", "input", "br"}
T0 = 1_800_000_000_000


class Strict(HTMLParser):
    """Checks that every element is closed in order, and collects attributes and text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def spell(topic: str | None, partition: int, leader: int, start: int, end: int | None) -> Any:
    return {
        "topic": topic,
        "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ",
        "partition": partition,
        "leader": leader,
        "leader_epoch": start,
        "start_offset": start,
        "start_ms": T0 + start,
        "end_offset": end,
        "end_ms": None if end is None else T0 + end,
        "duration_ms": (10_000 if end is None else end) - start,
        "cause": "session-expired" if start else "topic-created",
    }


SHRUNK: dict[str, Any] = {
    "topic_id": "QUFB",
    "partition": 0,
    "offset": 3,
    "timestamp_ms": T0 + 4_000,
    "isr": [2],
    "added": [],
    "removed": [0, 1],
    "size": 1,
    "min_isr": 2,
    "below_min": True,
    "cause": "unknown",
}
SESSION = {
    "broker": 2,
    "broker_epoch": 7,
    "registered_offset": 1,
    "registered_ms": T0,
    "unfenced_offset": 2,
    "unfenced_ms": T0 + 10,
    "end_offset": 5,
    "end_ms": T0 + 9_000,
    "duration_ms": 8_990,
    "ended": "fenced",
    "cause": "connection-lost",
}
TERM = {
    "leader": 12,
    "voters": [11, 12, 13],
    "epoch": 4,
    "start_offset": 0,
    "start_ms": T0,
    "end_ms": None,
    "duration_ms": 10_000,
}
LOST = {"start_ms": T0 + 4_000, "end_ms": T0 + 4_700, "duration_ms": 700, "cause": "x"}
AVAILABLE: dict[str, Any] = {
    "topic_id": "QUFB",
    "total_ms": 10_000,
    "leaderless_ms": 700,
    "longest_ms": 700,
    "windows": [LOST],
    "leader_epochs": 2,
    "available": 0.93,
}


def history(partitions: int, topic: str | None = "orders") -> History:
    """Return a history in which every partition is without a leader for 0.7 s."""
    every = range(partitions)
    return History(
        source="/logs/<1>",
        start_ms=T0,
        end_ms=T0 + 10_000,
        records=99,
        leadership=[
            row
            for partition in every
            for row in (
                spell(topic, partition, partition % 3, 0, 4_000),
                spell(topic, partition, -1, 4_000, 4_700),
                spell(topic, partition, 2, 4_700, None),
            )
        ],
        isr=[{"topic": topic, **SHRUNK}],
        sessions=[SESSION],
        quorum=[TERM],
        availability=[{"topic": topic, "partition": each, **AVAILABLE} for each in every],
    )


@pytest.mark.parametrize("partitions", [0, 12, 200])
def test_the_page_is_whole_and_needs_nothing_else(partitions: int) -> None:
    page = render(history(partitions))
    parser = Strict()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    assert not {"link", "img", "iframe", "object"} & set(parser.tags)
    assert not {name for name, _ in parser.attributes} & {"src", "href"}
    assert not re.search(r"https?:|@import|url\(", page)
    assert len(re.findall(r'<i class="lost" style', page)) == partitions
    assert ("scale dense" in page) == (partitions > 40)
    assert page.count("prefers-color-scheme: dark") == 1


def test_gaps_stand_where_they_happened() -> None:
    page = render(history(1))
    assert 'class="lost" style="left:40.000%;width:7.000%"' in page
    assert "orders-0 has no leader" in page
    assert "No heartbeat came for broker.session.timeout.ms." in page
    assert "orders-0: ISR loses [0, 1], is [2], below min.insync.replicas 2" in page
    assert "broker 2 left service: fenced" in page
    assert "93.000 %" in page
    assert "controller 12 is active, epoch 4" in page


def test_names_are_text_never_markup() -> None:
    page = render(history(1, topic='<script>alert("x")</script>'))
    assert "<script>alert" not in page
    assert "<code>/logs/&lt;1&gt;</code>" in page


def test_a_topic_without_a_name_is_shown_by_its_id() -> None:
    """The TopicRecord was in a segment that has been removed."""
    assert 'data-name="QUFBQUFBQUFBQUFBQUFBQQ-0"' in render(history(1, topic=None))


def test_what_is_cut_is_said() -> None:
    page = render(history(1_100))
    assert "Shown: the first 1,000 of 1,100 partitions." in page
    assert "Shown: the last 2,000 of" in page


def test_words_for_times() -> None:
    assert clock(T0 + 7) == "2027-01-15 08:00:00.007"
    assert [span(ms) for ms in (0, 999, 1_500, 61_000, 3_660_000, 200_000_000)] == [
        "0 ms",
        "999 ms",
        "1.5 s",
        "1 min 1 s",
        "1 h 1 min",
        "2 d 7 h",
    ]
