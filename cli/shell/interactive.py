"""The dialogue of the metadata shell at a terminal, with completion, or with a pipe."""

from __future__ import annotations

import shlex
import shutil
import sys

from quorate.cli.shell.commands import ExitShell, Shell, ShellError
from quorate.cli.shell.reading import completions, run_line
from quorate.cli.terminal.safe_text import echo

PROMPT = ">> "


def run_interactively(shell: Shell) -> None:
    """Read and run commands until `exit` or the end of the input. Ctrl-C cancels one line."""
    at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if at_terminal:
        complete_with(shell)
    echo("[ Kafka Metadata Shell ]")
    while True:
        if at_terminal:
            shell.width = shutil.get_terminal_size().columns
        try:
            line = asked(at_terminal)
            if line is None:
                return
            remember(shell, line)
            answer(shell, line)
        except ExitShell:
            return
        except KeyboardInterrupt:
            echo("^C")


def asked(at_terminal: bool) -> str | None:
    """Print the prompt and return the next line, or None at the end of the input."""
    if at_terminal:
        try:
            return input(PROMPT)
        except EOFError:
            echo()
            return None
    echo(PROMPT, nl=False)
    line = sys.stdin.readline()
    return line.rstrip("\n") if line else None


def remember(shell: Shell, line: str) -> None:
    """Add a line to the history, unless it begins with a blank or repeats the last one."""
    if line and not line.startswith(" ") and shell.history[-1:] != [line]:
        shell.history.append(line)


def answer(shell: Shell, line: str) -> None:
    """Run one line and print its result or error. Raise ExitShell for `exit`."""
    try:
        lines = run_line(shell, shlex.split(line))
    # shlex raises a ValueError for a quote that is not closed
    except (ShellError, ValueError) as error:
        lines = [str(error)]
    for each in lines:
        echo(each)


def complete_with(shell: Shell) -> None:
    """Set up completion if Python has the readline module."""
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
