"""Damage to bytes, drawn from a seed."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence

MAX_INPUT_BYTES = 300_000
MAX_CHANGES = 4
NUMBERS = tuple(
    struct.pack(form, number)
    for form, numbers in (
        (">h", (-1, 0, 1, 32_767, -32_768)),
        (">i", (-1, 0, 1, 2**31 - 1, -(2**31), 65_536)),
        (">q", (-1, 0, 1, 2**63 - 1, -(2**63), 2**40)),
        ("<I", (2**32 - 1, 2**31)),
    )
    for number in numbers
)
VARINTS = (b"\x00", b"\x01", b"\x7f", b"\xff\x7f", b"\xff\xff\xff\xff\x0f", b"\xff" * 9 + b"\x01")

Mutation = Callable[[bytearray, random.Random], None]


def position(data: bytearray, chance: random.Random) -> int:
    return chance.randrange(len(data) + 1)


def flip_bit(data: bytearray, chance: random.Random) -> None:
    if data:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def set_byte(data: bytearray, chance: random.Random) -> None:
    if data:
        data[chance.randrange(len(data))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))


def cut(data: bytearray, chance: random.Random) -> None:
    del data[position(data, chance) :]


def remove(data: bytearray, chance: random.Random) -> None:
    at = position(data, chance)
    del data[at : at + chance.choice((1, 2, 4, 8, 32))]


def insert(data: bytearray, chance: random.Random) -> None:
    at = position(data, chance)
    data[at:at] = chance.randbytes(chance.choice((1, 2, 4, 8, 32)))


def overwrite(data: bytearray, chance: random.Random) -> None:
    at = position(data, chance)
    number = chance.choice(NUMBERS)
    data[at : at + len(number)] = number


def varint(data: bytearray, chance: random.Random) -> None:
    at = position(data, chance)
    data[at : at + 1] = chance.choice(VARINTS)


def repeat(data: bytearray, chance: random.Random) -> None:
    at = position(data, chance)
    piece = data[at : at + chance.randrange(1, 64)]
    data[at:at] = piece * chance.choice((1, 2, 16, 500))


def swap(data: bytearray, chance: random.Random) -> None:
    one, other = sorted((position(data, chance), position(data, chance)))
    data[:] = data[one:other] + data[:one] + data[other:]


MUTATIONS: Sequence[Mutation] = (
    *(flip_bit, flip_bit, set_byte, set_byte, cut, remove, insert, overwrite, overwrite),
    *(varint, varint, repeat, swap),
)


def mutated(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.randrange(1, MAX_CHANGES + 1)):
        chance.choice(MUTATIONS)(changed, chance)
    return bytes(changed[:MAX_INPUT_BYTES])
