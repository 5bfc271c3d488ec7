"""A group of commands that suggests a similar name for a command that does not exist."""

from __future__ import annotations

import click


class SuggestingGroup(click.Group):
    """A click group with suggestions. Click itself suggests only options."""

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
