"""The pages of the commands: usage, options and examples, as `--help` has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quorate.cli.main import main
from quorate.cli.manual.description import Described, described
from tests.docs.reference.markdown import fenced, text

INDEX = "reference/commands.md"


def pages() -> dict[str, str]:
    """Return the page that lists all commands, and a page for each command with the commands in it,
    by path."""
    first, *others = described(main)
    groups: dict[str, list[Described]] = {}
    for each in others:
        groups.setdefault(each.path.split()[1], []).append(each)
    made = {_page_name(name): _page(group) for name, group in groups.items()}
    return {INDEX: "\n".join(_index(first)) + "\n", **made}


def _page_name(name: str) -> str:
    return f"reference/commands/{name}.md"


def _index(main_command: Described) -> Iterator[str]:
    yield "# Commands\n"
    yield "`quorate COMMAND --help` prints the same. `quorate man-pages DIR` writes man pages.\n"
    for name, summary in main_command.commands:
        yield f"- [`quorate {name}`](commands/{name}.md): {text(summary)}"
    yield ""
    yield from _options(main_command)


def _page(group: list[Described]) -> str:
    return "\n".join(line for each in group for line in _section(each)) + "\n"


def _section(command: Described) -> Iterator[str]:
    yield f"{'#' * (command.path.count(' '))} {command.path}\n"
    yield from fenced([command.usage])
    for paragraph in command.paragraphs:
        if paragraph.verbatim:
            yield from fenced(paragraph.text.rstrip().split("\n"))
        else:
            yield text(paragraph.text) + "\n"
    yield from _options(command)
    if command.examples:
        yield "Examples:\n"
        yield from fenced(command.examples, "sh")


def _options(command: Described) -> Iterator[str]:
    if any(meaning for _, meaning in command.arguments):
        yield "Arguments:\n"
        yield from _terms(command.arguments)
    if command.options:
        yield "Options:\n"
    yield from _terms(command.options)


def _terms(terms: Sequence[tuple[str, str]]) -> Iterator[str]:
    for names, meaning in terms:
        yield f"- `{names}`" + (f": {text(meaning)}" if meaning else "")
    yield ""
