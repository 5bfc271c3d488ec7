"""Kafka requests derived from the schemas: every field of every version at its edges.

Each case has a name, so that a test can derive the names from the schemas and compare.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from quorate.quorum.protocol.apis import APIS, Api
from quorate.quorum.protocol.field_bounds import PARTITIONS, PRODUCED_PARTITIONS
from quorate.quorum.protocol.layout import FIXED, Field
from tests.attacks.raw import array, head_of, sized, uvarint
from tests.attacks.shapes import nothing, places, struct_bytes, usual_element, with_place

MAX_COUNT = 2**31 - 1
STRING_BYTES = (0, 1, 32_767, 32_768, 65_536)
PAYLOAD_BYTES = (0, 1, 61, 65_536)
CLAIMS = (MAX_COUNT, PARTITIONS.limit + 1, -2)
FEW = 3
DRAWN_ELEMENTS = 20_001
"""The most elements of an array in drawn requests, which would take too long to make otherwise."""
HAND_WRITTEN = (PRODUCED_PARTITIONS.limit,)
"""Bounds of the parsers that are written by hand, in place of the declared ones."""
FLOATS = (float("nan"), float("inf"), -float("inf"), -0.0, 1e308)
BOOLS = (0, 1, 2, 255)
UUIDS = {"zero": bytes(16), "all ones": b"\xff" * 16, "one": bytes(15) + b"\x01"}
STRUCT_MARKS = {"null": b"\xff", "mark 0": b"\x00", "mark 2": b"\x02"}


class Case(NamedTuple):
    """The bytes of a field at one edge of its type, and the name of the edge."""

    name: str
    data: bytes


class Request(NamedTuple):
    """A request of which one field is at an edge."""

    api: str
    version: int
    path: tuple[str, ...]
    case: str
    frame: bytes


def integer_edges(size: int) -> tuple[int, ...]:
    """Return the edges of an integer of `size` bytes."""
    top = 1 << 8 * size - 1
    return (0, 1, top - 1, -top, -1, -2)


def edges(field: Field) -> Iterator[Case]:
    """Yield the bytes of a fixed-size field at the edges of its range."""
    if field.kind == "uuid":
        for name, data in UUIDS.items():
            yield Case(name, data)
    elif field.kind == "float64":
        for number in FLOATS:
            yield Case(str(number), struct.pack(">d", number))
    elif field.kind == "bool":
        for each in BOOLS:
            yield Case(str(each), bytes((each,)))
    else:
        size = struct.calcsize(f">{FIXED[field.kind]}")
        for each in integer_edges(size):
            yield Case(str(each), each.to_bytes(size, "big", signed=True))


def strings(field: Field, flexible: bool) -> Iterator[Case]:
    wide = field.kind != "string"
    for size in PAYLOAD_BYTES if wide else STRING_BYTES:
        yield Case(f"{size} bytes", sized(b"x" * size, wide=wide, flexible=flexible))
    yield Case("null", sized(None, wide=wide, flexible=flexible))
    yield Case("no UTF-8", sized(b"\xff\xfe\x00", wide=wide, flexible=flexible))
    yield Case("claims all", uvarint(2**31) if flexible else b"\x7f\xff" * (2 if wide else 1))
    if not flexible:
        yield Case("length -2", b"\xff\xfe" if not wide else b"\xff\xff\xff\xfe")


def counts(field: Field) -> Sequence[int]:
    """Return the numbers of elements of an array: few, and one more than each of its bounds."""
    assert field.count is not None, f"the array {field.name} has no bound"
    return sorted({0, FEW, field.count.limit + 1, *(each + 1 for each in HAND_WRITTEN)})


def arrays(field: Field, version: int, flexible: bool, most: int) -> Iterator[Case]:
    one = usual_element(field, version, flexible, nothing, ())
    for count in (each for each in counts(field) if each <= most):
        yield Case(f"{count} elements", array([one] * count, flexible=flexible))
    yield Case("null", array(None, flexible=flexible))
    for claim in CLAIMS:
        head = uvarint(max(0, claim) + 1) if flexible else struct.pack(">i", claim)
        yield Case(f"claims {claim}", head + one)
    if field.struct is None:
        for name, data in values(field, flexible):
            yield Case(f"one of {name}", array([data], flexible=flexible))


def values(field: Field, flexible: bool) -> Iterator[Case]:
    """Yield the bytes of one element at its edges; nothing for a struct."""
    if field.struct is not None:
        return
    if field.kind in FIXED:
        yield from edges(field)
    else:
        yield from strings(field, flexible)


def cases(field: Field, version: int, flexible: bool, most: int = MAX_COUNT) -> Iterator[Case]:
    """Yield a field at each of its edges, with arrays of up to `most` elements."""
    if field.array:
        yield from arrays(field, version, flexible, most)
    elif field.struct is not None:
        if field.nullable:
            for name, data in STRUCT_MARKS.items():
                yield Case(name, data)
    else:
        yield from values(field, flexible)


def every_request(keys: Sequence[int]) -> Iterator[Request]:
    """Yield the usual request of every API and version, and one for each edge of each field."""
    for api, version in versions(keys):
        flexible = version >= api.flexible_since
        head = head_of(api.key, version)
        yield Request(
            api.name, version, (), "usual", head + struct_bytes(api.request, version, flexible)
        )
        for path, field in places(api.request, version, flexible):
            for name, data in cases(field, version, flexible):
                body = with_place(api.request, version, flexible, path, data)
                yield Request(api.name, version, path, name, head + body)


def body(api: Api, version: int, chance: random.Random) -> bytes:
    """Return a body of which one to three fields are at an edge."""
    flexible = version >= api.flexible_since
    found = list(places(api.request, version, flexible))
    chosen = {}
    for _ in range(chance.randrange(1, 4)):
        if found:
            path, field = chance.choice(found)
            options = list(cases(field, version, flexible, DRAWN_ELEMENTS))
            if options:
                chosen[path] = chance.choice(options).data
    return struct_bytes(api.request, version, flexible, lambda path, field: chosen.get(path))


def versions(keys: Sequence[int]) -> list[tuple[Api, int]]:
    return [
        (APIS[key], version)
        for key in keys
        for version in range(APIS[key].min_version, APIS[key].max_version + 1)
    ]


def a_request(keys: Sequence[int], chance: random.Random) -> bytes:
    api, version = chance.choice(versions(keys))
    client_id = chance.choice((None, "", "fuzz", "fuzz", "x" * 32_767))
    return head_of(api.key, version, client_id) + body(api, version, chance)
