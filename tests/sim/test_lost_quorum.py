"""Quorums that are lost for good and rebuilt; see `lost_quorum_scenarios.py`."""

from __future__ import annotations

from unittest import mock

import pytest

from quorate.quorum.raft.raft import Raft
from tests.sim.checks.committed_log import Violation
from tests.sim.run import play, simulation
from tests.sim.scripts import lost_quorum_scenarios as scenarios
from tests.sim.scripts.scenarios import Scenario
from tests.sim.world.cluster import Shape


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


def test_a_vote_after_the_meeting_with_the_rebuilt_quorum_is_found() -> None:
    """The paths are long, so the old controllers may elect a leader. They must not vote after they
    have met the rebuilt quorum."""
    shape = Shape(distances=True)
    with (
        mock.patch.object(Raft, "superseded", lambda self: None),
        simulation("a vote after the meeting", shape) as stage,
        pytest.raises(Violation, match="met the rebuilt quorum, and then voted"),
    ):
        play(stage, scenarios.old_controllers_come_back(stage))


def test_old_controllers_with_long_paths_vote_only_before_the_meeting() -> None:
    with simulation("a vote after the meeting", Shape(distances=True)) as stage:
        play(stage, scenarios.old_controllers_come_back(stage))
