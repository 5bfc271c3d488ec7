"""Records as JSON, in the names and with the omissions of Kafka's own converters.

So `quorate dump-log` shows what `kafka-dump-log --cluster-metadata-decoder` shows, and every row
that Spark reads holds its whole record. Fields outside of the version are left out, tagged fields
when they are the default; a cause, which only we write, is shown as `cause`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any

from quorate.quorum.ids import Uuid, uuid_to_text
from quorate.quorum.rpc.kafka.wire import Wired

Show = Callable[[Any], Any]
_NEVER_OMITTED = object()


def json_form(message: object, version: int) -> dict[str, Any]:
    """Of any message declared with `wire()`; what comes out is made for `json.dumps`."""
    cls: Any = type(message)
    shown = {}
    for name, get, show, omitted in _plan(cls, version):
        value = get(message)
        if value != omitted:
            shown[name] = show(value)
    return shown


@cache
def _plan(cls: Any, version: int) -> list[tuple[str, Show, Show, object]]:
    """(name, getter, converter, the value that is left out) per field, in Kafka's order."""
    plan: list[tuple[str, Show, Show, object]] = []
    for field in dataclasses.fields(cls):
        wired: Wired = field.metadata["wire"]
        if includes(wired.versions, version):
            omitted = field.default if includes(wired.tagged, version) else _NEVER_OMITTED
            show = _show(wired, version)
            plan.append((camel_case(field.name), attrgetter(field.name), show, omitted))
    return plan


def _show(wired: Wired, version: int) -> Show:
    if wired.kind == "uuid":
        return _uuids
    if wired.kind == "":
        return lambda value: _structs(value, version)
    return _plain


def _uuids(value: Uuid | tuple[Uuid, ...] | None) -> Any:
    if isinstance(value, tuple):
        return [uuid_to_text(each) for each in value]
    return None if value is None else uuid_to_text(value)


def _structs(value: Any, version: int) -> Any:
    if isinstance(value, tuple):
        return [json_form(each, version) for each in value]
    return None if value is None else json_form(value, version)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def includes(versions: str, version: int) -> bool:
    """Whether a range in Kafka's notation ("0+", "1-3", "2", "none") holds `version`."""
    if versions == "none":
        return False
    if versions.endswith("+"):
        return version >= int(versions[:-1])
    first, _, last = versions.partition("-")
    return int(first) <= version <= int(last or first)


def camel_case(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)
