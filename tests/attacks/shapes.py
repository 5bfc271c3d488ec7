"""Requests made from their schemas alone, with one place in each that a caller replaces.

A place is the path of field names to it. Every array has one element unless a caller replaces it,
so that every nested field has a place.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

from quorate.quorum.protocol.layout import FIXED, Field, layout
from quorate.quorum.protocol.wire import Message
from tests.attacks.raw import array, sized, uvarint
from tests.attacks.target import TOPIC

Path = tuple[str, ...]
Replace = Callable[[Path, Field], bytes | None]
"""Returns the bytes of a field, or None to leave it as it is."""

USUAL_STRINGS = {
    "group_id": "attackers",
    "group": "attackers",
    "groups": "attackers",
    "groups_names": "attackers",
    "name": TOPIC,
    "topic": TOPIC,
    "topic_name": TOPIC,
    "topic_names": "no-such-topic",
    "resource_name": TOPIC,
    "key": "attackers",
    "coordinator_keys": "attackers",
    "protocol_type": "consumer",
    "client_software_name": "attacker",
    "client_software_version": "1",
    "mechanism": "PLAIN",
}
USUAL_INTEGERS = {"resource_type": 2, "timeout_ms": 1000, "session_timeout_ms": 10_000, "acks": -1}


class Place(NamedTuple):
    path: Path
    field: Field


def nothing(path: Path, field: Field) -> bytes | None:
    return None


def usual_element(
    field: Field, version: int, flexible: bool, replace: Replace, path: Path
) -> bytes:
    if field.struct is not None:
        return struct_bytes(field.struct, version, flexible, replace, path)
    if field.kind == "uuid":
        return bytes(16)
    if field.kind in FIXED:
        number = USUAL_INTEGERS.get(field.name, 0)
        return struct.pack(f">{FIXED[field.kind]}", number)
    text = USUAL_STRINGS.get(field.name, "a") if field.kind == "string" else ""
    return sized(text.encode(), wide=field.kind != "string", flexible=flexible)


def field_bytes(field: Field, version: int, flexible: bool, replace: Replace, path: Path) -> bytes:
    if (replaced := replace(path, field)) is not None:
        return replaced
    made = usual_element(field, version, flexible, replace, path)
    if field.array:
        return array([made], flexible=flexible)
    return b"\x01" + made if field.struct is not None and field.nullable else made


def struct_bytes(
    cls: type,
    version: int,
    flexible: bool,
    replace: Replace = nothing,
    path: Path = (),
) -> bytes:
    plan = layout(cls, version, flexible)
    out = [field_bytes(each, version, flexible, replace, (*path, each.name)) for each in plan.plain]
    if flexible:
        tagged = []
        for each in plan.tagged:
            body = field_bytes(each, version, flexible, replace, (*path, each.name))
            tagged.append(uvarint(each.tag or 0) + uvarint(len(body)) + body)
        out += [uvarint(len(tagged)), *tagged]
    return b"".join(out)


def places(cls: type, version: int, flexible: bool, path: Path = ()) -> Iterator[Place]:
    """Yield every field of a message at any depth, in the order of the wire."""
    plan = layout(cls, version, flexible)
    for each in (*plan.plain, *plan.tagged):
        here = (*path, each.name)
        yield Place(here, each)
        if each.struct is not None:
            yield from places(each.struct, version, flexible, here)


def with_place(cls: type[Message], version: int, flexible: bool, path: Path, data: bytes) -> bytes:
    """Return the usual body of `cls` with `data` as the bytes of the field at `path`."""
    return struct_bytes(cls, version, flexible, lambda here, field: data if here == path else None)
