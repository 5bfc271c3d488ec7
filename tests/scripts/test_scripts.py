"""Each script gives the trace that it shows. `pytest tests/scripts --rewrite` writes new traces."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scripts.language import ScriptError, parse, render
from tests.scripts.play import play

SCRIPTS = sorted(Path(__file__).parent.glob("*.txt"))


@pytest.mark.parametrize("path", SCRIPTS, ids=[path.stem for path in SCRIPTS])
def test_a_script_gives_its_trace(path: Path, request: pytest.FixtureRequest) -> None:
    text = path.read_text()
    played = play(text)
    if request.config.getoption("--rewrite"):
        path.write_text(played)
        return
    assert played.splitlines() == text.splitlines(), (
        "the cores behave differently: if this is right, run `pytest tests/scripts --rewrite` and "
        "`make docs`, and review the changes"
    )


def test_a_changed_trace_is_noticed() -> None:
    text = SCRIPTS[0].read_text()
    assert play(text) == text
    steps = parse(text)
    changed = render([*steps[:-1], steps[-1].with_trace(["node 1 does nothing"])])
    assert play(changed) == text


def test_a_script_reads_back_as_it_was_written() -> None:
    for path in SCRIPTS:
        assert render(parse(path.read_text())) == path.read_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("elect 1\n----\n", "line 1, elect: a script begins with one of"),
        ("nodes 3\n----\n\n# why\nfly 1\n----\n", "line 5, fly: one of .* is known"),
        ("nodes 3\n----\n\nelect one\n----\n", "line 4, elect: one is not a number"),
        ("nodes 3\n----\n\nappend 1 x\nappend 1 y\n", "line 5: ---- stands below a command"),
        ("nodes 3\n----\n\ncrash 1\n----\n\nflush 1\n----\n", "line 7, flush: IndexError"),
    ],
)
def test_a_line_that_cannot_be_played_is_named(text: str, message: str) -> None:
    with pytest.raises(ScriptError, match=message):
        play(text)
