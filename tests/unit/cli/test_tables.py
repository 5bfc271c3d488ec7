"""Tables on a terminal, plain lines elsewhere, and the tables of each command."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterable
from contextlib import redirect_stdout
from dataclasses import replace

import pytest

from quorate.cli.groups.group_tables import offset_table
from quorate.cli.groups.group_view import Row
from quorate.cli.history.text import shown_lines, table_lines
from quorate.cli.metadata_quorum.command import marked
from quorate.cli.reassign.move_tables import ongoing_table, progress_parts
from quorate.cli.reassign.reassignments import Ongoing
from quorate.cli.status.cluster_status import BrokerLine, Status
from quorate.cli.status.partition_problems import Problem, Reason
from quorate.cli.status.status_tables import status_tables
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
from quorate.cli.topics import topic_tables
from quorate.cli.topics.topic_view import PartitionView, Report, TopicView
from tests.unit.cli.test_status_watch import BROKEN, HEALTHY

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


def test_a_column_without_a_value_is_left_out() -> None:
    lines = drawn(Table(columns=("Id", "Rack", "State"), rows=[(1, None, "up"), (2, None, "up")]))
    assert lines[0].split() == ["Id", "State"]


def test_the_status_begins_with_the_shares_and_lists_the_worst_first() -> None:
    other = Problem(
        topic="s",
        partition=1,
        state="under-replicated",
        leader=5,
        isr=(5,),
        replicas=(5, 4),
        reasons=(Reason(broker=4, down=True),),
        why="the cause of the partition",
    )
    brokers = (BrokerLine(id=3, address="h:1", state="up", rack=None), *BROKEN.brokers)
    status = replace(BROKEN, partitions=4, brokers=brokers, problems=(*BROKEN.problems, other))
    lines = drawn(*status_tables(status))
    text = "\n".join(lines)
    assert "Brokers up                 ██████░░░░░░ 1 of 2" in text
    assert "Partitions with a leader   █████████░░░ 3 of 4   1 offline" in text
    assert "fully in sync              ██████░░░░░░ 2 of 4   1 under-replicated" in text
    starts = [each.split()[0] for each in lines if each.strip()]
    assert starts.index("4") < starts.index("3")
    assert starts.index("t-0") < starts.index("s-1")
    assert "session-expired" in text
    assert "the cause of the partition" not in text, "the row of broker 4 has the cause"
    every = drawn(*status_tables(status, every=True), columns=160)
    assert "the cause of the partition" in "\n".join(every)


def test_a_lost_quorum_is_in_the_status() -> None:
    lines = drawn(*status_tables(replace(HEALTHY, quorum_lost="1 of 3 voters", voter_lags={})))
    assert lines[1].startswith("Quorum: LOST: 1 of 3 voters.")
    assert not any("Voters that answer" in each for each in lines)


def test_problems_that_are_left_out_are_counted() -> None:
    many = tuple(replace(BROKEN.problems[0], partition=number) for number in range(30))
    status: Status = replace(BROKEN, problems=many, partitions=30)
    assert "and 10 more (--all lists them)" in drawn(*status_tables(status))
    assert not any("more (--all" in each for each in drawn(*status_tables(status, every=True)))


TOPIC = TopicView(
    name="orders",
    topic_id="ID",
    partitions=(
        PartitionView(partition=0, leader=1, replicas=(1, 2), isr=(1, 2)),
        PartitionView(partition=1, leader=None, replicas=(2, 3), isr=(), adding=(3,), elr=(2,)),
    ),
    configs={"min.insync.replicas": "2"},
)


def test_the_topics_have_a_row_for_each_partition() -> None:
    lines = drawn(*topic_tables.tables([TOPIC], Report(), frozenset({1})))
    assert lines[0] == "orders: 2 partitions, id ID, min.insync.replicas=2"
    assert lines[1].split("  ")[0] == "Partition"
    assert "Removing" not in lines[1]
    assert lines[-2].split() == ["0", "1", "█" * 12, "2", "of", "2", "1,2", "1,2", "-", "-"]
    assert lines[-1].split() == ["1", "none", "░" * 12, "0", "of", "2", "-", "2,3", "3", "2"]


def test_the_filters_of_topics_select_rows() -> None:
    parts = [*topic_tables.tables([TOPIC], Report(unavailable=True), frozenset({1}))]
    assert [len(each.rows) for each in parts if isinstance(each, Table)] == [1]
    assert [*topic_tables.tables([TOPIC], Report(overrides=True), frozenset({1}))] == [
        "orders: 2 partitions, id ID, min.insync.replicas=2"
    ]


def test_the_reassignments_that_need_attention_are_first() -> None:
    plan = {("t", 0): (1, 2), ("t", 1): (1, 2), ("t", 2): (1, 2)}
    present = {("t", 0): (1, 2), ("t", 1): (1, 3), ("t", 2): (1, 3)}
    ongoing = {("t", 2): Ongoing(replicas=(1, 3, 2), adding=(2,), removing=(3,))}
    lines = drawn(*progress_parts(plan, present, ongoing))
    assert lines[0] == "Completed   ████░░░░░░░░ 1 of 3 partitions"
    assert [each.split()[0] for each in lines[3:]] == ["t-1", "t-2", "t-0"]
    assert drawn(ongoing_table(ongoing))[-1].split() == ["t-2", "1,3,2", "2", "3"]


def test_a_lag_is_marked() -> None:
    rows = [Row(group="g", topic="t", partition=0, current=3, end=5), Row(group="g", topic="t")]
    cells = [row[4] for row in offset_table(rows).rows]
    assert cells == [Cell("2", Mark.WARN), None]
    assert marked(["1", "dir", "9", "0", "5", "5", "Leader"])[3] == Cell("0", Mark.GOOD)


def test_a_history_is_drawn_on_a_terminal_only() -> None:
    rows: list[dict[str, object]] = [
        {"topic": "a", "seconds": 1.5},
        {"topic": "b", "seconds": None},
    ]
    names = ["topic", "seconds"]
    many = rows * MAX_ROWS
    with redirect_stdout(Terminal()):
        assert any("───" in line for line in shown_lines(names, iter(rows)))
        assert [*shown_lines(names, iter(many))] == [*table_lines(names, many)]
    plain = [f"  {each}" for each in table_lines(names, rows)]
    assert [*shown_lines(names, rows, indent=2)] == plain


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
