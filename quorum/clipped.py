"""Short forms of texts that a client chose, for error texts and log lines.

A text that quotes a client's value must not grow with that value.
"""

from __future__ import annotations

MAX_QUOTED_CHARS = 100


def clipped(text: str, max_chars: int = MAX_QUOTED_CHARS) -> str:
    """Return `text`, or its first `max_chars` characters and its length if it is longer."""
    if len(text) <= max_chars:
        return text
    return f"{text[:max_chars]}... ({len(text)} characters)"


def quoted(text: str, max_chars: int = MAX_QUOTED_CHARS) -> str:
    """Return the repr of `text`, cut like `clipped`: control characters are escaped."""
    if len(text) <= max_chars:
        return repr(text)
    return f"{text[:max_chars]!r}... ({len(text)} characters)"


def clip_bytes(utf8: bytes, max_bytes: int) -> bytes:
    """Return the whole characters of `utf8` that fit in `max_bytes`."""
    return utf8[:max_bytes].decode(errors="ignore").encode()


def shown(text: str, max_chars: int = MAX_QUOTED_CHARS) -> str:
    """Return `text` for a log line: as it is if it is short and printable, else `quoted`."""
    return text if len(text) <= max_chars and text.isprintable() else quoted(text, max_chars)
