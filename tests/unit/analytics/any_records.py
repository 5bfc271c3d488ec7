"""Hypothesis strategies: any metadata record in any version, as the value of a log record."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.framing import FRAME_VERSION, READABLE_TYPES, READABLE_VERSIONS
from quorate.quorum.protocol.codec import writer
from quorate.quorum.protocol.layout import Field, layout
from quorate.quorum.protocol.varint import write_uvarint

INTEGER_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
FIRST_UNKNOWN_TAG = 100
TEXT = st.text(max_size=8) | st.sampled_from(["", "x" * 126, "é" * 64, "long" * 5000])
UUIDS = st.binary(min_size=16, max_size=16).map(Uuid) | st.just(Uuid(b"\7" * 16))
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    **{
        kind: st.integers(-1, 3) | st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)
        for kind, bits in INTEGER_BITS.items()
    },
    "uint16": st.integers(0, 65_535),
    "bool": st.booleans(),
    "float64": st.floats(allow_nan=False).filter(math.isfinite),
    "uuid": UUIDS,
    "string": TEXT,
    "bytes": st.binary(max_size=200),
}


def field_values(field: Field, version: int) -> st.SearchStrategy[Any]:
    element = SCALARS.get(field.kind)
    if element is None:
        assert field.struct is not None
        element = messages(field.struct, version)
    if field.array:
        element = st.lists(element, max_size=3).map(tuple)
        if field.kind == "int32":
            element |= st.just(tuple(range(130)))
    return st.none() | element if field.nullable else element


def messages(cls: type, version: int) -> st.SearchStrategy[Any]:
    plan = layout(cls, version, True)
    plain = {field.name: field_values(field, version) for field in plan.plain}
    tagged = {
        field.name: st.just(field.default) | field_values(field, version) for field in plan.tagged
    }
    return st.builds(cls, **plain, **tagged)


KINDS = [
    (cls, version)
    for cls in READABLE_TYPES.values()
    for version in range(READABLE_VERSIONS[cls] + 1)
]


@st.composite
def record_values(draw: st.DrawFn) -> bytes:
    cls, version = draw(st.sampled_from(KINDS))
    out = bytearray((FRAME_VERSION, cls.API_KEY, version))
    message = draw(messages(cls, version))
    writer(cls, version, True)(out, message)
    unknown = draw(st.lists(st.binary(max_size=150), max_size=2))
    tagged = layout(cls, version, True).tagged
    if all(getattr(message, field.name) == field.default for field in tagged):
        assert out[-1] == 0, "no tagged fields"
        out[-1] = len(unknown)
        for tag, content in enumerate(unknown, FIRST_UNKNOWN_TAG):
            write_uvarint(out, tag)
            write_uvarint(out, len(content))
            out += content
    return bytes(out)
