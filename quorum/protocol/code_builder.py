"""A growing piece of Python source with the objects it refers to, and its compilation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class CodeBuilder:
    """Lines are added at the current depth; `constant` binds an object to a name in its globals."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 0
        self._globals: dict[str, Any] = {}
        self._names = 0

    def line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1

    def name(self, stem: str) -> str:
        self._names += 1
        return f"{stem}{self._names}"

    def constant(self, stem: str, value: Any) -> str:
        name = self.name(stem)
        self._globals[name] = value
        return name

    def function(self, name: str) -> Callable[..., Any]:
        """Compiled; the text shows up in tracebacks as `<name>`."""
        # Only text made from declared classes is run here, never anything from the wire.
        exec(compile("\n".join(self._lines), f"<{name}>", "exec"), self._globals)
        function: Callable[..., Any] = self._globals[name]
        return function
