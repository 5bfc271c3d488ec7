"""The report's page, made of rows by hand."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

import pytest

from quorate.quorum.analytics.log.text import clock, span
from quorate.quorum.analytics.page.page import render
from quorate.quorum.analytics.page.page_assets import STYLE
from quorate.quorum.analytics.page.page_axis import axis
from quorate.quorum.analytics.page.page_text import Figures, History

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
        "topic_id": TOPIC_ID,
        "partition": partition,
        "leader": leader,
        "leader_epoch": start,
        "start_offset": start,
        "start_ms": T0 + start,
        "end_offset": end,
        "end_ms": None if end is None else T0 + end,
        "duration_ms": (10_000 if end is None else end) - start,
        "began": "changed" if start else "created",
        "cause": "session-expired" if start else "topic-created",
    }


TOPIC_ID = "QUFBQUFBQUFBQUFBQUFBQQ"
SHRUNK: dict[str, Any] = {
    "topic_id": TOPIC_ID,
    "partition": 0,
    "start_offset": 3,
    "start_ms": T0 + 4_000,
    "end_ms": T0 + 6_000,
    "duration_ms": 2_000,
    "isr": [2],
    "added": [],
    "removed": [0, 1],
    "size": 1,
    "replication_factor": 3,
    "min_isr": 2,
    "below_min": True,
    "began": "changed",
    "cause": "unknown",
}
SESSION = {
    "broker": 2,
    "broker_epoch": 7,
    "registered_offset": 1,
    "registered_ms": T0,
    "unfenced_offset": 2,
    "unfenced_ms": T0 + 10,
    "start_ms": T0 + 10,
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
OUTAGE: dict[str, Any] = {
    "topic_id": TOPIC_ID,
    "partition": 0,
    "kind": "both",
    "start_ms": T0 + 4_000,
    "end_ms": None,
    "duration_ms": 700,
    "smallest_isr": 1,
    "min_isr": None,
    "cause": "session-expired",
}
WARNED = (
    {"severity": "error", "kind": "gap", "first_offset": 9, "detail": "records are <missing>"},
    {"severity": "note", "kind": "clock-step", "first_offset": 12, "detail": "The clock goes back"},
)
LOST = {"start_ms": T0 + 4_000, "end_ms": T0 + 4_700, "duration_ms": 700, "cause": "x"}
LANE: dict[str, Any] = {
    "topic_id": TOPIC_ID,
    "total_ms": 10_000,
    "leaderless_ms": 700,
    "failing_ms": 900,
    "longest_ms": 700,
    "windows": [LOST],
    "leader_changes": 2,
    "isr_shrinks": 1,
    "spells": 3,
    "gone_ms": None,
    "available": 0.93,
}
FIGURES = Figures(
    records=99,
    partitions=0,
    leader_changes=2,
    isr_shrinks=1,
    partitions_without_leader=1,
    longest_without_leader_ms=700,
    outages=1,
    sessions=1,
    terms=1,
    errors=0,
    notes=0,
)


def history(partitions: int, topic: str | None = "orders", **more: Any) -> History:
    """Return a history in which every partition is without a leader for 0.7 s."""
    every = range(partitions)
    leadership = [
        row
        for partition in every
        for row in (
            spell(topic, partition, partition % 3, 0, 4_000),
            spell(topic, partition, -1, 4_000, 4_700),
            spell(topic, partition, 2, 4_700, None),
        )
    ]
    made = History(
        source="/logs/<1>",
        cluster_id="MkU3OEVBNTcwNTJENDM2Qg",
        scope="",
        start_ms=T0,
        end_ms=T0 + 10_000,
        figures=replace(FIGURES, partitions=partitions),
        lanes=[{"topic": topic, "partition": each, **LANE} for each in every],
        leadership=leadership,
        new_leaders=leadership,
        isr=[{"topic": topic, **SHRUNK}],
        new_isrs=[{"topic": topic, **SHRUNK}],
        outages=[{"topic": topic, **OUTAGE}],
        sessions=[SESSION],
        quorum=[TERM],
    )
    return replace(made, **more)


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
    page = render(history(800, figures=replace(FIGURES, partitions=2_084)))
    assert page.count("Shown: the worst 800 of 2,084 partitions.") == 2, "timeline and table"
    assert "Shown: the newest 2,000 events." in page
    assert "Shown: the longest 1 of 7 times" in render(
        history(1, figures=replace(FIGURES, outages=7))
    )
    lane = {"topic": "orders", "partition": 0, **LANE, "spells": 500}
    assert "497 older leader epochs are not drawn" in render(history(1, lanes=[lane]))


def test_the_title_has_the_cluster_and_the_range() -> None:
    page = render(history(1, scope="topics orders"))
    title = "Cluster MkU3OEVBNTcwNTJENDM2Qg, 2027-01-15 08:00:00.000 to 2027-01-15 08:00:10.000 UTC"
    assert f"<title>{title}</title>" in page
    assert "Only topics orders." in page
    assert "<title>/logs/&lt;1&gt;, 2027" in render(history(1, cluster_id=None))


def test_lanes_keep_the_order_of_what_happened_with_internal_topics_last() -> None:
    names = ("__internal", "worst", "quiet")
    lanes = [{"topic": name, "partition": 0, **LANE} for name in names]
    shown = re.findall(r'<div class="lane" data-name="([^"]+)-0">', render(history(1, lanes=lanes)))
    assert shown == ["worst", "quiet", "__internal"]


def test_the_isr_is_drawn_with_its_legend() -> None:
    partial = {"topic": "orders", **SHRUNK, "below_min": None, "min_isr": None}
    page = render(history(1, isr=[{"topic": "orders", **SHRUNK}, partial]))
    assert '<i class="isr low" style="left:40.000%;width:20.000%"' in page
    assert '<i class="isr part" style="left:40.000%;width:20.000%"' in page
    assert "1 of 3 replicas, min.insync.replicas unknown" in page
    legend = page.partition("class=chart")[0]
    classes = set(re.findall(r'<i class="([a-z0-9 ]+)" style', page))
    assert classes == {name for name in classes if f'<i class="{name}"></i>' in legend}


def test_bars_show_availability() -> None:
    assert '<span class="meter up"><i style="width:93.00%"></i></span>93.000 %' in render(
        history(1)
    )


def test_warnings_are_the_first_section() -> None:
    figures = replace(FIGURES, errors=1, notes=1)
    page = render(history(1, warnings=WARNED, figures=figures))
    assert "About this log: 1 error, 1 note. Records are missing" in page
    assert "records are &lt;missing&gt;" in page
    assert page.index("<h2>Warnings") < page.index("<h2>Timeline")
    assert "<h2>Warnings" not in render(history(1))


def test_the_filter_and_the_zoom_leave_the_lanes_of_brokers() -> None:
    """The filter selects only lanes after the heading of the partitions."""
    page = render(history(1))
    assert 'data-filters="#lanes .rule ~ .lane"' in page
    head, _, partitions = page.partition("<div class=rule>partitions</div>")
    assert 'data-name="broker 2"' in head and 'data-name="broker 2"' not in partitions
    assert "<div class='head pinned'>" in head
    assert "data-steps='[1, 2, 5" in head, "the script draws the axis again after a zoom"


TEXT_ON = (("fg", "bg"), ("soft", "bg"), ("fg", "panel"), ("soft", "panel"), ("lost", "panel"),
           ("accent", "panel"), *(("on", f"b{each}") for each in range(10)))  # fmt: skip


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("text", "ground"), TEXT_ON)
def test_texts_are_readable(theme: str, text: str, ground: str) -> None:
    """WCAG 2.1, level AA: a contrast of at least 4.5."""
    light, dark = STYLE.split("@media screen and (prefers-color-scheme: dark)")[:2]
    colours = dict(COLOUR.findall(light if theme == "light" else light + dark))
    one, other = sorted(map(luminance, (colours[text], colours[ground])))
    assert (other + 0.05) / (one + 0.05) >= 4.5, (colours[text], colours[ground])


COLOUR = re.compile(r"--([a-z0-9]+):(#[0-9a-f]{3,6});")


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour (WCAG 2.1)."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * each for each in colour[1:])
    parts = (int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4))
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


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


def test_ticks_of_several_days_have_their_dates_without_a_script_too() -> None:
    start = int(datetime(2026, 11, 26, 19, 53, tzinfo=UTC).timestamp() * 1000)
    drawn = axis(history(1, start_ms=start, end_ms=start + 3 * 86_400_000))
    assert "<span>UTC 2026-11-26</span>" in drawn
    ticks = re.findall(r"<em [^>]*>([^<]*)</em>", drawn)
    assert ticks == ["2026-11-27", "12:00", "2026-11-28", "12:00", "2026-11-29", "12:00"]
