"""The table of docs/track-record.md: every row is complete and names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in (ROOT / "docs" / "track-record.md").read_text().splitlines()
    if line.startswith("| ") and not line.startswith("| bug ")
]


def test_every_row_names_a_bug_a_means_and_tests() -> None:
    assert len(ROWS) >= 72
    for row in ROWS:
        assert len(row) == 3 and all(row), row


def test_the_tests_exist() -> None:
    for row in ROWS:
        for path in re.findall(r"`(tests/[^`]+)`", row[2]):
            assert (ROOT / path).exists(), f"{path}: {row[0]}"
