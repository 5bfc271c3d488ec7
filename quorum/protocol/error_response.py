"""The response that says that a request failed as a whole, where the API has a place for it."""

from __future__ import annotations

from typing import Any

from quorate.quorum.protocol.apis import Api
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.layout import layout
from quorate.quorum.protocol.wire import Message


def error_response(api: Api, version: int, error: ErrorCode, message: str | None) -> Message | None:
    """None when that version has no top-level error code. All other fields are empty."""
    response = api.response
    plan = layout(response, version, version >= api.flexible_since)
    if all(field.name != "error_code" for field in plan.plain):
        return None
    values: dict[str, Any] = dict(plan.defaults)
    # A default of null may be one that this version cannot say (protocol_name of JoinGroup).
    for field in plan.plain:
        if values[field.name] is None and not field.nullable and field.kind == "string":
            values[field.name] = ""
    values["error_code"] = int(error)
    if "error_message" in values:
        values["error_message"] = message if message is not None else error.message
    return response(**values)
