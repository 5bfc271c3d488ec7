"""The nodes of roles: those with a fault are left out, except for the victim."""

from __future__ import annotations

import random

from quorate.cli.chaos.actions.targets import TARGETS, Candidates, of
from quorate.cli.chaos.scenario.keys import ROLES
from quorate.cli.chaos.timeline.cluster_states import ClusterStates
from tests.unit.cli.chaos.test_timeline import logged, moved, story


def states() -> ClusterStates:
    """Return states in which broker 4 leads partition 0 and broker 5 leads partition 1."""
    found = story()
    list(found.apply([logged(300, moved(1, 5))]))
    return found


def chosen(role: str, *faulty: int, victim: int | None = None) -> int | None:
    """Return the node of a role."""
    draw = random.Random(7).choice
    return TARGETS[role](Candidates(states(), [4, 5, 6], [1, 2, 3], faulty, victim, draw))


def test_every_role_of_scenario_files_can_be_found() -> None:
    assert TARGETS.keys() == set(ROLES)


def test_leader_and_follower() -> None:
    assert chosen("leader") == 4
    assert chosen("leader", 4) == 5
    assert chosen("follower") == 6
    assert chosen("follower", 6) == 4
    assert chosen("leader", 4, 5) is None, "broker 6 leads nothing"


def test_controllers() -> None:
    assert chosen("controller") == 1
    assert chosen("controller", 1) is None
    assert chosen("standby") == 2
    assert chosen("standby", 2) == 3
    assert chosen("standby", 2, 3) is None


def test_the_leader_and_the_follower_of_a_partition() -> None:
    def found(role: str, partition: int, *faulty: int) -> int | None:
        draw = random.Random(7).choice
        return of(Candidates(states(), [4, 5, 6], [], faulty, None, draw), role, partition)

    assert (found("leader", 0), found("leader", 1)) == (4, 5)
    assert (found("follower", 0), found("follower", 1)) == (5, 6)
    assert found("follower", 0, 5) == 6
    assert found("leader", 0, 4) is None
    assert found("leader", 7) is None


def test_the_victim_is_the_node_that_was_named_last() -> None:
    assert chosen("victim") is None
    assert chosen("victim", 5, victim=5) == 5


def drawn(role: str, seed: int, *faulty: int) -> list[int | None]:
    """Return the nodes of twenty draws."""
    draw = random.Random(seed).choice
    among = Candidates(states(), [6, 5, 4], [1, 2, 3], faulty, None, draw)
    return [TARGETS[role](among) for _ in range(20)]


def test_the_same_seed_draws_the_same_nodes() -> None:
    for role, nodes in (("any-broker", {4, 5, 6}), ("any-controller", {1, 2, 3})):
        assert drawn(role, 3) == drawn(role, 3) != drawn(role, 4)
        assert set(drawn(role, 3)) == nodes
        assert set(drawn(role, 3, 1, 4)) == nodes - {1, 4}
        assert set(drawn(role, 3, *nodes)) == {None}
