"""The checks of values in scenario files: numbers, texts, tables, and the nodes that steps name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

LEADER, FOLLOWER, ACTIVE, STANDBY, VICTIM = "leader", "follower", "controller", "standby", "victim"
ANY_BROKER, ANY_CONTROLLER = "any-broker", "any-controller"
ROLES = (LEADER, ACTIVE, VICTIM, FOLLOWER, STANDBY, ANY_BROKER, ANY_CONTROLLER)
"""The names that `node` accepts: the broker that leads the most partitions, the active controller,
the node that a step named last, the broker that leads the fewest partitions, a controller that is
not active, and a broker or controller that is drawn with the seed of the run. Nodes with a fault
are left out, except for the victim."""
OF_PARTITION = re.compile(r"(leader|follower) of ([0-9]{1,4})")
"""The leader of a partition of the run's topic, or the first other broker in its ISR."""
MAX_MS = 600_000
MIN_OFFSET_MS, MAX_OFFSET_MS = 1_800_000, 10 * 365 * 24 * 3_600_000
"""The least and greatest offset of a wrong clock. With less than half an hour, a record of the
metadata log would not show whether the clock of its writer was wrong."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule of one key.

    `wrong` checks a value: it returns the allowed values as text, or None if the value is allowed.
    The default is not checked. The text "-" means that there is none."""

    doc: str
    wrong: Callable[[Any], str | None]
    default: Any = None
    required: bool = False


Table = Mapping[str, Rule]
"""The rules of one table of a scenario file, by key."""


def whole(low: int, high: int) -> Callable[[Any], str | None]:
    """Return the check (`Rule.wrong`) of an integer from `low` to `high`."""

    def wrong(value: Any) -> str | None:
        fits = type(value) is int and low <= value <= high
        return None if fits else f"a whole number from {low} to {high}"

    return wrong


def clock_offset(value: Any) -> str | None:
    """Check that the value is the offset of a wrong clock in ms. The result is that of
    `Rule.wrong`."""
    fits = type(value) is int and MIN_OFFSET_MS <= abs(value) <= MAX_OFFSET_MS
    return None if fits else f"{MIN_OFFSET_MS} to {MAX_OFFSET_MS}, or the same with a minus"


def text(value: Any) -> str | None:
    """Check that the value is a text that is not empty. The result is that of `Rule.wrong`."""
    return None if isinstance(value, str) and value.strip() else "a text that is not empty"


def one_of(*names: str) -> Callable[[Any], str | None]:
    """Return the check (`Rule.wrong`) of a value that must be one of `names`."""
    return lambda value: None if value in names else "one of " + ", ".join(names)


def some_of(names: Mapping[str, Any]) -> Callable[[Any], str | None]:
    """Return the check (`Rule.wrong`) of a list of some of the names, which is not empty."""

    def wrong(value: Any) -> str | None:
        fits = (
            isinstance(value, list)
            and value
            and all(isinstance(each, str) and each in names for each in value)
        )
        return None if fits else f"a list of some of {', '.join(sorted(names))}"

    return wrong


def node(value: Any) -> str | None:
    """Check that the value is a node id, one of ROLES, or has the form of OF_PARTITION."""
    known = type(value) is int and value >= 0
    if isinstance(value, str):
        known = value in ROLES or OF_PARTITION.fullmatch(value) is not None
    allowed = f"a node's id, one of {', '.join(ROLES)}, `leader of N` or `follower of N`"
    return None if known else allowed


def settings(value: Any) -> str | None:
    """Check that the value is a table of texts, numbers and booleans."""
    fits = isinstance(value, dict) and all(
        isinstance(each, str | int | bool) for each in value.values()
    )
    return None if fits else "a table of configuration keys, each with a text, number or boolean"


def table(value: Any) -> str | None:
    """Check that the value is a table."""
    return None if isinstance(value, dict) else "a table"


def tables(value: Any) -> str | None:
    """Check that the value is a list of tables that is not empty."""
    fits = isinstance(value, list) and value and all(isinstance(each, dict) for each in value)
    return None if fits else "one or more tables, as [[variants]] and [[variants.steps]]"
