"""Numbers as Java prints them, in the output of Kafka's tools."""

from __future__ import annotations

from decimal import Decimal


def double_text(value: float) -> str:
    """Return a number as Java's Double.toString does."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        plain = format(Decimal(repr(value)), "f")
        return plain if "." in plain else f"{plain}.0"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)  # quotas are finite
    rest = "".join(map(str, digits[1:])) or "0"
    return f"{'-' * sign}{digits[0]}.{rest}E{exponent + len(digits) - 1}"
