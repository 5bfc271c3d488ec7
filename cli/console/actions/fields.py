"""The fields of actions: kinds with bounds, and the values of a request. All functions are pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from quorate.cli.console.access.request_rules import RequestRefused
from quorate.quorum.controller.topics.topic_names import MAX_NAME_LENGTH, what_is_wrong
from quorate.quorum.node_message_bounds import INT32_MAX

MAX_LIST_CHARS = 400
"""The most characters of a list of brokers."""
Values = Mapping[str, Any]
"""The values of an action by field: a text, a number, a tuple of numbers, or None if empty."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of value. `parse` returns the value of a text, or raises ValueError with the rule."""

    parse: Callable[[str], Any]
    max_chars: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of an action. `label` is its name on the page.

    `blank` says what an empty field means. Without it, the field must have a value. The value must
    equal that of the field `same_as`, if there is one: the page asks for it with the confirmation.
    """

    name: str
    label: str
    kind: Kind
    blank: str | None = None
    same_as: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return what the page needs to draw the field."""
        return {
            "name": self.name,
            "label": self.label,
            "max_chars": self.kind.max_chars,
            "blank": self.blank,
            "same_as": self.same_as,
        }


def topic_name(text: str) -> str:
    """Return a legal name of a topic. Raise ValueError with the rule that it breaks."""
    problem = what_is_wrong(text)
    if problem is not None:
        raise ValueError(problem)
    return text


def whole_number(low: int, high: int) -> Kind:
    """Return the kind of the numbers from `low` to `high`."""
    max_chars = len(str(high))

    def parse(text: str) -> int:
        if not (text.isascii() and text.isdecimal() and low <= int(text) <= high):
            raise ValueError(f"the value must be a number from {low} to {high:,}")
        return int(text)

    return Kind(parse, max_chars)


def broker_ids(text: str) -> tuple[int, ...]:
    """Return the ids in `4,5,6`. Raise ValueError if one is no broker id or occurs twice."""
    ids = tuple(BROKER.parse(each.strip()) for each in text.split(","))
    if len(set(ids)) < len(ids):
        raise ValueError("a broker occurs twice")
    return ids


TOPIC = Kind(topic_name, MAX_NAME_LENGTH)
PARTITION = BROKER = whole_number(0, INT32_MAX)
BROKERS = Kind(broker_ids, MAX_LIST_CHARS)


def texts_in(body: bytes) -> dict[str, str]:
    """Return the fields of a request's body, which must be a JSON object of texts.

    Raise RequestRefused if it is anything else."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):  # a UnicodeDecodeError is a ValueError
        raise RequestRefused(400, "the body of the request is not JSON") from None
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        raise RequestRefused(400, "the body of the request must be an object of texts")
    return found


def values_of(fields: Iterable[Field], texts: Mapping[str, str]) -> Values:
    """Return the values of the fields. Raise RequestRefused if a text is invalid, if a field has
    no value, or if there is no field of this name."""
    values: dict[str, Any] = {}
    known = {each.name: each for each in fields}
    for name in texts:
        if name not in known:
            raise RequestRefused(400, f"the action has no field {name[:40]!r}")
    for name, field in known.items():
        text = texts.get(name, "").strip()
        if not text and field.blank is not None:
            values[name] = None
        elif not text:
            raise RequestRefused(400, f"{field.label}: a value is needed")
        elif len(text) > field.kind.max_chars:
            raise RequestRefused(400, f"{field.label}: more than {field.kind.max_chars} characters")
        else:
            values[name] = _parsed(field, text)
        if field.same_as is not None and values[name] != values[field.same_as]:
            raise RequestRefused(400, f"{field.label}: the value must be {values[field.same_as]}")
    return values


def _parsed(field: Field, text: str) -> Any:
    try:
        return field.kind.parse(text)
    except ValueError as error:
        raise RequestRefused(400, f"{field.label}: {error}") from None
