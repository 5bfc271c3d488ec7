"""docs/chaos.md names every check and every command."""

from __future__ import annotations

import re
from pathlib import Path

from quorate.cli.chaos.checks.table import FAMILIES
from quorate.cli.chaos.command import chaos

PAGE = (Path(__file__).parents[4] / "docs" / "chaos.md").read_text()


def test_every_check_has_a_row() -> None:
    section = PAGE.partition("## What a verdict means")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    named = [name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])]
    assert named == [name for family in FAMILIES for name in family.names]


def test_every_command_has_a_row() -> None:
    assert all(f"quorate chaos {name}" in PAGE for name in chaos.commands)
