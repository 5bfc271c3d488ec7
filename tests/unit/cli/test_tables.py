"""Tables on a terminal, plain lines elsewhere, and the tables of each command."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from contextlib import redirect_stdout

import pytest

from quorate.cli.terminal.tables import (
    BAR_WIDTH,
    MAX_ROWS,
    Bar,
    Cell,
    Mark,
    Part,
    Table,
    show,
    terminal_lines,
)

FOREGROUND = re.compile(r"\x1b\[[0-9;]*3[0-7]")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def shown(plain: Iterable[str], *parts: Part) -> str:
    """Return the output of `show` on a terminal."""
    with redirect_stdout(Terminal()) as terminal:
        show(plain, parts)
    return terminal.getvalue()


def drawn(*parts: Part, columns: int = 100) -> list[str]:
    """Return the lines without their colours and without spaces at their ends."""
    return [COLOUR.sub("", each).rstrip() for each in terminal_lines(parts, columns)]


TABLE = Table(columns=("Broker", "State"), rows=[(4, Cell("fenced", Mark.BAD)), (10, "up")])


def test_a_pipe_gets_the_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    show(["4: fenced"], [TABLE])
    assert capsys.readouterr().out == "4: fenced\n"


def test_a_terminal_gets_the_table() -> None:
    text = shown(["4: fenced"], TABLE, "more")
    lines = COLOUR.sub("", text).splitlines()
    assert [each.split() for each in lines if "─" not in each] == [
        ["Broker", "State"],
        ["4", "fenced"],
        ["10", "up"],
        ["more"],
    ]
    assert "\x1b[1;31mfenced" in text


def test_no_color_removes_the_colours_only(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(rows=[(Cell("fenced", Mark.BAD), Bar(1, 3))])
    assert FOREGROUND.search(shown([], table))
    monkeypatch.setenv("NO_COLOR", "1")
    text = shown(["4: fenced"], table)
    assert "fenced   ████░░░░░░░░ 1 of 3" in COLOUR.sub("", text)
    assert not FOREGROUND.search(text)


@pytest.mark.parametrize("term", ["dumb", "DUMB", "unknown"])
def test_a_dumb_terminal_gets_the_plain_lines(term: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", term)
    assert shown(["4: fenced"], TABLE) == "4: fenced\n"


@pytest.mark.parametrize("columns", [30, 60, 100])
def test_no_line_is_wider_than_the_terminal(columns: int) -> None:
    words = [f"word{number}" for number in range(40)]
    table = Table(columns=("Topic", "Why"), rows=[("a" * 80, " ".join(words)), ("b", "x")])
    lines = drawn(table, "long " * 40, columns=columns)
    assert max(map(len, lines)) <= columns
    text = "".join("".join(lines).split())
    assert text.count("a") >= 80
    assert all(each in text for each in words)


def test_many_rows_are_not_drawn() -> None:
    table = Table(rows=[(number,) for number in range(MAX_ROWS + 1)])
    assert shown(["plain"], table) == "plain\n"


def test_a_cell_does_not_control_the_terminal() -> None:
    lines = [
        *terminal_lines([Table(rows=[("a\x1b[2Jb", "[red]c[/red]", "\x9b2J")]), "d\x1b]0;t\a"])
    ]
    assert "a?[2Jb" in lines[0]
    assert "[red]c[/red]" in lines[0]
    assert "?2J" in lines[0]
    assert lines[1] == "d?]0;t?"


@pytest.mark.parametrize(
    ("done", "total", "filled", "mark"),
    [
        (0, 3, 0, Mark.BAD),
        (1, 1000, 1, Mark.WARN),
        (999, 1000, BAR_WIDTH - 1, Mark.WARN),
        (3, 3, BAR_WIDTH, Mark.GOOD),
        (0, 0, BAR_WIDTH, Mark.GOOD),
    ],
)
def test_a_bar_is_full_only_if_nothing_is_missing(
    done: int, total: int, filled: int, mark: Mark
) -> None:
    bar = Bar(done, total)
    assert (bar.filled, bar.mark) == (filled, mark)


def test_a_terminal_without_unicode_gets_ascii() -> None:
    latin = Terminal()
    latin.encoding = "latin-1"
    with redirect_stdout(latin):
        lines = drawn(Table(columns=("a",), rows=[(Bar(1, 2),)]))
    assert "######------ 1 of 2" in lines
    "\n".join(lines).encode("ascii")


@pytest.mark.parametrize(
    ("columns", "named", "whole"), [(90, True, True), (60, False, True), (24, False, False)]
)
def test_a_narrow_terminal_gets_whole_words_rather_than_optional_columns(
    columns: int, named: bool, whole: bool
) -> None:
    row = ("a-topic-with-a-long-name-0", "under-replicated", Bar(1, 3), 4)
    table = Table(
        columns=("Partition", "State", "In sync", "Leader"), rows=[row], optional=("In sync",)
    )
    lines = drawn(table, columns=columns)
    text = "\n".join(lines)
    assert ("In sync" in text) == ("1 of 3" in text) == named
    assert ("under-replicated" in text) == whole
    shown = Counter("".join(lines[2:]))
    assert Counter("a-topic-with-a-long-name-0under-replicated4") <= shown, "nothing is cut off"


def test_a_column_without_a_value_is_left_out() -> None:
    lines = drawn(Table(columns=("Id", "Rack", "State"), rows=[(1, None, "up"), (2, None, "up")]))
    assert lines[0].split() == ["Id", "State"]


SCRIPT = (
    "import sys\n"
    "from quorate.cli.terminal.tables import show, Table\n"
    "show(['plain'], [Table(columns=('Id', 'State'), rows=[(1, 'drawn')])])\n"
    "print('rich' in sys.modules)\n"
)


def test_a_pipe_does_not_import_rich() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
    )
    assert done.stdout == "plain\nFalse\n"


def test_a_pseudo_terminal_gets_the_table() -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=theirs) as process:
        os.close(theirs)
        text = ""
        try:
            while more := os.read(ours, 4096).decode():
                text += more
        except OSError:
            pass  # the process has closed the terminal
        assert process.wait(30) == 0
    os.close(ours)
    assert [line.split() for line in COLOUR.sub("", text).splitlines() if "─" not in line] == [
        ["Id", "State"],
        ["1", "drawn"],
        ["True"],
    ]
