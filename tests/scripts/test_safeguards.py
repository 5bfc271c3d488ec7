"""A script fails without each safeguard that its line "Safeguards:" names.

The safeguards are those of `make break` (tests/sim/README.md).
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.scripts.language import ScriptError
from tests.scripts.play import play
from tests.sim.ablations.table import ABLATIONS

SCRIPTS = sorted(Path(__file__).parent.glob("*.txt"))
LINE = re.compile(r"^# Safeguards: (.+)$", re.MULTILINE)
WITHOUT = {"controlled-shutdown"}
"""The scripts whose rule has no ablation."""


def safeguards(path: Path) -> list[str]:
    """Return the safeguards that a script names."""
    found = LINE.search(path.read_text())
    return found[1].split(", ") if found else []


GUARDED = [(path, name) for path in SCRIPTS for name in safeguards(path)]


def test_every_script_names_a_safeguard() -> None:
    assert {path.stem for path in SCRIPTS if not safeguards(path)} == WITHOUT


@pytest.mark.parametrize(
    ("path", "safeguard"), GUARDED, ids=[f"{path.stem}-{name}" for path, name in GUARDED]
)
def test_a_script_fails_without_its_safeguard(path: Path, safeguard: str) -> None:
    text = path.read_text()
    with ABLATIONS[safeguard].in_force():
        try:
            played = play(text)
        except ScriptError:
            return
    assert played != text
