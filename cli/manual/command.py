"""`quorate man-pages`: writes the man pages of all commands."""

from __future__ import annotations

from pathlib import Path

import click

from quorate.cli.client.errors import Refused
from quorate.cli.manual.description import Described, described
from quorate.cli.manual.roff import man_page, page_name
from quorate.cli.parsing.described_argument import DescribedArgument
from quorate.cli.parsing.strict_command import StrictCommand
from quorate.cli.terminal.safe_text import echo

MAIN = "quorate"


@click.command(cls=StrictCommand)
@click.argument(
    "directory",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    cls=DescribedArgument,
    description="The directory of the pages. It is created if it does not exist.",
)
def man_pages(directory: Path) -> None:
    """Write a man page for each command into DIR.

    `man` searches the directory share/man beside each bin directory of the PATH, and
    ~/.local/share/man. After the example, `man quorate-topics` shows a page."""
    from importlib.metadata import version

    from quorate.cli.main import main

    written = pages(main, version(MAIN))
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, page in written.items():
            (directory / name).write_text(page)
    except OSError as error:
        raise Refused(f"cannot write the man pages to {directory}: {error}") from error
    echo(f"wrote {len(written)} man pages to {directory}")


def pages(main: click.Command, version: str) -> dict[str, str]:
    """Return the pages of the main command and of all its commands, by file name."""
    all_of_them = list(described(main))
    return {
        f"{page_name(each.path)}.1": man_page(each, neighbours(each, all_of_them), version)
        for each in all_of_them
    }


def neighbours(command: Described, others: list[Described]) -> list[str]:
    """Return the paths of the group of a command, and of the commands in it if it is a group."""
    above = command.path.rpartition(" ")[0]
    return [each.path for each in others if each.path == above] + [
        f"{command.path} {name}" for name, _ in command.commands
    ]
