"""Texts of peers do not control the terminal: plain lines, names of groups, and errors."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from quorate.cli.client.errors import NotReachable, Refused
from quorate.cli.groups.command import echo_lines, warn
from quorate.cli.history.text import shown_lines
from quorate.cli.status.watch import Unreachable, show_block
from quorate.cli.terminal.safe_text import echo_bytes, printable, safe_lines
from quorate.cli.terminal.tables import MAX_ROWS, Table, show
from quorate.quorum.protocol.schemas.group_admin import DescribedGroup

NAME, SAFE = "a\x1b[2J\tb\x9b2J", "a?[2J\tb?2J"
"""A name that would clear the screen, and its safe form."""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_only_a_terminal_gets_another_text() -> None:
    assert [*safe_lines([NAME], Terminal())] == [SAFE]
    assert [*safe_lines([NAME], io.StringIO())] == [NAME]
    assert printable("é\u202e\n\t\x00") == "é?\n??", "it contains an override of the direction"


@pytest.mark.parametrize(("term", "rows"), [("xterm", MAX_ROWS + 1), ("dumb", 1)])
def test_a_table_that_is_not_drawn(term: str, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", term)
    with redirect_stdout(Terminal()) as terminal:
        show([NAME], [Table(rows=[(NAME,)] * rows)])
        assert terminal.getvalue() == f"{SAFE}\n"
        assert not any("\x1b" in line for line in shown_lines(["rack"], [{"rack": NAME}] * rows))
        show_block(Unreachable(NAME))
    assert terminal.getvalue().endswith(f"\n{SAFE}\n")


def test_the_names_of_groups() -> None:
    group = DescribedGroup(
        error_code=0, group_id=NAME, group_state="Empty", protocol_type="", protocol_data="",
        members=(),
    )  # fmt: skip
    with redirect_stdout(Terminal()) as output, redirect_stderr(Terminal()) as errors:
        echo_lines([group.group_id])
        warn(group)
    assert output.getvalue() == f"{SAFE}\n"
    assert errors.getvalue() == f"\nConsumer group '{SAFE}' has no active members.\n"


def test_the_values_of_records() -> None:
    with redirect_stdout(Terminal()) as output:
        echo_bytes(f"{NAME}\n".encode() + b"\xff\n")
    assert output.getvalue() == f"{SAFE}\n\ufffd\n"
    pipe = io.TextIOWrapper(io.BytesIO())
    with redirect_stdout(pipe):
        echo_bytes(b"\xff\x1b\n")
    assert pipe.buffer.getvalue() == b"\xff\x1b\n"


def test_every_command_prints_safe_text() -> None:
    """Only the package that makes texts safe prints with click's own function."""
    cli = Path(__file__).parents[3] / "cli"
    found = {
        str(each.relative_to(cli))
        for each in cli.rglob("*.py")
        if re.search(
            r"click\.(secho|echo|prompt)|\bprint\(|sys\.std(out|err)\.(buffer\.)?write",
            each.read_text(),
        )
    }
    assert found == {
        "client/errors.py",
        "terminal/safe_text.py",
        "terminal/tables.py",
        # these print no text of a peer, or the values of a message between processes
        "chaos/control/command_guard.py",
        "chaos/control/pause_guard.py",
        "chaos/results/view.py",
        "chaos/workload/group_member.py",
        "demo/run.py",
    }


@pytest.mark.parametrize("kind", [Refused, NotReachable])
def test_the_message_of_an_error(kind: type[Refused | NotReachable]) -> None:
    with redirect_stderr(Terminal()) as errors:
        kind(f"group {NAME}\nis not empty").show()
    assert errors.getvalue() == f"Error: group {SAFE}\nis not empty\n"
    with redirect_stderr(io.StringIO()) as pipe:
        kind("a\x9bb").show()
    assert pipe.getvalue() == "Error: a\x9bb\n"
