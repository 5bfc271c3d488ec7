"""A group of commands with suggestions for misspelt names, and examples in the help."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from quorate.cli.parsing.strict_command import StrictCommand

MAX_SENTENCE = 1000
"""The longest first sentence of a command's help, in characters."""


class SuggestingGroup(click.Group):
    """A click group. Click itself suggests several options, among them distant ones."""

    command_class = StrictCommand

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Parse the options of the group itself."""
        with one_suggestion():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Parse the options of the command, and run it."""
        with one_suggestion():
            return super().invoke(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command, with its examples as the end of its help, or None."""
        return with_examples(super().get_command(ctx, cmd_name), ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the whole first sentence of each command, which click would cut to one line."""
        names = self.list_commands(ctx)
        found = [(name, self.get_command(ctx, name)) for name in names]
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, command.get_short_help_str(MAX_SENTENCE))
                    for name, command in found
                    if command is not None and not command.hidden
                ]
            )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments name. Raise UsageError, with a suggestion, if there
        is none."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from quorate.config.did_you_mean import did_you_mean

            hint = did_you_mean(args[0], self.list_commands(ctx))
            raise click.UsageError(error.message + hint, error.ctx) from None


@contextmanager
def one_suggestion() -> Iterator[None]:
    """Suggest one option if the block raises NoSuchOption."""
    try:
        yield
    except click.NoSuchOption as error:
        if error.ctx is None or error.possibilities is None:
            raise
        from quorate.config.did_you_mean import did_you_mean

        options = [
            name
            for each in error.ctx.command.get_params(error.ctx)
            if isinstance(each, click.Option) and not each.hidden
            for name in (*each.opts, *each.secondary_opts)
            if name.startswith("--")
        ]
        hint = did_you_mean(error.option_name, options)
        raise click.NoSuchOption(error.option_name, error.message + hint, ctx=error.ctx) from None


def with_examples(
    command: click.Command | None, ctx: click.Context, name: str
) -> click.Command | None:
    """Return the command with its examples. `ctx` is the context of its group."""
    if command is not None and command.epilog is None:
        from quorate.cli.parsing.examples import epilog_of

        command.epilog = epilog_of(" ".join((*ctx.command_path.split()[1:], name)))
    return command
