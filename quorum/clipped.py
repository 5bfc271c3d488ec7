"""Short forms of texts that a client chose, for error texts and log lines.

A text that quotes a client's value must not grow with that value.
"""

from __future__ import annotations

MAX_QUOTED_CHARS = 100


def clipped(text: str, max_chars: int = MAX_QUOTED_CHARS) -> str:
    """Return `text`. If it is longer than `max_chars`, return its first `max_chars` characters and
    its length: `abc... (900 characters)`."""
    if len(text) <= max_chars:
        return text
    return f"{text[:max_chars]}... ({len(text)} characters)"


def quoted(text: str, max_chars: int = MAX_QUOTED_CHARS) -> str:
    """Return the repr of `text`, which escapes control characters. A longer text is cut as by
    `clipped`."""
    if len(text) <= max_chars:
        return repr(text)
    return f"{text[:max_chars]!r}... ({len(text)} characters)"


def clip_bytes(utf8: bytes, max_bytes: int) -> bytes:
    """Return the first characters of `utf8` that fit in `max_bytes`, without a part of a character.
    Bytes that are not UTF-8 are removed."""
    return utf8[:max_bytes].decode(errors="ignore").encode()


def shown(text: str, max_chars: int = MAX_QUOTED_CHARS) -> str:
    """Return `text` for a log line: as it is if it is short and printable, else `quoted`."""
    return text if len(text) <= max_chars and text.isprintable() else quoted(text, max_chars)
