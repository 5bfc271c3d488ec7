"""The knobs of a workload have their effect on real processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.test_scenario_runs import bad, run_scenario

pytestmark = [pytest.mark.clients, pytest.mark.long]

LAGGING = Path(__file__).with_name("lagging-follower.toml")


@pytest.mark.parametrize("acks", ["1", "all"])
def test_acks_1_loses_records_with_their_leader(acks: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(LAGGING.read_text().replace('acks = "1"', f'acks = "{acks}"'))
    found = run_scenario(str(file))
    assert bad(found) == set()
    assert (found["lost"] > 0) == (acks == "1")
    skipped = {each["name"] for each in found["not_judged"]}
    assert skipped == (
        {"duplicated", "out of order", "at another offset"} if acks == "1" else set()
    )
    (said,) = [each["text"] for each in found["checks"] if each["name"] == "lost"]
    assert ("acks=1 promises a record only as long as its leader leads" in said) == (acks == "1")
