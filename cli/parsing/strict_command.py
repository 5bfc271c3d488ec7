"""A command that takes an option with one value only once.

Click takes the last value and ignores the others: `--delete --topic a --topic b` would delete b
only. Kafka's tools refuse such options, too."""

from __future__ import annotations

from collections import Counter

import click


class StrictCommand(click.Command):
    """A click command that raises UsageError for a repeated option, unless the option is a flag or
    may have several values."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments into the parameters of the context."""
        given: list[click.Parameter] = []
        if not ctx.resilient_parsing:  # no completion of a shell
            _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        for param, count in Counter(given).items():
            if count > 1 and isinstance(param, click.Option) and takes_one_value(param):
                name = max(param.opts, key=len)
                raise click.UsageError(
                    f"Option {name!r} was given {count} times, and takes one value.", ctx
                )
        return super().parse_args(ctx, args)


def takes_one_value(option: click.Option) -> bool:
    """Return True if the option has a value, and the last one would replace those before it."""
    return not (option.multiple or option.count or option.is_flag)
