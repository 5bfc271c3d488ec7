"""`make break`: a shrunk history still breaks, its lines are readable, and its page is
self-contained."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.sim.ablations.__main__ import broken, main
from tests.sim.ablations.shrink import breaks, moves_of, shortest
from tests.sim.ablations.stories import RaftWalk
from tests.sim.ablations.table import ABLATIONS
from tests.sim.ablations.trace import Kind


def test_a_walk_is_shrunk_to_what_breaks_it() -> None:
    ablation = ABLATIONS["one-vote"]
    assert isinstance(ablation.story, RaftWalk)
    with ablation.in_force():
        moves = moves_of(ablation.story)
        shrunk = shortest(ablation.story, ablation.caught)
        assert shrunk is not None and len(shrunk) < len(moves)
        for left_out in range(len(shrunk)):
            fewer = shrunk[:left_out] + shrunk[left_out + 1 :]
            assert not breaks(ablation.story, fewer, ablation.caught), "one more could go"
    assert not breaks(ablation.story, shrunk, ablation.caught), "production as it is"


def test_lines_and_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "break.html"
    assert main(["flush-before-fetch", str(out)]) == 0
    told = capsys.readouterr().out
    assert re.search(r"BROKEN: offset \d+ is called committed but durable only on", told)
    assert re.search(r"\d+\.\d  \d => \d  Fetch epoch \d+, offset \d+", told)
    html = out.read_text(encoding="utf-8")
    assert "<svg" in html and "prefers-color-scheme: dark" in html
    assert not re.search(r"""(?:src|href)=|url\(""", html), "it needs nothing else"
    for node in (1, 2, 3):
        assert f">node {node}</text>" in html or f"{node} =>" not in told


@pytest.mark.parametrize(
    "name", ["persist-barrier", "caught-up-isr", "fenced-leader", "vote-fsync"]
)
def test_every_kind_of_story_is_recorded(name: str) -> None:
    trace = broken(ABLATIONS[name]).readable(150)
    assert trace.events[-1].kind is Kind.BROKEN
    assert len(trace.events) > 5 and trace.lanes


def test_without_a_name_they_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    told = capsys.readouterr().out
    assert [line.split()[0] for line in told.splitlines()] == list(ABLATIONS)
    assert main(["nonsense", "break.html"]) == 1
    assert "no safeguard 'nonsense'" in capsys.readouterr().err


def test_what_is_said_begins_on_the_screen_however_many_lanes_there_are(tmp_path: Path) -> None:
    out = tmp_path / "break.html"
    assert main(["min-isr", str(out)]) == 0
    html = out.read_text(encoding="utf-8")
    assert html.count("text-anchor='middle'") == 7, "the nodes, and the cluster"
    assert all(int(x) < 600 for x in re.findall(r"<text class='effect' x='(\d+)'", html))
