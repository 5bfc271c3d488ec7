"""The entities that the options of `quorate configs` name, in the order of the command line.

kafka-configs takes `--entity-name` and `--entity-default` once for each `--entity-type`, and the
first of them belongs to the first type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from quorate.cli.parsing.strict_command import StrictCommand

NAMES = "quorate.configs.names"
"""The key of the names in `click.Context.meta`; "" stands for `--entity-default`."""
SHORT_FORMS = (
    # (option, the entity type)
    ("topic", "topics"),
    ("client", "clients"),
    ("user", "users"),
    ("broker", "brokers"),
    ("ip", "ips"),
)
"""In the order of kafka-configs, which names the first entity when it has ended."""


class EntityCommand(StrictCommand):
    """A command that keeps the order of `--entity-name` and `--entity-default`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Store the names under NAMES, and parse the options as any command does."""
        ctx.meta[NAMES] = named_in(args)
        return super().parse_args(ctx, args)


def named_in(args: Sequence[str]) -> list[str]:
    """Return the entity names of a command line in their order."""
    names, rest = [], iter(args)
    for each in rest:
        if each == "--entity-default":
            names.append("")
        elif each == "--entity-name":
            names.append(next(rest, ""))
        elif each.startswith("--entity-name="):
            names.append(each.partition("=")[2])
    return names


def entities_of(
    types: Sequence[str], names: Sequence[str], short_forms: Mapping[str, Any]
) -> tuple[list[str], list[str]]:
    """Return the types and the names that the options give, in pairs as far as there are names.

    `short_forms` holds the values of options such as `--topic` and `--broker-defaults`. Raise
    UsageError if no option names a type, or if a short form is combined with `--entity-type`."""
    given = [
        (kind, short_forms[option])
        for option, kind in SHORT_FORMS
        if short_forms.get(option) is not None
    ]
    given += [(kind, "") for option, kind in SHORT_FORMS if short_forms.get(f"{option}_defaults")]
    if not types and not given:
        raise click.UsageError(
            "At least one of --entity-type, --topic, --broker, --user, --client, --ip is required"
        )
    if types and given:
        raise click.UsageError(
            f"--entity-type cannot be combined with an option that names one of the {given[0][0]}"
        )
    if types:
        return list(types), list(names)
    return [kind for kind, _ in given], [name for _, name in given]
