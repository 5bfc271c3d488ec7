"""Random values of declared messages, drawn from their layout. A seed always gives the same
value."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

from quorate.quorum.protocol.apis import APIS, Api
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.layout import Field, layout
from quorate.quorum.protocol.wire import Message

BITS = {"int8": 7, "int16": 15, "uint16": 16, "int32": 31, "uint32": 32, "int64": 63}
UNSIGNED = ("uint16", "uint32")
MAX_MS = {"int32": 10**6, "int64": 2 * 10**12}  # kio's datetimes end in the year 9999
ALPHABET = "abc-ä€🦊 0"


def every_message() -> list[tuple[Api, type[Message], int]]:
    return [
        (api, message, version)
        for api in APIS.values()
        for message in (api.request, api.response)
        for version in range(api.min_version, api.max_version + 1)
    ]


def value_of(cls: type, version: int, flexible: bool, chance: random.Random) -> Any:
    """Return a random value. Fields outside of the version keep their default, as do half of the
    tagged ones."""
    plan = layout(cls, version, flexible)
    values = dict(plan.defaults)
    for field in (*plan.plain, *plan.tagged):
        if field.tag is None or chance.random() < 0.5:
            values[field.name] = _field(field, version, flexible, chance)
    return cls(**values)


def _field(field: Field, version: int, flexible: bool, chance: random.Random) -> Any:
    if field.nullable and chance.random() < 0.3:
        return None
    if field.array:
        count = chance.choice((0, 1, 3))
        return tuple(_one(field, version, flexible, chance) for _ in range(count))
    return _one(field, version, flexible, chance)


def _one(field: Field, version: int, flexible: bool, chance: random.Random) -> Any:
    if field.struct is not None:
        return value_of(field.struct, version, flexible, chance)
    if field.name.endswith("error_code"):
        return int(chance.choice(list(ErrorCode)))
    if field.kind in MAX_MS and (field.name.endswith("_ms") or "timestamp" in field.name):
        return chance.randrange(0, MAX_MS[field.kind])
    if field.kind in BITS:
        bits = chance.randrange(BITS[field.kind] + 1)
        magnitude = chance.getrandbits(bits) if bits else 0
        negative = field.kind not in UNSIGNED and chance.random() < 0.3
        return -magnitude - 1 if negative else magnitude
    return OTHERS[field.kind](chance)


OTHERS: dict[str, Any] = {
    "bool": lambda chance: chance.random() < 0.5,
    "uuid": lambda chance: chance.randbytes(16),
    "string": lambda chance: "".join(chance.choices(ALPHABET, k=chance.choice((0, 3, 60)))),
    "bytes": lambda chance: memoryview(chance.randbytes(chance.choice((0, 5, 200)))),
    "records": lambda chance: memoryview(chance.randbytes(chance.choice((0, 5, 200)))),
    "float64": lambda chance: chance.random(),
}


def plain(value: Any) -> Any:
    """Return nested lists of primitives in declaration order, to compare values across codecs."""
    if dataclasses.is_dataclass(value):
        return [plain(getattr(value, field.name)) for field in dataclasses.fields(value)]
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    return bytes(value) if isinstance(value, memoryview) else value
