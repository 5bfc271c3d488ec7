"""The HTML page of a run: complete, escaped, and readable with any number of partitions."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from quorate.cli.chaos.results.page import render
from tests.unit.cli.chaos.histories import result

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
    assert tags.lanes == partitions + 2 + 2, "with two nodes and two axes"
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
