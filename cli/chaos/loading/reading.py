"""The reading of a TOML file by tables of rules. Errors name the file, the line and the rule."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, Self

from quorate.cli.chaos.loading.toml_lines import Path as KeyPath
from quorate.cli.chaos.loading.toml_lines import line_of, lines_of
from quorate.cli.chaos.scenario.keys import Rule, Table

SYNTAX_LINE = re.compile(r"\(at line (\d+), column \d+\)")


class ScenarioError(ValueError):
    """An error in a file of a scenario or of nodes: the place, the rule, and the allowed values."""


def document_of(content: str, origin: str) -> dict[str, Any]:
    """Return the TOML document in a text. `origin` is the file's name for errors.

    Raise ScenarioError if the text is no TOML."""
    try:
        return tomllib.loads(content)
    except (ValueError, RecursionError) as error:  # also of long numbers and deep lists
        at = SYNTAX_LINE.search(str(error))
        line = int(at[1]) if at else content.count("\n") + 1
        raise ScenarioError(f"{origin}:{line}: not TOML: {error}") from None


@dataclass(frozen=True, slots=True)
class Reading:
    """The checks of one document. `lines` has the line of each key."""

    origin: str
    lines: dict[KeyPath, int]

    @classmethod
    def of(cls, content: str, origin: str) -> Self:
        """Return the reading of a text."""
        return cls(origin, lines_of(content))

    def checked(
        self, path: KeyPath, values: Mapping[str, Any], table: Table, what: str = ""
    ) -> dict[str, Any]:
        """Return the value of each key of the table, with its default if the document lacks it.

        Raise ScenarioError for an unknown key, a missing key, and a wrong value."""
        for key in values:
            if key not in table:
                known = ", ".join(table) or "none"
                self.refuse(
                    (*path, key), f"{what}{key!r} is an unknown key; the known keys are: {known}"
                )
        return {key: self._value(path, key, values, rule, what) for key, rule in table.items()}

    def _value(
        self, path: KeyPath, key: str, values: Mapping[str, Any], rule: Rule, what: str
    ) -> Any:
        if key not in values:
            if rule.required:
                self.refuse(path, f"{what}{key} is missing: {rule.doc}")
            return rule.default
        wrong = rule.wrong(values[key])
        if wrong is not None:
            self.refuse((*path, key), f"{what}{key}: value {values[key]!r} must be {wrong}")
        return values[key]

    def refuse(self, path: KeyPath, message: str) -> NoReturn:
        """Raise ScenarioError with the line of a key."""
        raise ScenarioError(f"{self.origin}:{line_of(self.lines, path)}: {message}")
