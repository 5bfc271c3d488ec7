"""Scripted failures of the whole cluster, with production's node classes; see `scenarios.py`."""

from __future__ import annotations

import pytest

from tests.sim.ablations.stories import BROKEN
from tests.sim.ablations.table import ABLATIONS
from tests.sim.checks.invariants import Violation
from tests.sim.run import play, simulation
from tests.sim.scripts import (
    log_directory_scenarios,
    lost_directory_scenarios,
    quorum_scenarios,
    scenarios,
)


@pytest.mark.parametrize(
    "scenario",
    [
        scenarios.broker_killed,
        scenarios.controller_killed,
        scenarios.both_killed,
        scenarios.zombie_leader,
        scenarios.paused_leader,
        scenarios.all_killed,
        scenarios.broker_restarted_at_once,
        scenarios.followers_are_read,
        scenarios.hints_lie,
        scenarios.follower_disk_slow,
    ],
)
def test_scenario(scenario: scenarios.Scenario) -> None:
    with simulation(scenario.__name__, scenarios.SHAPES.get(scenario)) as stage:
        play(stage, scenario(stage))


def test_a_follower_that_fetches_before_it_flushes_is_found() -> None:
    with (
        ABLATIONS["flush-before-fetch"].in_force(),
        simulation(scenarios.follower_disk_slow.__name__) as stage,
        pytest.raises(BROKEN, match="called committed but durable only on"),
    ):
        play(stage, scenarios.follower_disk_slow(stage))


@pytest.mark.parametrize(
    "scenario", [quorum_scenarios.voters_replaced, quorum_scenarios.led_by_whom_its_log_has_not]
)
def test_quorum_scenario(scenario: scenarios.Scenario) -> None:
    with simulation(scenario.__name__, quorum_scenarios.DYNAMIC) as stage:
        play(stage, scenario(stage))


@pytest.mark.parametrize(
    "scenario",
    [
        log_directory_scenarios.directory_failed,
        log_directory_scenarios.last_members_directory_failed,
    ],
)
def test_a_log_directory_fails(scenario: scenarios.Scenario) -> None:
    with simulation(scenario.__name__, log_directory_scenarios.TWO) as stage:
        play(stage, scenario(stage))


@pytest.mark.parametrize(
    "scenario",
    [
        lost_directory_scenarios.committed_topic_stays,
        lost_directory_scenarios.one_is_restored,
        lost_directory_scenarios.lost_again_while_it_catches_up,
    ],
)
def test_a_metadata_directory_is_lost(scenario: scenarios.Scenario) -> None:
    with simulation(scenario.__name__) as stage:
        play(stage, scenario(stage))


def test_a_voter_joins_by_itself_and_that_explains_who_votes() -> None:
    shape = quorum_scenarios.JOINING
    with simulation("voter_joins_by_itself", shape) as stage:
        play(stage, quorum_scenarios.voter_joins_by_itself(stage))
        stage.voting.changes.clear()
        with pytest.raises(Violation, match="no order explains the voters"):
            stage.voting.check(stage.electorate.voting(), stage.loop.time())
