"""Numbers as Java reads and prints them, in configs and in the output of Kafka's tools."""

from __future__ import annotations

import math
import re
from decimal import Decimal

DOUBLE = re.compile(r"([+-]?(?:Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))[fFdD]?")
"""A number that Java's Double.parseDouble reads. It also reads NaN and hexadecimal numbers."""


def double_of(text: str) -> float:
    """Return the number of a text that matches DOUBLE. Raise ValueError for any other text."""
    found = DOUBLE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no number")
    return float(found[1])


def double_text(value: float) -> str:
    """Return a number as Java's Double.toString does. It may be infinite, but not NaN."""
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        plain = format(Decimal(repr(value)), "f")
        return plain if "." in plain else f"{plain}.0"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    rest = "".join(map(str, digits[1:])) or "0"
    return f"{'-' * sign}{digits[0]}.{rest}E{exponent + len(digits) - 1}"
