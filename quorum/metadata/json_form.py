"""Records as JSON, with the names and omissions of Kafka's own JSON converters.

`quorate dump-log` thus prints the same as `kafka-dump-log --cluster-metadata-decoder`, and each row
that Spark reads holds its whole record. Fields that the version does not have are omitted, and so
are tagged fields with their default value. The cause, which only Quorate writes, is shown as
`cause` if the record has one.
"""

from __future__ import annotations

import dataclasses
from base64 import b64encode
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, get_type_hints

from quorate.quorum.ids import Uuid, uuid_to_text
from quorate.quorum.protocol.wire import FieldSchema
from quorate.quorum.seams import Buffer

Show = Callable[[Any], Any]
NEVER_OMITTED = object()
"""Equal to no value of a field, so that the field is always shown."""


class FieldForm(NamedTuple):
    """The JSON form of one field.

    `name` is Kafka's name and `attribute` ours. `kind` is the type on the wire, or "" for a struct.
    `array` is true for an array of this type. `show` converts the value.
    """

    name: str
    attribute: str
    kind: str
    array: bool
    show: Show
    omitted: object
    """The value that is omitted, or NEVER_OMITTED."""


def json_form(message: object, version: int) -> dict[str, Any]:
    """Return a message that is declared with `wire()` as a dict for `json.dumps`."""
    cls: Any = type(message)
    shown = {}
    for form in field_forms(cls, version):
        value = getattr(message, form.attribute)
        if value != form.omitted:
            shown[form.name] = form.show(value)
    return shown


@cache
def field_forms(cls: Any, version: int) -> list[FieldForm]:
    """Return the forms of the fields that the version has, in Kafka's order."""
    annotations = get_type_hints(cls)
    forms = []
    for field in dataclasses.fields(cls):
        wired: FieldSchema = field.metadata["wire"]
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


def _show(wired: FieldSchema, version: int) -> Show:
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
    """Return True if a range in Kafka's notation ("0+", "1-3", "2", "none") contains `version`."""
    if versions == "none":
        return False
    if versions.endswith("+"):
        return version >= int(versions[:-1])
    first, _, last = versions.partition("-")
    return int(first) <= version <= int(last or first)


def camel_case(name: str) -> str:
    """Return Kafka's name of a field: `topic_id` becomes `topicId`."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)
