"""`json_form` as text, by writers that are compiled for each (class, version).

Tables of the analytics hold one such text per record, so the speed matters. The text equals
`json.dumps(json_form(...))` without spaces.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache, lru_cache
from json.encoder import encode_basestring_ascii
from typing import Any

from quorate.quorum.ids import Uuid, uuid_to_text
from quorate.quorum.metadata.json_form import NEVER_OMITTED, FieldForm, field_forms
from quorate.quorum.protocol.code_builder import CodeBuilder

Text = Callable[[Any], str]
INTEGERS = {"int8", "int16", "uint16", "int32", "uint32", "int64"}


def json_text(message: object, version: int) -> str:
    """Return the record, encoded in `version`, as JSON text."""
    cls: Any = type(message)
    return writer(cls, version)(message)


@cache
def writer(cls: Any, version: int) -> Text:
    """Return the compiled function that converts a message of this class and version to JSON
    text."""
    source = CodeBuilder()
    name = f"json_of_{cls.__name__}_v{version}"
    with source.block(f"def {name}(m):"):
        source.line("s = ''")
        for form in field_forms(cls, version):
            text = source.constant("text", _text_of(form))
            source.line(f"v = m.{form.attribute}")
            add = f"s += ',\"{form.name}\":' + {text}(v)"
            if form.omitted is NEVER_OMITTED:
                source.line(add)
            else:
                omitted = source.constant("omitted", form.omitted)
                source.line(f"if v is not {omitted} and v != {omitted}: {add}")
        source.line("return '{' + s[1:] + '}'")
    return source.function(name)


def _text_of(form: FieldForm) -> Text:
    """Return the function that converts one field. Common types have a fast one, and `json.dumps`
    converts the rest."""
    if form.kind in INTEGERS:
        return _integers if form.array else str
    if form.kind == "string" and not form.array:
        return _string
    if form.kind == "uuid" and not form.array:
        return _uuid
    return lambda value: _dumps(form.show(value))


def _integers(value: tuple[int, ...] | None) -> str:
    return "null" if value is None else "[" + ",".join(map(str, value)) + "]"


def _string(value: str | None) -> str:
    return "null" if value is None else encode_basestring_ascii(value)


@lru_cache(maxsize=4096)
def _uuid(value: Uuid | None) -> str:
    return "null" if value is None else f'"{uuid_to_text(value)}"'


_dumps = json.JSONEncoder(separators=(",", ":")).encode
