"""The metadata shell at a terminal, with completion; or its commands from a pipe."""

from __future__ import annotations

import shlex
import shutil
import sys

import click

from quorate.cli.shell.commands import Leave, Mistake, Shell
from quorate.cli.shell.reading import completions, said

PROMPT = ">> "


def converse(shell: Shell) -> None:
    """Until `exit` or the end of the input."""
    at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if at_terminal:
        complete_with(shell)
    click.echo("[ Kafka Metadata Shell ]")
    while True:
        if at_terminal:
            shell.width = shutil.get_terminal_size().columns
        try:
            line = asked(at_terminal)
            if line is None:
                return
            remember(shell, line)
            answer(shell, line)
        except Leave:
            return
        except KeyboardInterrupt:
            click.echo("^C")


def asked(at_terminal: bool) -> str | None:
    """None at the end: Ctrl-D."""
    if at_terminal:
        try:
            return input(PROMPT)
        except EOFError:
            click.echo()
            return None
    click.echo(PROMPT, nl=False)
    line = sys.stdin.readline()
    return line.rstrip("\n") if line else None


def remember(shell: Shell, line: str) -> None:
    """What begins with a blank is not remembered, nor the same line twice in a row."""
    if line and not line.startswith(" ") and shell.history[-1:] != [line]:
        shell.history.append(line)


def answer(shell: Shell, line: str) -> None:
    try:
        lines = said(shell, shlex.split(line))
    except (Mistake, ValueError) as error:  # a quote that is not closed is a ValueError
        lines = [str(error)]
    for each in lines:
        click.echo(each)


def complete_with(shell: Shell) -> None:
    """Where Python has no readline, lines are read without it."""
    try:
        import readline
    except ImportError:
        return
    found: list[str] = []

    def complete(prefix: str, number: int) -> str | None:
        nonlocal found
        if number == 0:
            words = readline.get_line_buffer()[: readline.get_begidx()].split()
            found = completions(shell, words, prefix)
        return found[number] if number < len(found) else None

    readline.set_completer(complete)
    readline.set_completer_delims(" \t\n")
    readline.parse_and_bind("tab: complete")
