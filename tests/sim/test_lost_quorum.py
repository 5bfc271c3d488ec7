"""Quorums that are lost for good and rebuilt; see `lost_quorum_scenarios.py`."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from quorate.quorum.raft.raft import Raft
from tests.sim.checks.admin_history import DEFAULTS
from tests.sim.checks.committed_log import Print, Violation
from tests.sim.faults.rebuild import check
from tests.sim.run import LIVENESS_S, Simulation, play, simulation
from tests.sim.scripts import lost_quorum_scenarios as scenarios
from tests.sim.scripts.scenarios import Scenario
from tests.sim.world.cluster import Shape, SimCluster


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


def test_answers_of_the_quorum_before_a_rebuild_count_for_nothing() -> None:
    """The old controllers of seed 1690 elected a leader and carried out changes, which were lost
    when the controllers were formatted."""
    with simulation("an old quorum decides") as stage:
        play(stage, ask_every_controller(stage))


async def ask_every_controller(stage: Simulation) -> None:
    cluster, history = stage.cluster, stage.history.admin
    cluster.start_all()
    await stage.until(lambda: bool(cluster.active_controllers()), "a leader", LIVENESS_S)
    (active,) = cluster.active_controllers()
    admin = scenarios.at_controllers(stage)
    admin._addresses = {active.id: admin._addresses[active.id]}
    await admin.spawn(admin._configure_brokers())
    with mock.patch(f"{SimCluster.__module__}.generation_of", lambda each: int(each is not active)):
        await admin.spawn(admin._configure_brokers())
    assert [each.answered for each in history.operations[DEFAULTS]] == [True, False]


@dataclass
class Told:
    """Two logs with one topic. They agree up to 2, and what the tool says of the second is true."""

    missing: range = range(2, 4)
    surplus: range = range(2, 3)
    never_committed: bool = True
    changes: Any = field(default_factory=dict)
    committed: dict[int, Print] = field(default_factory=lambda: {0: Print(2, 1, 7)})
    end: int = 4
    chosen: dict[int, Print] = field(default_factory=lambda: {0: Print(2, 1, 7), 2: Print(4, 2, 8)})
    other: dict[int, Print] = field(default_factory=lambda: {0: Print(2, 1, 7), 2: Print(3, 1, 9)})

    def check(self) -> None:
        image = SimpleNamespace(topics={"t": SimpleNamespace(id=1, name="t")})
        chosen = SimpleNamespace(directory="/c1", image=image, end=SimpleNamespace(offset=self.end))
        other = SimpleNamespace(directory="/c2", image=image)
        comparison = SimpleNamespace(
            source=other,
            missing=self.missing,
            surplus=self.surplus,
            never_committed=self.never_committed,
            changes=self.changes,
        )
        planned: Any = SimpleNamespace(chosen=chosen, others=(comparison,))
        metadata = SimpleNamespace(batches=self.committed)
        stage: Any = SimpleNamespace(invariants=SimpleNamespace(metadata=metadata))
        check(stage, planned, {"/c1": self.chosen, "/c2": self.other})


@pytest.mark.parametrize(
    ("told", "match"),
    [
        (Told(end=1), "/c1 was chosen and lacks what is committed at 0, /c1 has it"),
        (Told(missing=range(4, 4)), "/c2: told .*; agrees up to 2"),
        (Told(committed={2: Print(3, 1, 9)}, end=9), "/c1 was chosen and lacks"),
        (
            Told(chosen={4: Print(5, 2, 8)}, committed={2: Print(3, 1, 9)}, end=5),
            r"/c2: \[2\] were committed, it is told otherwise",
        ),
        (Told(changes={"topics created": ["u"]}), "/c2: topics created: .*, it is set"),
    ],
)
def test_what_the_tool_says_is_wrong(told: Told, match: str) -> None:
    Told().check()
    with pytest.raises(Violation, match=match):
        told.check()
