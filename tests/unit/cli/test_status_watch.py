"""`status --watch`: a block per change, JSON lines, a redrawn terminal, and an unreachable
cluster."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import pytest

from quorate.cli.client.errors import NotReachable
from quorate.cli.status import watch as status_watch
from quorate.cli.status.cluster_status import BrokerLine, Status
from quorate.cli.status.partition_problems import Problem, Reason
from quorate.cli.status.status_tables import status_tables
from quorate.cli.status.watch import CLEAR_BELOW, ERASE, HOME, fitted, watch_status
from quorate.cli.terminal.tables import Part, Table, terminal_lines

HEALTHY = Status(
    cluster_id="C",
    leader=1,
    epoch=2,
    high_watermark=50,
    voter_lags={1: 0, 2: 0},
    brokers=(BrokerLine(id=4, address="h:9092", state="up", rack=None),),
    topics=1,
    partitions=1,
    problems=(),
)
MOVED_ON = replace(HEALTHY, high_watermark=60, voter_lags={1: 0, 2: 3})
BROKEN = replace(
    HEALTHY,
    brokers=(BrokerLine(id=4, address="h:9092", state="fenced", rack=None, why="session-expired"),),
    problems=(
        Problem(
            topic="t",
            partition=0,
            state="offline",
            leader=None,
            isr=(4,),
            replicas=(4,),
            reasons=(Reason(broker=4, down=True),),
            why="w",
        ),
    ),
)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Callable[[], Status]]:
    """Creates a `read` function that returns these values one after another and is then
    interrupted."""

    def scripted(*values: Status | Exception) -> Callable[[], Status]:
        script: Iterator[Status | Exception] = iter(values)

        def read() -> Status:
            value = next(script, None)
            if value is None:
                raise KeyboardInterrupt
            if isinstance(value, Exception):
                raise value
            return value

        return read

    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setattr(status_watch, "now_text", lambda: "NOW")
    return scripted


Looks = Callable[..., Callable[[], Status]]


def test_a_block_for_each_change(looks: Looks, capsys: pytest.CaptureFixture[str]) -> None:
    unreachable = NotReachable("no server answers: h:9092")
    read = looks(HEALTHY, MOVED_ON, BROKEN, unreachable, unreachable, HEALTHY)
    watch_status(read, 1.0, status_tables, as_json=False)
    blocks = capsys.readouterr().out.split("--- NOW\n")[1:]
    assert len(blocks) == 4
    assert "0 offline" in blocks[0]
    assert "Broker 4: fenced, h:9092; session-expired\n" in blocks[1]
    assert "  t-0 offline: leader none, isr [4] of [4]: broker 4 is down; w\n" in blocks[1]
    assert blocks[2] == "no server answers: h:9092\n"
    assert blocks[3] == blocks[0]


def test_a_line_of_json_for_each_change(looks: Looks, capsys: pytest.CaptureFixture[str]) -> None:
    read = looks(HEALTHY, MOVED_ON, BROKEN, NotReachable("gone"))
    watch_status(read, 1.0, status_tables, as_json=True)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line.get("high_watermark") for line in lines] == [50, 50, None]
    assert lines[1]["problems"][0]["state"] == "offline"
    assert lines[1]["time"] == "NOW"
    assert lines[2]["error"] == "gone"


def test_a_terminal_is_redrawn(
    looks: Looks, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    watch_status(looks(HEALTHY, MOVED_ON), 1.0, status_tables, as_json=False)
    out = capsys.readouterr().out
    assert out.count(ERASE) == 1
    assert out.count(HOME) == out.count(CLEAR_BELOW) == 2
    assert "high watermark 60" in out


def test_a_redrawn_status_fits_the_terminal_and_keeps_its_header() -> None:
    lines = ["2026-01-01", "Cluster C", *(f"partition {number}" for number in range(100))]
    shown = fitted(lines, 12)
    assert len(shown) == 11
    assert shown[:2] == lines[:2]
    assert shown[-1] == "... 92 more lines; make the terminal larger, or filter"
    assert fitted(lines[:11], 12) == lines[:11]


def test_rows_below_the_screen_are_counted_but_not_drawn(
    looks: Looks, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    many = tuple(replace(BROKEN.problems[0], partition=number) for number in range(5_000))
    drawn: list[int] = []

    def draw(status: Status) -> Iterator[Part]:
        return status_tables(status, every=True)

    def counted(parts: Iterable[Part], columns: int | None = None) -> Iterator[str]:
        shown = [*parts]
        drawn.extend(len(each.rows) for each in shown if isinstance(each, Table))
        return terminal_lines(shown, columns)

    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("LINES", "20")
    monkeypatch.setattr(status_watch, "terminal_lines", counted)
    broken = replace(BROKEN, problems=many, partitions=5_000)
    watch_status(looks(broken), 1.0, draw, as_json=False, every=True)
    assert max(drawn) == 20
    (said,) = re.findall(r"\.\.\. (\d+) more lines", capsys.readouterr().out)
    before = len([*terminal_lines(["NOW", *draw(replace(broken, problems=many[:100]))], 200)])
    assert int(said) == before + 4_900 - 18


def test_a_terminal_without_a_cursor_gets_blocks(
    looks: Looks, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb")
    watch_status(looks(HEALTHY, MOVED_ON), 1.0, status_tables, as_json=False)
    out = capsys.readouterr().out
    assert out.count("--- NOW") == 1
    assert "\x1b" not in out


def slow_reads(monkeypatch: pytest.MonkeyPatch, done: threading.Event) -> Callable[[], Status]:
    """The first read is fast, the second one lasts until `done` is set, and Ctrl-C follows."""
    monkeypatch.setattr(status_watch, "QUIET_S", 0.01)
    monkeypatch.setattr(status_watch, "REDRAW_S", 0.01)
    reads = iter(range(3))

    def read() -> Status:
        number = next(reads)
        if number == 2:
            raise KeyboardInterrupt
        if number == 1:
            assert done.wait(30), "nothing says that the read takes long"
        return HEALTHY

    return read


def test_a_terminal_says_that_the_old_state_is_old_during_a_slow_read(
    looks: Looks, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    done, drawn = threading.Event(), list[str]()

    def draw(text: str, *, nl: bool) -> None:
        drawn.append(text)
        if "no answer for " in text:
            done.set()

    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(status_watch, "echo_drawn", draw)
    watch_status(slow_reads(monkeypatch, done), 1.0, status_tables, as_json=False)
    assert "no answer" not in drawn[0] + drawn[-1]
    silent = next(each for each in drawn if "no answer for 0 s" in each)
    assert silent.index("no answer") < silent.index("The state below is that of NOW")
    assert silent.index("The state below") < silent.index("Cluster C")


@pytest.mark.parametrize("as_json", [False, True])
def test_a_slow_read_is_printed_once_and_then_the_state_again(
    as_json: bool, looks: Looks, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, lines = threading.Event(), list[str]()

    def echo(text: str) -> None:
        lines.append(text)
        if "no answer for " in text or "no_answer_s" in text:
            done.set()

    monkeypatch.setattr(status_watch, "echo", echo)
    watch_status(slow_reads(monkeypatch, done), 1.0, status_tables, as_json=as_json)
    if as_json:
        assert [sorted(json.loads(line))[0:2] for line in lines][1] == ["no_answer_s", "time"]
        assert len(lines) == 3
    else:
        text = "\n".join(lines)
        assert text.count("--- NOW\nno answer for 0 s") == 1
        assert text.count("Cluster C") == 2


def test_an_error_on_a_terminal_is_shown_above_the_last_state(
    looks: Looks, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    watch_status(looks(HEALTHY, NotReachable("gone")), 1.0, status_tables, as_json=False)
    last = capsys.readouterr().out.rpartition(HOME)[2]
    assert last.index("gone") < last.index("The state below is that of NOW") < last.index("Cluster")
