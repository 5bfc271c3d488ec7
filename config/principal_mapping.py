"""ssl.principal.mapping.rules: from the subject of a client's certificate to the user name.

The value is a list of `RULE:pattern/replacement/` and `DEFAULT`, separated by commas. The first
rule whose pattern matches the whole distinguished name gives the user name. `L` or `U` after the
last slash changes the name to lower or upper case. DEFAULT gives the distinguished name itself. The
patterns are Python's regular expressions. Those of Java differ only in rare constructs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from quorate.config.key import ConfigError, Value

KEY = "ssl.principal.mapping.rules"
ALLOWED = "DEFAULT or RULE:pattern/replacement/[LU], separated by commas"
RULE = re.compile(
    r"\s*(?:(?P<default>DEFAULT)|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<replacement>(?:\\.|[^\\/])*)/"
    r"(?P<case>[LU]?))\s*(?:,|$)"
)
GROUP = re.compile(r"\$(\d)|\\(.)", re.DOTALL)
"""A reference to a group, or an escaped character, in a replacement."""


@dataclass(frozen=True, slots=True)
class MappingRule:
    """One rule. A `pattern` of None is DEFAULT. `case` is L, U or empty."""

    pattern: re.Pattern[str] | None = None
    replacement: str = ""
    case: str = ""

    def apply(self, name: str) -> str | None:
        """Return the user name of the distinguished `name`, or None if the rule does not match."""
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        found = self.pattern.sub(self._replaced, name)
        return {"L": found.lower, "U": found.upper}.get(self.case, lambda: found)()

    def _replaced(self, match: re.Match[str]) -> str:
        """Return the replacement. `$` with the number of a group that does not exist is text."""

        def part(reference: re.Match[str]) -> str:
            if reference[1] is None:
                return reference[2]
            number = int(reference[1])
            return (match[number] or "") if number <= match.re.groups else reference[0]

        return GROUP.sub(part, self.replacement)


def parse_rules(text: str) -> tuple[MappingRule, ...]:
    """Return the rules in `text`. Raise ConfigError if it is malformed, or if it has no rule."""
    found: list[MappingRule] = []
    position = 0
    while position < len(text):
        match = RULE.match(text, position)
        if match is None:
            raise ConfigError(f"{KEY}: value {text!r} must be {ALLOWED}")
        position = match.end()
        if match["default"]:
            found.append(MappingRule())
            continue
        try:
            pattern = re.compile(match["pattern"])
        except (re.error, OverflowError, RecursionError) as error:
            raise ConfigError(f"{KEY}: {match['pattern']!r} is no pattern: {error}") from None
        found.append(MappingRule(pattern, match["replacement"], match["case"]))
    if not found:
        raise ConfigError(f"{KEY}: value {text!r} must be {ALLOWED}")
    return tuple(found)


def check_rules(value: Value) -> str | None:
    """Check for the value of ssl.principal.mapping.rules (`Key.check`)."""
    try:
        parse_rules(str(value))
    except ConfigError:
        return ALLOWED
    return None


def user_name(rules: Sequence[MappingRule], name: str) -> str | None:
    """Return the user name of the distinguished `name`. Return None if no rule matches."""
    return next((found for each in rules if (found := each.apply(name)) is not None), None)
