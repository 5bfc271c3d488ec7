"""The two formats of a node's log lines: plain text, and JSON with one schema of fields.

The times of both are in UTC, with milliseconds, so that their lines can be compared. A JSON line is
an object with exactly the fields of FIELDS, in that order. `event` is the fixed name of what
happened, such as "broker-fenced", or null. `error` is a traceback, or null."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from datetime import UTC, datetime

TEXT_FORMAT = "%(asctime)sZ %(levelname)s [{node}] %(name)s: %(message)s"
FIELDS = ("time", "level", "node_id", "roles", "logger", "event", "message", "error")


def formatter_of(name: str, node_id: int, roles: Sequence[str]) -> logging.Formatter:
    """Return the formatter of the key log.format: "text" or "json"."""
    if name == "json":
        return JsonFormatter(node_id, roles)
    formatter = logging.Formatter(TEXT_FORMAT.format(node=f"{roles[0]} {node_id}"))
    formatter.converter = time.gmtime
    return formatter


class JsonFormatter(logging.Formatter):
    """Formats each record as one line of JSON. The time is in UTC, with milliseconds."""

    def __init__(self, node_id: int, roles: Sequence[str]) -> None:
        super().__init__()
        self._node_id = node_id
        self._roles = list(roles)

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without a line end."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        values = (
            at.replace("+00:00", "Z"),
            record.levelname,
            self._node_id,
            self._roles,
            record.name,
            getattr(record, "event", None),
            record.getMessage(),
            self.formatException(record.exc_info) if record.exc_info else None,
        )
        return json.dumps(dict(zip(FIELDS, values, strict=True)))


def error_in(line: str) -> str:
    """Return the message of a line of the level ERROR, in either format, or ""."""
    if line.startswith("{"):
        try:
            found = json.loads(line)
        except ValueError:
            return ""
        return str(found.get("message", "")) if found.get("level") == "ERROR" else ""
    _, error, said = line.partition(" ERROR ")
    return said if error else ""
