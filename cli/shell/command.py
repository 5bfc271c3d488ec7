"""`quorate metadata-shell`, with the options, commands and output of kafka-metadata-shell.

`--format json` prints the results of one command as values."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import click

import quorate
from quorate.cli.client.options import format_option
from quorate.cli.parsing.described_argument import DescribedArgument
from quorate.cli.parsing.strict_command import StrictCommand
from quorate.cli.shell.commands import Shell, ShellError, below
from quorate.cli.shell.interactive import run_interactively
from quorate.cli.shell.nodes import plain, root
from quorate.cli.shell.paths import Found, absolute
from quorate.cli.shell.reading import run_line
from quorate.cli.shell.source import Contents, contents_of
from quorate.cli.terminal.safe_text import echo


@click.command("metadata-shell", cls=StrictCommand)
@click.option(
    "--snapshot",
    "-s",
    required=True,
    metavar="FILE|DIR",
    type=click.Path(exists=True, path_type=Path),
    help="A metadata snapshot, segment or log directory of Quorate or Apache Kafka.",
)
@click.option(
    "--offset", type=click.IntRange(min=0), help="Show the state after the record at this offset."
)
@click.option(
    "--show-secrets",
    is_flag=True,
    help="Show the keys of SCRAM credentials and the values of secret configs.",
)
@format_option
@click.argument(
    "command",
    nargs=-1,
    metavar="[COMMAND [TARGETS]...]",
    cls=DescribedArgument,
    description="cat, find, ls or tree, and the paths or patterns of nodes.",
)
def metadata_shell(
    snapshot: Path, offset: int | None, show_secrets: bool, output: str, command: tuple[str, ...]
) -> None:
    """Show the cluster's metadata as files: cat, find, ls and tree.

    Without a command the shell is interactive, and also accepts cd, pwd, history, man, help and
    exit.

    \b
    quorate metadata-shell --snapshot DIR/__cluster_metadata-0 tree /image/topics"""
    if output == "json" and not command:
        raise click.UsageError("--format json requires a command")
    contents = contents_of(snapshot, offset, show_secrets=show_secrets)
    warn_of_unknown(contents)
    shell = Shell(root(contents.image, contents.foreign, quorate.__version__))
    if not command:
        echo("Loading...\nStarting...")
        run_interactively(shell)
        return
    try:
        lines = as_json(shell, command) if output == "json" else run_once(shell, command)
    except ShellError as mistake:
        echo(str(mistake), err=output == "json")
        raise SystemExit(2) from None
    for line in lines:
        echo(line)
    if shell.missed:
        raise SystemExit(1)


def run_once(shell: Shell, command: Sequence[str]) -> list[str]:
    """Return the lines of one command.

    Raise ShellError if it cannot be parsed or is a command of the interactive shell only."""
    return run_line(shell, command, interactive=False)


def warn_of_unknown(contents: Contents) -> None:
    """Print the number of records of unknown types to standard error."""
    for kind, count in sorted(contents.unknown.items()):
        echo(f"Not shown: {count} records of the unknown type {kind}", err=True)


VALUES: dict[str, Callable[[Found], object]] = {
    "cat": lambda found: plain(found.node),
    "find": lambda found: list(below(absolute(found.path), found.node)),
    "ls": lambda found: None if isinstance(found.node, str) else sorted(found.node),
    "tree": lambda found: plain(found.node),
}


def as_json(shell: Shell, command: Sequence[str]) -> list[str]:
    """Return the results of a command as JSON by path, without the paths that are missing, which
    get their lines on standard error. Raise ShellError for the command's errors.

    If the command's help is requested, or if there is no command, return its lines."""
    lines = run_once(shell, command)
    words = [each for each in command if each]
    options = words[: words.index("--")] if "--" in words else words
    if not words or {"-h", "--help"} & {*options}:
        return lines
    value = VALUES[words[0]]
    targets = [each for each in words[1:] if each != "--"] or ["."]
    found = [each for target in targets for each in shell.find(target)]
    if words[0] == "cat":
        found = [each for each in found if isinstance(each.node, str)]
    for line in shell.misses:
        echo(line, err=True)
    return [json.dumps({absolute(each.path): value(each) for each in found}, indent=2)]
