"""One setting of a node, with its source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

DEFAULT = "default"
"""The origin of a value that no source sets."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One value. `text` is its text in Kafka's format, or None for null.

    `origin` is "default", "FILE:LINE", "environment NAME" or "override"."""

    value: Any
    text: str | None
    origin: str = DEFAULT

    @property
    def is_default(self) -> bool:
        """Return True if no source sets the value."""
        return self.origin == DEFAULT
