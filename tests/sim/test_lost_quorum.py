"""Quorums that are lost for good and come back; see `lost_quorum_scenarios.py`."""

from __future__ import annotations

import pytest

from tests.sim.run import play, simulation
from tests.sim.scripts import lost_quorum_scenarios as scenarios
from tests.sim.scripts.scenarios import Scenario


@pytest.mark.parametrize(
    "scenario",
    [
        scenarios.a_broker_that_runs_has_more,
        scenarios.brokers_bring_the_quorum_back,
        scenarios.nobody_left_knows,
        scenarios.the_power_goes_while_the_tool_runs,
    ],
)
def test_lost_quorum(scenario: Scenario) -> None:
    with simulation(scenario.__name__) as stage:
        play(stage, scenario(stage))
