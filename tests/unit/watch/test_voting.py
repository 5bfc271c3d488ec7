"""/readyz of controllers that do not vote (`voting.py`)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from quorate.quorum.ids import NO_NODE, ReplicaKey, uuid_to_text
from quorate.quorum.watch.node_view import NodeView
from quorate.quorum.watch.voting import voting_notes, voting_reasons
from tests.unit.raft.harness import directory, key, voter


class Config(dict[str, bool]):
    is_controller: bool


def node(
    me: ReplicaKey,
    *,
    replaced: ReplicaKey | None = None,
    level: int = 1,
    joins: bool = False,
    leader: int = 1,
    is_controller: bool = True,
) -> NodeView:
    """A node of a quorum of the voters 1, 2 and 3."""
    raft = SimpleNamespace(
        replaced_voter=replaced,
        leader_id=leader,
        voters_at=lambda _: SimpleNamespace(kraft_version=level),
    )
    config = Config({"controller.quorum.auto.join.enable": joins})
    config.is_controller = is_controller
    found = SimpleNamespace(
        me=me,
        raft=raft,
        config=config,
        voters=[voter(each) for each in (1, 2, 3)],
        log=SimpleNamespace(end_offset=9),
    )
    return cast(NodeView, found)


def texts(found: NodeView) -> tuple[list[str], list[str]]:
    return [*voting_reasons(found)], [*voting_notes(found)]


@pytest.mark.parametrize(
    ("level", "joins", "remedy"),
    [
        (0, False, "features upgrade --feature kraft.version=1"),
        (1, False, f"--controller-directory-id {uuid_to_text(directory(3))}` and then"),
        (1, True, "It takes the place of that voter by itself"),
    ],
)
def test_a_controller_with_a_new_disk_is_not_ready(level: int, joins: bool, remedy: str) -> None:
    ((reason,), notes) = texts(node(key(3, 2), replaced=key(3), level=level, joins=joins))
    assert reason.startswith("this controller does not vote: its directory id is ")
    assert uuid_to_text(directory(3, 2)) in reason
    assert remedy in reason
    assert notes == []


def test_a_standby_is_ready_because_a_rolling_change_must_not_wait_for_a_decision() -> None:
    reasons, (note,) = texts(node(key(11)))
    assert reasons == []
    assert note.startswith("this controller does not vote: it is a standby until ")
    assert "add-controller" in note


def test_a_controller_that_joins_by_itself_is_ready_when_it_votes() -> None:
    assert "joins by itself" in texts(node(key(11), joins=True))[0][0]
    assert "only at kraft.version 1" in texts(node(key(11), joins=True, level=0))[0][0]
    assert texts(node(key(3), joins=True)) == ([], [])


def test_voters_and_brokers_and_nodes_without_a_leader_say_nothing_about_votes() -> None:
    for each in (
        node(key(2)),
        node(key(101), is_controller=False),
        node(key(11), joins=True, leader=NO_NODE),
    ):
        assert texts(each) == ([], [])
