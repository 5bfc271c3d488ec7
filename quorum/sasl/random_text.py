"""Random texts as Kafka makes them for nonces and salts: 130 random bits in base 36."""

from __future__ import annotations

from quorate.quorum.seams import Random

BITS = 130
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def random_text(random: Random) -> str:
    """Return a new text of 24 to 26 characters. `random` must be unpredictable in production."""
    return text_of(random.getrandbits(BITS))


def text_of(number: int) -> str:
    """Return the last BITS bits of `number` in base 36."""
    number &= (1 << BITS) - 1
    digits = []
    while number:
        number, digit = divmod(number, 36)
        digits.append(DIGITS[digit])
    return "".join(reversed(digits)) or "0"
