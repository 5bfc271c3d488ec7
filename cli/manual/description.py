"""The description of each command: usage, help, options and examples, as plain data.

The source is click, so the description contains what `--help` prints. Describing imports the module
of every command, but runs none of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import click

from quorate.cli.parsing.examples import EXAMPLES

VERBATIM = "\b"
"""The line with which click marks a paragraph that keeps its lines."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph of a help text. `verbatim` is True if its lines must stay as they are."""

    text: str
    verbatim: bool


@dataclass(frozen=True, slots=True)
class Described:
    """One command.

    `path` starts with "quorate". `arguments` are the positional ones with their help. `options` are
    pairs: the names with the value, such as
    "--topic TEXT", and the help with the default. `examples` are whole command lines. `commands`
    are the names and the short help of the commands of a group; they are empty for any other
    command."""

    path: str
    usage: str
    paragraphs: tuple[Paragraph, ...]
    arguments: tuple[tuple[str, str], ...]
    options: tuple[tuple[str, str], ...]
    examples: tuple[str, ...]
    commands: tuple[tuple[str, str], ...]

    @property
    def summary(self) -> str:
        """Return the first paragraph of the help, on one line."""
        return " ".join(self.paragraphs[0].text.split()) if self.paragraphs else ""


def described(
    command: click.Command, context: click.Context | None = None, path: str = "quorate"
) -> Iterator[Described]:
    """Yield the description of a command and, below it, of all its commands, without the hidden
    ones. `context` is the context of the command; None makes one for the main command."""
    if context is None:
        context = click.Context(command, info_name=path, **command.context_settings)
    inner = list(_commands(command, context))
    yield Described(
        path=path,
        usage=" ".join((path, *command.collect_usage_pieces(context))),
        paragraphs=tuple(paragraphs(command.help or "")),
        arguments=tuple(
            (each.make_metavar(context), getattr(each, "help", None) or "")
            for each in command.get_params(context)
            if isinstance(each, click.Argument)
        ),
        options=tuple(
            record
            for each in command.get_params(context)
            if not isinstance(each, click.Argument)
            and (record := each.get_help_record(context)) is not None
        ),
        examples=tuple(
            f"{path} {each}".rstrip() for each in EXAMPLES.get(path.partition(" ")[2], ())
        ),
        commands=tuple((name, each.get_short_help_str(200)) for name, each in inner),
    )
    for name, each in inner:
        inside = click.Context(each, parent=context, info_name=name)
        yield from described(each, inside, f"{path} {name}")


def _commands(
    command: click.Command, context: click.Context
) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        return
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        if found is not None and not found.hidden:
            yield name, found


def paragraphs(text: str) -> Iterator[Paragraph]:
    """Yield the paragraphs of a help text. A form feed ends the text, as in click."""
    for part in text.partition("\f")[0].split("\n\n"):
        lines = part.strip("\n").split("\n")
        verbatim = lines[0].strip() == VERBATIM
        kept = "\n".join(lines[1:] if verbatim else lines)
        if kept.strip():
            yield Paragraph(kept, verbatim)
