"""The page of Kafka's properties that a node accepts without an effect, or refuses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from quorate.config.not_in_effect import REASONS
from quorate.config.refused_keys import DECEIVING
from tests.docs.reference.markdown import code, table, text

PAGE = "reference/keys-without-effect.md"
GROUP = re.compile(r"\(([^()]*)\)(\?)?")


def pages() -> dict[str, str]:
    """Return the page by its path."""
    return {PAGE: "\n".join(_page()) + "\n"}


def _page() -> Iterator[str]:
    yield "# Kafka's keys without effect here\n"
    yield "## Accepted keys that change nothing\n"
    yield "A node with one of these keys starts, and names it in a warning.\n"
    yield from table(
        ("keys", "reason"),
        (
            (", ".join(f"`{name}`" for each in patterns for name in names(each)), text(reason))
            for reason, patterns in REASONS
        ),
    )
    yield "## Refused keys\n"
    yield "A node with one of these keys does not start, because it could not do what the key says."
    yield "A key that another page of this reference describes is not refused.\n"
    yield from table(
        ("keys", "values that are accepted", "reason"),
        (
            (
                ", ".join(f"`{name}`" for name in names(pattern)),
                ", ".join(map(code, values)) or "none",
                text(reason),
            )
            for pattern, values, reason in DECEIVING
        ),
    )


def names(pattern: str) -> list[str]:
    """Return the names that a pattern of whole names matches, with * for any text."""
    found = GROUP.search(pattern)
    if found is None:
        return [pattern.replace(".+", "*").replace("\\.", ".")]
    choices = found[1].split("|") + ([""] if found[2] else [])
    before, after = pattern[: found.start()], pattern[found.end() :]
    return [name for choice in choices for name in names(before + choice + after)]
