"""The rules about options that an action ignores, or that exclude each other."""

from __future__ import annotations

import click


def is_given(value: object) -> bool:
    """Return True if the user has given the option. A flag without the option is False, an option
    that may be repeated is empty, and any other option is None."""
    return value is not None and value is not False and value != ()


def not_together(one: str, other: str) -> click.UsageError:
    """Return the error about two options, named as parameters, that cannot be combined, in the
    words of Kafka's tools."""
    first, second = (name.replace("_", "-") for name in (one, other))
    return click.UsageError(f'Option "[{first}]" can\'t be used with option "[{second}]"')
