"""Builds the source of a Python function line by line, with the objects that it refers to, and
compiles it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class CodeBuilder:
    """The source of one function. `constant` binds an object to a name in its globals."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 0
        self._globals: dict[str, Any] = {}
        self._names = 0

    def line(self, text: str) -> None:
        """Add a line at the current depth."""
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Add the line `head`, and indent the lines that are added inside of the `with` block."""
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1

    def name(self, stem: str) -> str:
        """Return a new name that begins with `stem`."""
        self._names += 1
        return f"{stem}{self._names}"

    def constant(self, stem: str, value: Any) -> str:
        """Bind `value` to a new global name, and return that name."""
        name = self.name(stem)
        self._globals[name] = value
        return name

    def function(self, name: str) -> Callable[..., Any]:
        """Compile the source and return its function `name`. Tracebacks show its file as
        `<name>`."""
        # The text is made from declared classes only. It never contains data from the wire.
        exec(compile("\n".join(self._lines), f"<{name}>", "exec"), self._globals)
        function: Callable[..., Any] = self._globals[name]
        return function
