"""The asserts of the core: a state that breaks Raft's safety stops the node where it appears."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quorate.quorum.raft.control_records import VotersRecord
from quorate.quorum.raft.core import Core
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.leader import become_leader
from quorate.quorum.raft.states import Follower, Leader, Prospective
from quorate.quorum.raft.voter_changes import _change
from quorate.quorum.raft.voter_history import VoterHistory
from tests.unit.raft.harness import RaftCluster, voter


def led() -> Core:
    """Return the core of the leader of three voters, which has committed a record."""
    cluster = RaftCluster()
    cluster.elect(1)
    cluster.append(1, b"a")
    cluster.run(100)
    return cluster.core(1)._core


def commit_beyond_the_log(core: Core) -> None:
    core.raise_high_watermark(core.log.end_offset + 1)


def second_leader_of_an_epoch(core: Core) -> None:
    core.state = Prospective(deadline_ms=0)
    core.set_election(Election(core.epoch, core.me, 2))
    core.become(Follower(leader_id=3, deadline_ms=None), core.epoch, voted=core.me, leader_id=3)


def elected_by_a_minority(core: Core) -> None:
    become_leader(core, {core.me.id})


def elected_without_its_own_vote(core: Core) -> None:
    core.set_election(Election(core.epoch + 1, None))
    become_leader(core, set(core.voters.ids))


def epoch_that_decreases(core: Core) -> None:
    core.set_election(Election(core.epoch - 1, None))
    core.take_effects()


def two_voters_at_once(core: Core) -> None:
    state = core.state
    assert isinstance(state, Leader)
    _change(core, state, 1, [voter(11), voter(12)])


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (commit_beyond_the_log, "is beyond the log"),
        (second_leader_of_an_epoch, "two leaders of epoch"),
        (elected_by_a_minority, "elected by"),
        (elected_without_its_own_vote, "without its own vote"),
        (epoch_that_decreases, "the epoch decreased"),
        (two_voters_at_once, "more than one voter changes"),
    ],
)
def test_a_broken_invariant_is_noticed(broken: Callable[[Core], None], message: str) -> None:
    core = led()
    with pytest.raises(AssertionError, match=message):
        broken(core)


def test_voters_change_at_rising_offsets() -> None:
    history = VoterHistory()
    history.append(5, VotersRecord(version=0, voters=(voter(1),)))
    with pytest.raises(AssertionError, match="voters at 5"):
        history.append(5, VotersRecord(version=0, voters=(voter(2),)))
