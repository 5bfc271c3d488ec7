"""`chaos_run` of the pytest plugin, as docs/howto/test-with-pytest.md uses it, on processes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos.test_scenario_runs import ROOT, RUN_TIMEOUT_S, ablate_nodes

pytestmark = [pytest.mark.clients, pytest.mark.long, pytest.mark.timeout(RUN_TIMEOUT_S)]


def how_to_block() -> str:
    """Return the block of the section about scenarios."""
    page = (ROOT / "docs" / "howto" / "test-with-pytest.md").read_text()
    section = page.partition("## A scenario with a verdict\n")[2]
    (block,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    return str(block)


def run_pytest(directory: Path) -> tuple[int, str]:
    """Run pytest on the block in a directory of its own. Return its exit status and its output."""
    temporary = directory / "tmp"
    temporary.mkdir()
    (directory / "test_mine.py").write_text(how_to_block())
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py"],
        cwd=directory,
        env={**os.environ, "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
        check=False,
    )
    assert list(temporary.glob("quorate-chaos-*")) == [], "the cluster's directory is gone"
    return ended.returncode, ended.stdout + ended.stderr


def test_the_block_of_the_how_to_passes(tmp_path: Path) -> None:
    status, said = run_pytest(tmp_path)
    assert (status, "1 passed" in said) == (0, True), said


def test_a_bad_verdict_fails_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ablate_nodes(monkeypatch, "fencing")
    status, said = run_pytest(tmp_path)
    assert (status, "leader-kill: the verdict is bad: " in said) == (1, True), said
    assert "leaders" in said
