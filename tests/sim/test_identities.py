"""The workloads of users, on a cluster whose controllers die and on a cluster without a
safeguard."""

from __future__ import annotations

import pytest

from tests.sim.ablations.identity_scripts import shape_for, with_dying_controllers
from tests.sim.ablations.table import ABLATIONS
from tests.sim.adversary.impostors import IMPOSTORS
from tests.sim.checks.invariants import Violation
from tests.sim.run import play, simulation
from tests.sim.scripts.scenarios import Scenario
from tests.sim.workloads.credentials import Credentials
from tests.sim.workloads.permissions import FIRST_VALUE, Permissions
from tests.sim.world.shape import Shape


@pytest.mark.parametrize("streams", [False, True], ids=["frames", "streams"])
def test_a_deny_holds_whoever_leads(streams: bool) -> None:
    with simulation("permissions", shape_for(Permissions, streams=streams)) as stage:
        work = play(stage, with_dying_controllers(stage, Permissions))
        for kind in ("acknowledged ALLOW", "acknowledged DENY", "refusals"):
            assert stage.coverage[f"workload permissions: {kind}"] > 5, stage.coverage
        assert work.forbidden and work.denied
        work.denied.append("User:nobody")
        with pytest.raises(Violation, match="an acknowledged ACL is gone"):
            play(stage, work.check())
        del work.denied[-1]
        work.forbidden = {str(each) for each in range(FIRST_VALUE, work._value)}
        with pytest.raises(Violation, match="a denied user has set"):
            play(stage, work.check())


def test_a_removed_credential_ends_its_sessions() -> None:
    with simulation("credentials", shape_for(Credentials)) as stage:
        work = play(stage, with_dying_controllers(stage, Credentials))
        for kind in ("credentials", "logins", "removals", "closed by removals"):
            assert stage.coverage[f"workload credentials: {kind}"] > 2, stage.coverage
        work.users, work.removed = work.removed, work.users
        with pytest.raises(Violation, match="admitted"):
            play(stage, work.check())


@pytest.mark.parametrize("safeguard", ["controller-permissions", "envelope-principal"])
def test_the_workload_sees_a_denied_change(safeguard: str) -> None:
    with (
        ABLATIONS[safeguard].in_force(),
        simulation("without", shape_for(Permissions)) as stage,
        pytest.raises(Violation, match="was denied, and changed a config"),
    ):
        play(stage, with_dying_controllers(stage, Permissions))


@pytest.mark.parametrize("story", IMPOSTORS, ids=lambda story: story.__name__)
def test_an_impostor_does_no_harm(story: Scenario) -> None:
    with simulation(story.__name__, Shape(identities=True, streams=True)) as stage:
        play(stage, story(stage))
