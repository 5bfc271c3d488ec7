"""Options and output that several commands of `quorate history` share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from quorate.cli.terminal.safe_text import echo
from quorate.quorum.analytics.log.damage import Damage, Found, refuse
from quorate.quorum.analytics.replay.differences import Point

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

strict_option = click.option(
    "--strict",
    is_flag=True,
    help="Fail if the log is damaged, incomplete or of a newer version. Without this option, use "
    "what can be read, and print the errors.",
)

permissive_option = click.option(
    "--permissive",
    is_flag=True,
    help="Continue behind damage, and print what is missing. The result may then be wrong. Without "
    "this option, fail.",
)
MAX_DIGITS = 19
"""The most digits of an offset or of a time in ms, which are below 2^63."""
MAX_DAMAGES = 10
"""Maximum number of damages that have a line of their own."""


@contextmanager
def damages(permissive: bool) -> Iterator[Found]:
    """Yield a function that takes the damage of a log, and print the damage on standard error at
    the end of the block. Without `permissive`, the function raises DamagedLog.

    A log that is read twice has the same damage twice, which is printed once."""
    if not permissive:
        yield refuse
        return
    met: dict[tuple[str, int], str] = {}

    def found(damage: Damage) -> None:
        met.setdefault((damage.kind, damage.first_offset), damage.text)

    yield found
    for (kind, _), text in list(met.items())[:MAX_DAMAGES]:
        echo(f"error: {kind}: {text}", err=True)
    if len(met) > MAX_DAMAGES:
        echo(f"and {len(met) - MAX_DAMAGES:,} more errors", err=True)


def moment_ms(context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    """Return a time in ms since 1970, from ISO 8601 (UTC without a zone) or a number of ms.

    Raise BadParameter if it is neither."""
    if value is None:
        return None
    try:
        if value.isdecimal() and len(value) <= MAX_DIGITS:
            return int(value)
        moment = datetime.fromisoformat(value)
    except ValueError:
        text = f"{value!r} must be a time such as 2026-01-31T23:59:59, or ms since 1970"
        raise click.BadParameter(text) from None
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return round(zoned.timestamp() * 1000)


def point(context: click.Context, parameter: click.Parameter, value: str | None) -> Point | None:
    """Return the point that an offset (a number) or a time (ISO 8601, UTC without a zone) names.

    Raise BadParameter if the value is neither."""
    if value is None:
        return None
    if value.isdecimal() and len(value) <= MAX_DIGITS:
        return Point(offset=int(value))
    return Point(time_ms=moment_ms(context, parameter, value))


def print_warnings(warnings: DataFrame) -> None:
    """Print the table `warnings` as lines on standard error."""
    from quorate.quorum.analytics.tables.warning_lines import warning_lines

    for line in warning_lines(warnings):
        echo(line, err=True)
