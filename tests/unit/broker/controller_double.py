"""A controller channel that answers when the test calls it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class ControllerDouble:
    sent: list[Any] = field(default_factory=list)
    waiting: list[Callable[[Any], None]] = field(default_factory=list)

    def send(self, message: Any, timeout_ms: int, done: Callable[[Any], None]) -> None:
        self.sent.append(message)
        self.waiting.append(done)

    def answer(self, response: Any) -> None:
        self.waiting.pop(0)(response)
