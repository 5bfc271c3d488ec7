"""Frames that no correct client sends: random bytes, and damaged requests of every API and version.

A seed always gives the same frames.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator

from quorate.quorum.protocol import headers
from quorate.quorum.protocol.apis import APIS
from quorate.quorum.protocol.codec import encode
from tests.ports.obeyed import is_obeyed
from tests.ports.requests import BUILDERS, World

MAX_RANDOM_BYTES = 300
NESTED = 20_000
NUMBERS = (b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00", b"\x00\x00\x00\x00")

Mutation = Callable[[bytearray, random.Random], bytes]


def valid(world: World) -> list[bytes]:
    """Return one valid request of every API and version, with its header."""
    requests = []
    for api in APIS.values():
        for version in range(api.min_version, api.max_version + 1):
            head = headers.request_header(
                api.key, version, 7, "fuzz", api.request_header_version(version)
            )
            requests.append(head + encode(BUILDERS[api.key](world, version), version))
    return requests


def flip(data: bytearray, chance: random.Random) -> bytes:
    for _ in range(chance.choice((1, 1, 2, 8))):
        data[chance.randrange(len(data))] = chance.choice(
            (0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256))
        )
    return bytes(data)


def cut(data: bytearray, chance: random.Random) -> bytes:
    return bytes(data[: chance.randrange(len(data))])


def prolong(data: bytearray, chance: random.Random) -> bytes:
    return bytes(data) + chance.randbytes(chance.randrange(1, 200))


def number(data: bytearray, chance: random.Random) -> bytes:
    """Write a huge or negative length or count at a random place."""
    at = chance.randrange(8, max(9, len(data) - 4))
    data[at : at + 4] = chance.choice(NUMBERS)
    return bytes(data)


def varint(data: bytearray, chance: random.Random) -> bytes:
    """Write a compact length that has five bytes or more, or is too long."""
    at = chance.randrange(8, max(9, len(data)))
    data[at : at + 1] = b"\xff" * chance.choice((4, 5, 9, 12)) + b"\x01"
    return bytes(data)


def remove(data: bytearray, chance: random.Random) -> bytes:
    at = chance.randrange(len(data))
    del data[at : at + chance.choice((1, 2, 4, 16))]
    return bytes(data)


def version(data: bytearray, chance: random.Random) -> bytes:
    data[2:4] = struct.pack(">h", chance.choice((-1, 0, 1, 5, 13, 99, 32767)))
    return bytes(data)


def api(data: bytearray, chance: random.Random) -> bytes:
    data[0:2] = struct.pack(">h", chance.choice((-1, 92, 9999, *range(93))))
    return bytes(data)


def nested(data: bytearray, chance: random.Random) -> bytes:
    """Continue the request with many tagged fields of one byte, or with deeply nested arrays."""
    filler = chance.choice((b"\x02", b"\x00\x00\x00\x01", b"\x02\x01\x00"))
    return bytes(data[:16]) + filler * (NESTED // len(filler))


def noise(data: bytearray, chance: random.Random) -> bytes:
    return chance.randbytes(chance.randrange(MAX_RANDOM_BYTES))


MUTATIONS: tuple[Mutation, ...] = (
    *(flip, flip, flip, cut, prolong, number, number, varint, remove, version, api, nested, noise),
)


def frames(world: World, seed: int) -> Iterator[bytes]:
    """Yield frames without an end, apart from those that a cluster must obey (`obeyed.py`)."""
    return (each for each in drawn(world, seed) if not is_obeyed(each))


def obeyed(world: World, seed: int) -> Iterator[bytes]:
    """Yield the other frames without an end. Each needs a cluster of its own."""
    return filter(is_obeyed, drawn(world, seed))


def drawn(world: World, seed: int) -> Iterator[bytes]:
    """Yield frames without an end."""
    chance = random.Random(seed)
    requests = valid(world)
    while True:
        data = bytearray(chance.choice(requests))
        for _ in range(chance.choice((1, 1, 1, 2))):
            if data:
                data = bytearray(chance.choice(MUTATIONS)(data, chance))
        yield bytes(data)
