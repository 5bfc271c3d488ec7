"""An option with one value may be given once only."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from quorate.cli.main import main
from quorate.cli.parsing.strict_command import StrictCommand


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("topics", "--delete", "--topic", "a", "--topic=b"), "--topic"),
        (("topics", "-b", "h:1", "--bootstrap-server", "h:2", "--list"), "--bootstrap-server"),
        (("storage", "format", "--cluster-id", "x", "--cluster-id", "x"), "--cluster-id"),
        (("history", "report", "--out", "x", "--out", "y", "."), "--out"),
    ],
)
def test_the_earlier_values_are_not_ignored(arguments: tuple[str, ...], option: str) -> None:
    ended = CliRunner().invoke(main, arguments)
    assert ended.exit_code == 2
    assert f"Option '{option}' was given 2 times, and takes one value." in ended.output


def test_flags_and_lists_may_be_repeated() -> None:
    @click.command(cls=StrictCommand)
    @click.option("--force", is_flag=True)
    @click.option("-v", count=True)
    @click.option("--name", multiple=True)
    @click.option("--on/--off")
    def command(**values: object) -> None:
        click.echo(str(values))

    line = ["--force", "--force", "-vv", "-v", "--name", "a", "--name", "b", "--on", "--off"]
    assert "'name': ('a', 'b')" in CliRunner().invoke(command, line).output


def test_every_command_is_strict() -> None:
    found = list(commands(main, click.Context(main, **main.context_settings)))
    assert len(found) > 50
    assert [name for name, each in found if not isinstance(each, StrictCommand)] == []


def commands(group: click.Group, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, click.Context(command, parent=context))
        else:
            yield name, command
