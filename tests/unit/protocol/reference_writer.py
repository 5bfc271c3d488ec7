"""A second, slow writer of declared messages, straight from Kafka's protocol guide.

It interprets the declaration instead of compiling it. It can also add unknown tagged fields to
every struct, as a later version of Kafka does.
"""

from __future__ import annotations

import struct
from typing import Any

from quorate.quorum.protocol.layout import FIXED, Field, layout

UNKNOWN_TAGS = {7000: b"", 7001: b"\x00" * 130}


def reference_bytes(value: Any, version: int, flexible: bool, *, unknown_tags: bool) -> bytes:
    plan = layout(type(value), version, flexible)
    out = b"".join(
        _field(field, getattr(value, field.name), version, flexible, unknown_tags)
        for field in plan.plain
    )
    if not flexible:
        return out
    tags = {
        field.tag or 0: _field(field, getattr(value, field.name), version, flexible, unknown_tags)
        for field in plan.tagged
        if getattr(value, field.name) != field.default
    }
    if unknown_tags:
        tags |= UNKNOWN_TAGS
    out += uvarint(len(tags))
    for tag in sorted(tags):
        out += uvarint(tag) + uvarint(len(tags[tag])) + tags[tag]
    return out


def uvarint(value: int) -> bytes:
    low, rest = value & 0x7F, value >> 7
    return bytes([low]) if not rest else bytes([low | 0x80]) + uvarint(rest)


def _field(field: Field, value: Any, version: int, flexible: bool, unknown_tags: bool) -> bytes:
    if field.array:
        if value is None:
            return _length(-1, flexible, 4)
        items = (_one(field, each, version, flexible, unknown_tags, False) for each in value)
        return _length(len(value), flexible, 4) + b"".join(items)
    return _one(field, value, version, flexible, unknown_tags, field.nullable)


def _one(
    field: Field, value: Any, version: int, flexible: bool, unknown_tags: bool, nullable: bool
) -> bytes:
    if field.struct is not None:
        if value is None:
            return b"\xff"
        body = reference_bytes(value, version, flexible, unknown_tags=unknown_tags)
        return (b"\x01" if nullable else b"") + body
    if field.kind in FIXED:
        return struct.pack(">" + FIXED[field.kind], value)
    size_bytes = 2 if field.kind == "string" else 4
    if value is None:
        return _length(-1, flexible, size_bytes)
    data = value.encode() if field.kind == "string" else bytes(value)
    return _length(len(data), flexible, size_bytes) + data


def _length(length: int, flexible: bool, size_bytes: int) -> bytes:
    return uvarint(length + 1) if flexible else length.to_bytes(size_bytes, "big", signed=True)
