"""Requests of five megabytes whose arrays have as many elements as fit (item 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from quorate.quorum.protocol.apis import APIS, Api, ApiKey
from quorate.quorum.protocol.layout import Field
from tests.attacks.raw import array, framed, head_of, sized
from tests.attacks.registry import attack
from tests.attacks.shapes import nothing, places, usual_element, with_place
from tests.attacks.target import Target

SIZE_BYTES, QUICK_SIZE_BYTES = 5_000_000, 1_000_000
MAX_ELEMENTS = 6_000_000
ALLOWED_ELEMENTS = 100_000
"""A request of so many elements is within the bound of a request, so that a handler sees it."""
TIMEOUT_S = 20.0
REPORTED = (
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.FIND_COORDINATOR,
    ApiKey.METADATA,
    ApiKey.DELETE_TOPICS,
    ApiKey.LIST_PARTITION_REASSIGNMENTS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
)
"""These once blocked a broker or the active controller for 6 to 80 seconds."""
UNTIMELY = (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.API_VERSIONS)

Fill = Callable[[Field, int, bool, int], list[bytes]]
"""Returns the elements of an array that have so many bytes together."""


def empty(field: Field, version: int, flexible: bool, size_bytes: int) -> list[bytes]:
    def none(path: tuple[str, ...], inner: Field) -> bytes | None:
        if inner.array:
            return array([], flexible=flexible)
        if inner.kind in ("string", "bytes", "records"):
            return sized(b"", wide=inner.kind != "string", flexible=flexible)
        return None

    whole = none((), field) if field.struct is None and field.kind == "string" else None
    if field.struct is None and field.kind == "string":
        whole = sized(b"", wide=False, flexible=flexible)
    one = whole or usual_element(field, version, flexible, none, ())
    return [one] * min(MAX_ELEMENTS, size_bytes // len(one))


def same(field: Field, version: int, flexible: bool, size_bytes: int) -> list[bytes]:
    one = usual_element(field, version, flexible, nothing, ())
    return [one] * (size_bytes // len(one))


def distinct(field: Field, version: int, flexible: bool, size_bytes: int) -> list[bytes]:
    def numbered(number: int) -> bytes:
        name = sized(b"n%d" % number, wide=False, flexible=flexible)
        if field.struct is None:
            return name

        def replace(path: tuple[str, ...], inner: Field) -> bytes | None:
            return name if len(path) == 1 and inner.kind == "string" and not inner.array else None

        return usual_element(field, version, flexible, replace, ())

    if field.struct is None and field.kind != "string":
        return same(field, version, flexible, size_bytes)
    count = size_bytes // max(8, len(numbered(0)) + 6)
    return [numbered(number) for number in range(count)]


FILLS: dict[str, Fill] = {"empty": empty, "same": same, "distinct": distinct}


def crowds(api: Api, version: int, size_bytes: int, fills: tuple[str, ...]) -> Iterator[bytes]:
    """Yield one frame for each array of the request and each way to fill it."""
    flexible = version >= api.flexible_since
    for path, field in places(api.request, version, flexible):
        if not field.array or field.tag is not None:
            continue
        for name in fills:
            elements = FILLS[name](field, version, flexible, size_bytes)
            limit = field.count.limit if field.count is not None else ALLOWED_ELEMENTS
            for count in sorted({len(elements), min(len(elements), limit, ALLOWED_ELEMENTS)}):
                body = array(elements[:count], flexible=flexible)
                frame = with_place(api.request, version, flexible, path, body)
                yield framed(head_of(api.key, version) + frame)


async def throng(target: Target, api: Api, version: int, fills: tuple[str, ...]) -> None:
    size_bytes = QUICK_SIZE_BYTES if target.quick else SIZE_BYTES
    for frame in crowds(api, version, size_bytes, fills):
        await target.fire_frames(target.brokers[0], frame, timeout_s=TIMEOUT_S)
        if not target.quick:
            await target.fire_frames(target.controllers[0], frame, timeout_s=TIMEOUT_S)


def define(key: ApiKey) -> None:
    api = APIS[key]

    async def run(target: Target) -> None:
        fills = ("empty",) if target.quick else tuple(FILLS)
        await throng(target, api, api.max_version, fills)
        if key == ApiKey.DELETE_TOPICS:  # names only, which the last version does not have
            await throng(target, api, 5, fills)

    run.__name__ = f"crowded_{key.name.lower()}"
    run.__doc__ = f"Fill each array of {api.name} with as many elements as a few megabytes hold."
    attack(4)(run)


for _key in REPORTED:
    define(_key)


@attack(4)
async def crowded_others(target: Target) -> None:
    """Fill the arrays of every other API with as many elements as a few megabytes hold."""
    for key, api in APIS.items():
        if key in REPORTED or key in UNTIMELY:
            continue
        await throng(target, api, api.max_version, ("empty",) if target.quick else ("distinct",))
