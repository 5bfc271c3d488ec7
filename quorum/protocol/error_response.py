"""The response that reports the failure of a whole request, for APIs with a top-level error code.

`schemas/error_responses.py` serves the APIs of the active controller, with and without one.
"""

from __future__ import annotations

from typing import Any

from quorate.quorum.protocol.apis import Api
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.layout import layout
from quorate.quorum.protocol.wire import Message


def error_response(api: Api, version: int, error: ErrorCode, message: str | None) -> Message | None:
    """Return a response with `error`, and with `message` if the version has a field for it.

    All other fields have their defaults. Return None if the response of that version has no
    top-level error code."""
    response = api.response
    plan = layout(response, version, version >= api.flexible_since)
    if all(field.name != "error_code" for field in plan.plain):
        return None
    values: dict[str, Any] = dict(plan.defaults)
    # The default may be null where this version does not allow it (protocol_name of JoinGroup).
    for field in plan.plain:
        if values[field.name] is None and not field.nullable and field.kind == "string":
            values[field.name] = ""
    values["error_code"] = int(error)
    if "error_message" in values:
        values["error_message"] = message if message is not None else error.message
    return response(**values)
