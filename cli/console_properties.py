"""The values of --property of console-producer and console-consumer.

Kafka's tools ignore a property that they do not know. Here it is refused, because `parse.headers`,
for example, would change what the records mean."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import click


def properties_of(texts: Iterable[str], known: Collection[str]) -> dict[str, str]:
    """Return the value of each property. Of two values the last one counts, as in Kafka.

    Raise UsageError if a text is not `name=value`, or if its name is not in `known`."""
    found = {}
    for text in texts:
        name, is_pair, value = text.partition("=")
        if not is_pair:
            raise click.UsageError(f"--property {text!r} must be NAME=VALUE")
        if name not in known:
            raise click.UsageError(
                f"the property {name!r} has no effect here. It must be one of {', '.join(known)}"
            )
        found[name] = value
    return found
