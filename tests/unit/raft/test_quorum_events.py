"""The log lines about elections and voters."""

from __future__ import annotations

import pytest

from quorate.quorum.ids import NO_NODE, Uuid
from quorate.quorum.raft.control_records import KRaftVersionFeature, Voter, VoterEndpoint
from quorate.quorum.raft.effects import Role, RoleChanged, VotersChanged
from quorate.quorum.raft.quorum_events import role_event, voters_events


def changed(role: Role, epoch: int = 6, leader: int = NO_NODE) -> RoleChanged:
    return RoleChanged(role, epoch, leader)


FOLLOWER = changed(Role.FOLLOWER, 5, 2)


@pytest.mark.parametrize(
    ("before", "after", "kind", "text"),
    [
        (None, changed(Role.UNATTACHED), "leader-unknown", "epoch 6 has begun and no leader of it"),
        (
            FOLLOWER,
            changed(Role.PROSPECTIVE, 5),
            "pre-vote-started",
            "asks whether it could win an election, because leader 2 of epoch 5 does not answer or",
        ),
        (changed(Role.PROSPECTIVE, 5), changed(Role.CANDIDATE), "election-started", "asks for vot"),
        (
            changed(Role.CANDIDATE),
            changed(Role.LEADER, 6, 1),
            "election-won",
            "won the election of",
        ),
        (
            changed(Role.CANDIDATE),
            changed(Role.FOLLOWER, 6, 3),
            "election-lost",
            "lost the election: node 3 leads epoch 6",
        ),
        (
            changed(Role.PROSPECTIVE, 5),
            changed(Role.FOLLOWER, 5, 2),
            "election-lost",
            "ended its campaign: node 2 leads epoch 5, as far as this node knows",
        ),
        (
            changed(Role.LEADER, 5, 1),
            changed(Role.FOLLOWER, 6, 3),
            "election-lost",
            "lost the leadership: node 3 leads epoch 6",
        ),
        (
            changed(Role.LEADER, 5, 1),
            changed(Role.UNATTACHED),
            "leader-unknown",
            "lost the leadership: epoch 6 has begun",
        ),
        (
            changed(Role.LEADER, 5, 1),
            changed(Role.RESIGNED, 5, 1),
            "leader-resigned",
            "resigned as the leader of epoch 5: it stops, ",
        ),
        (
            FOLLOWER,
            changed(Role.FOLLOWER, 6, 3),
            "leader-followed",
            "follows the leader: node 3 le",
        ),
    ],
)
def test_each_role_has_its_line(
    before: RoleChanged | None, after: RoleChanged, kind: str, text: str
) -> None:
    event = role_event(before, after, 70)
    assert event.kind == kind
    assert event.text.startswith(text)


def voter(number: int, port: int = 9093) -> Voter:
    return Voter(
        voter_id=number,
        voter_directory_id=Uuid(bytes(15) + bytes([number])),
        endpoints=(VoterEndpoint(name="C", host=f"c{number}", port=port),),
        k_raft_version_feature=KRaftVersionFeature(
            min_supported_version=0, max_supported_version=1
        ),
    )


def test_added_removed_and_moved_voters() -> None:
    change = VotersChanged(1, (voter(2, 9999), voter(3)), (2, 3))
    found = voters_events((voter(1), voter(2)), change)
    assert [tuple(each) for each in found] == [
        ("voter-added", "added voter 3 at c3:9093; the voters are now 2, 3"),
        ("voter-removed", "removed voter 1 at c1:9093; the voters are now 2, 3"),
        ("voter-moved", "voter 2 has the address c2:9999, before c2:9093"),
    ]
    same = VotersChanged(1, (voter(1),), (1,))
    assert voters_events((voter(1),), same) == []
    for before in (None, ()):
        assert [each.text for each in voters_events(before, same)] == [
            "the voters are 1 at c1:9093"
        ]


@pytest.mark.parametrize(
    ("voter_ids", "text"),
    [
        ((1, 2, 3), "the voters are 1, 2, 3, as configured in controller.quorum.voters"),
        ((), "the voters are not known yet: this node will read them in the metadata log"),
    ],
)
def test_voters_that_the_log_does_not_name(voter_ids: tuple[int, ...], text: str) -> None:
    assert [each.text for each in voters_events(None, VotersChanged(0, (), voter_ids))] == [text]
