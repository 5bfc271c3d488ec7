"""The nodes of roles: those with a fault are left out, except for the victim."""

from __future__ import annotations

from quorate.cli.chaos.scenario import ROLES
from quorate.cli.chaos.targets import TARGETS, Candidates
from quorate.cli.chaos.timeline import ClusterStates
from tests.unit.cli.chaos.test_timeline import logged, moved, story


def states() -> ClusterStates:
    """Return states in which broker 4 leads partition 0 and broker 5 leads partition 1."""
    found = story()
    list(found.apply([logged(300, moved(1, 5))]))
    return found


def chosen(role: str, *faulty: int, victim: int | None = None) -> int | None:
    """Return the node of a role."""
    return TARGETS[role](Candidates(states(), [4, 5, 6], [1, 2, 3], faulty, victim))


def test_every_role_of_scenario_files_can_be_found() -> None:
    assert TARGETS.keys() == set(ROLES)


def test_leader_and_follower() -> None:
    assert chosen("leader") == 4
    assert chosen("leader", 4) == 5
    assert chosen("follower") == 6
    assert chosen("follower", 6) == 4
    assert chosen("leader", 4, 5, 6) is None


def test_controllers() -> None:
    assert chosen("controller") == 1
    assert chosen("controller", 1) is None
    assert chosen("standby") == 2
    assert chosen("standby", 2) == 3
    assert chosen("standby", 2, 3) is None


def test_the_victim_is_the_node_that_was_named_last() -> None:
    assert chosen("victim") is None
    assert chosen("victim", 5, victim=5) == 5
