"""Runs on combined nodes of Quorate that commands control, as those of any other program."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.listed import BOUNDS, CONFIG, assert_good, run_on
from tests.golden.nodes import QUORATE
from tests.kafka.three_nodes import three_nodes

pytestmark = pytest.mark.clients


@pytest.mark.parametrize(
    "scenario",
    [
        "leader-kill",
        *(
            pytest.param(each, marks=pytest.mark.long)
            for each in ("controller-kill", "paused-broker", "rolling-restart")
        ),
    ],
)
def test_a_scenario_is_good(scenario: str, tmp_path: Path) -> None:
    with three_nodes(tmp_path, QUORATE, CONFIG) as nodes:
        assert_good(run_on(nodes, scenario, nodes.node_file(head=BOUNDS)))
