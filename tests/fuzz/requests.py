"""Kafka requests derived from the schemas: every field of every version at its edges."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator, Sequence

from quorate.quorum.protocol.apis import APIS, Api
from quorate.quorum.protocol.layout import FIXED, Field
from tests.attacks.raw import array, head_of, sized, uvarint
from tests.attacks.shapes import nothing, places, struct_bytes, usual_element, with_place

STRING_BYTES = (0, 1, 32_767, 32_768, 65_536)
PAYLOAD_BYTES = (0, 1, 61, 65_536)
CLAIMS = (2**31 - 1, 100_001, -2)
USUAL_BOUND = 2
"""Stands for an array's bound where the declaration does not name one."""
MAX_BOUND = 100_000


def edges(field: Field) -> Sequence[bytes]:
    """Return the bytes of a fixed-size field at the edges of its range."""
    if field.kind == "uuid":
        return (bytes(16), b"\xff" * 16, bytes(15) + b"\x01")
    if field.kind == "float64":
        numbers = (float("nan"), float("inf"), -float("inf"), -0.0, 1e308)
        return [struct.pack(">d", each) for each in numbers]
    if field.kind == "bool":
        return (b"\x00", b"\x01", b"\x02", b"\xff")
    size = struct.calcsize(f">{FIXED[field.kind]}")
    top = 1 << 8 * size
    return [
        number.to_bytes(size, "big") for number in (0, 1, top // 2 - 1, top // 2, top - 1, top - 2)
    ]


def strings(field: Field, flexible: bool) -> Iterator[bytes]:
    wide = field.kind != "string"
    for size in PAYLOAD_BYTES if wide else STRING_BYTES:
        yield sized(b"x" * size, wide=wide, flexible=flexible)
    yield sized(None, wide=wide, flexible=flexible)
    yield sized(b"\xff\xfe\x00", wide=wide, flexible=flexible)
    yield uvarint(2**31) if flexible else b"\x7f\xff" * (2 if wide else 1)
    if not flexible:
        yield b"\xff\xfe" if not wide else b"\xff\xff\xff\xfe"


def arrays(field: Field, version: int, flexible: bool) -> Iterator[bytes]:
    one = usual_element(field, version, flexible, nothing, ())
    bound = field.count.limit if field.count is not None else USUAL_BOUND
    for count in sorted({0, USUAL_BOUND + 1, min(bound, MAX_BOUND) + 1}):
        yield array([one] * count, flexible=flexible)
    yield array(None, flexible=flexible)
    for claim in CLAIMS:
        yield uvarint(max(0, claim) + 1) + one if flexible else struct.pack(">i", claim) + one
    if field.struct is None:
        for each in values(field, flexible):
            yield array([each], flexible=flexible)


def values(field: Field, flexible: bool) -> Iterator[bytes]:
    """Yield the bytes of one element at its edges; nothing for a struct."""
    if field.struct is not None:
        return
    if field.kind in FIXED:
        yield from edges(field)
    else:
        yield from strings(field, flexible)


def cases(field: Field, version: int, flexible: bool) -> Iterator[bytes]:
    if field.array:
        yield from arrays(field, version, flexible)
    elif field.struct is not None:
        yield from (b"\xff", b"\x00", b"\x02") if field.nullable else ()
    else:
        yield from values(field, flexible)


def bodies(api: Api, version: int) -> Iterator[bytes]:
    """Yield the usual body, and one for each edge of each field."""
    flexible = version >= api.flexible_since
    yield struct_bytes(api.request, version, flexible)
    for path, field in places(api.request, version, flexible):
        for data in cases(field, version, flexible):
            yield with_place(api.request, version, flexible, path, data)


def body(api: Api, version: int, chance: random.Random) -> bytes:
    """Return a body of which one to three fields are at an edge."""
    flexible = version >= api.flexible_since
    found = list(places(api.request, version, flexible))
    chosen = {}
    for _ in range(chance.randrange(1, 4)):
        if found:
            path, field = chance.choice(found)
            options = list(cases(field, version, flexible))
            if options:
                chosen[path] = chance.choice(options)
    return struct_bytes(api.request, version, flexible, lambda path, field: chosen.get(path))


def versions(keys: Sequence[int]) -> list[tuple[Api, int]]:
    return [
        (APIS[key], version)
        for key in keys
        for version in range(APIS[key].min_version, APIS[key].max_version + 1)
    ]


def every_request(keys: Sequence[int]) -> Iterator[bytes]:
    for api, version in versions(keys):
        for each in bodies(api, version):
            yield head_of(api.key, version) + each


def a_request(keys: Sequence[int], chance: random.Random) -> bytes:
    api, version = chance.choice(versions(keys))
    client_id = chance.choice((None, "", "fuzz", "fuzz", "x" * 32_767))
    return head_of(api.key, version, client_id) + body(api, version, chance)
