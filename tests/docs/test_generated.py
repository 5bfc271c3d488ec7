"""The generated parts of the pages are those that `make docs` writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.broker.groups import state as groups
from quorate.broker.groups.state import State
from tests.docs.drawings import DRAWINGS
from tests.docs.generated import END, PAGES, SCRIPTS, UnknownPart, filled, parts


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_the_generated_parts_of_a_page_are_fresh(page: Path) -> None:
    text = page.read_text()
    assert filled(text) == text, f"docs/protocol/{page.name} is stale: run `make docs`"
    ends = sum(line == END for line in text.splitlines())
    assert ends == len(parts(text)), "a marker has no beginning"


def test_the_pages_show_every_drawing_and_every_script() -> None:
    shown = {part for page in PAGES for part in parts(page.read_text())}
    drawings = {("drawing", name) for name in DRAWINGS}
    scripts = {("script", path.stem) for path in SCRIPTS.glob("*.txt")}
    assert shown == drawings | scripts


def test_a_change_of_a_table_makes_its_drawing_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    page = f"before\n<!-- drawing: consumer-group -->\n{END}\nafter\n"
    fresh = filled(page)
    assert filled(fresh) == fresh
    assert fresh.startswith("before\n")
    assert fresh.endswith(f"```\n{END}\nafter\n")
    monkeypatch.setitem(groups.TRANSITIONS, (State.DEAD, State.EMPTY), "it comes back")
    assert filled(fresh) != fresh
    assert "Dead --> Empty : it comes back" in filled(fresh)


@pytest.mark.parametrize("marker", ["drawing: nothing", "script: nothing", "picture: raft-roles"])
def test_a_marker_for_an_unknown_part_is_refused(marker: str) -> None:
    with pytest.raises(UnknownPart):
        filled(f"<!-- {marker} -->\n{END}\n")
