"""The response that says that a request failed as a whole, where the API has a place for it."""

from __future__ import annotations

from typing import Any

from quorate.quorum.rpc.kafka.errors import ErrorCode
from quorate.quorum.rpc.kafka.layout import layout
from quorate.quorum.rpc.kafka.wire import Message


def failed_response(
    response: type[Message], error: ErrorCode, message: str | None
) -> Message | None:
    """None when the API has no top-level error code. All other fields are empty."""
    values: dict[str, Any] = dict(layout(response, 0, True).defaults)
    if "error_code" not in values:
        return None
    values["error_code"] = int(error)
    if "error_message" in values:
        values["error_message"] = message if message is not None else error.message
    return response(**values)
