"""Records as JSON, in the names and with the omissions of Kafka's own converters.

So `quorate dump-log` shows what `kafka-dump-log --cluster-metadata-decoder` shows, and every row
that Spark reads holds its whole record. Fields outside of the version are left out, tagged fields
when they are the default; a cause, which only we write, is shown as `cause`.
"""

from __future__ import annotations

import dataclasses
from base64 import b64encode
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, get_type_hints

from quorate.quorum.ids import Uuid, uuid_to_text
from quorate.quorum.rpc.kafka.wire import Wired
from quorate.quorum.seams import Buffer

Show = Callable[[Any], Any]
NEVER_OMITTED = object()


class FieldForm(NamedTuple):
    """How one field is shown."""

    name: str
    attribute: str
    kind: str
    array: bool
    show: Show
    omitted: object
    """The value that is left out, or NEVER_OMITTED."""


def json_form(message: object, version: int) -> dict[str, Any]:
    """Of any message declared with `wire()`; what comes out is made for `json.dumps`."""
    cls: Any = type(message)
    shown = {}
    for form in field_forms(cls, version):
        value = getattr(message, form.attribute)
        if value != form.omitted:
            shown[form.name] = form.show(value)
    return shown


@cache
def field_forms(cls: Any, version: int) -> list[FieldForm]:
    """In Kafka's order."""
    annotations = get_type_hints(cls)
    forms = []
    for field in dataclasses.fields(cls):
        wired: Wired = field.metadata["wire"]
        if includes(wired.versions, version):
            tagged = includes(wired.tagged, version)
            forms.append(
                FieldForm(
                    name=camel_case(field.name),
                    attribute=field.name,
                    kind=wired.kind,
                    array="tuple[" in str(annotations[field.name]),
                    show=_show(wired, version),
                    omitted=field.default if tagged else NEVER_OMITTED,
                )
            )
    return forms


def _show(wired: Wired, version: int) -> Show:
    if wired.kind == "uuid":
        return _uuids
    if wired.kind == "bytes":
        return _base64
    if wired.kind == "":
        return lambda value: _structs(value, version)
    return _plain


def _uuids(value: Uuid | tuple[Uuid, ...] | None) -> Any:
    if isinstance(value, tuple):
        return [uuid_to_text(each) for each in value]
    return None if value is None else uuid_to_text(value)


def _base64(value: Buffer) -> str:
    return b64encode(value).decode("ascii")


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
