"""The markers of generated parts in the pages of docs/protocol, and the text between them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from tests.docs.drawings import DRAWINGS

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "protocol").glob("*.md"))
SCRIPTS = ROOT / "tests" / "scripts"
END = "<!-- end -->"
MARKED = re.compile(rf"^<!-- (\w+): ([\w-]+) -->\n(.*?)^{END}$", re.MULTILINE | re.DOTALL)


class UnknownPart(Exception):
    """A marker asks for a drawing or a script that does not exist."""


def drawing(name: str) -> str:
    """Return the named state diagram as a fenced Mermaid block."""
    if name not in DRAWINGS:
        raise UnknownPart(f"there is no drawing {name}: one of {', '.join(sorted(DRAWINGS))}")
    return DRAWINGS[name]()


def script(name: str) -> str:
    """Return the named script, with its trace, as a fenced block."""
    path = SCRIPTS / f"{name}.txt"
    if not path.exists():
        raise UnknownPart(f"there is no script tests/scripts/{path.name}")
    return f"```text\n{path.read_text().strip()}\n```\n"


KINDS: dict[str, Callable[[str], str]] = {"drawing": drawing, "script": script}
"""The function that makes the text of a part, by the first word of its marker."""


def filled(page: str) -> str:
    """Return the page with fresh text between all its markers. Raise UnknownPart if a marker asks
    for a part that does not exist."""

    def part(found: re.Match[str]) -> str:
        kind, name = found[1], found[2]
        if kind not in KINDS:
            raise UnknownPart(f"a marker says {kind}: one of {', '.join(sorted(KINDS))}")
        return f"<!-- {kind}: {name} -->\n{KINDS[kind](name)}{END}"

    return MARKED.sub(part, page)


def parts(page: str) -> list[tuple[str, str]]:
    """Return the kind and the name of each generated part of the page."""
    return [(found[1], found[2]) for found in MARKED.finditer(page)]
