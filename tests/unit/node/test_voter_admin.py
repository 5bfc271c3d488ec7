"""Admin requests about the voters get one answer, in time, with Kafka's error codes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from quorate.quorum.node.controller.controller_batch import Refusal
from quorate.quorum.node.controller.voter_admin import CHANGE_TIMEOUT_MS, VoterAdmin
from quorate.quorum.node.node_core import NodeCore
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.raft_voters import (
    AddRaftVoterRequest,
    RaftVoterListener,
    RemoveRaftVoterRequest,
)
from quorate.quorum.protocol.schemas.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
)
from quorate.quorum.protocol.wire import Message
from quorate.quorum.raft.effects import Role
from tests.unit.raft.harness import directory
from tests.unit.rpc.kafka.fakes import FakeClock

ADD = AddRaftVoterRequest(
    timeout_ms=500,
    voter_id=11,
    voter_directory_id=directory(11),
    listeners=(RaftVoterListener(name="CONTROLLER", host="c11", port=9093),),
)
REMOVE = RemoveRaftVoterRequest(voter_id=11, voter_directory_id=directory(11))


class Host:
    """A core whose replica keeps the callbacks of voter changes."""

    def __init__(self, role: Role = Role.LEADER) -> None:
        self.clock = FakeClock()
        self.done: list[Callable[[int, str], None]] = []
        self.answers: list[Any] = []
        self.changes: list[str] = []
        raft = SimpleNamespace(
            role=role,
            add_voter="add",
            remove_voter="remove",
            voters_at=lambda _: SimpleNamespace(kraft_version=1),
        )
        core = SimpleNamespace(
            cluster_id="here",
            raft=raft,
            end_offset=0,
            replica=SimpleNamespace(change_voters=self._change_voters),
            seams=SimpleNamespace(clock=self.clock),
        )
        self.admin = VoterAdmin(cast(NodeCore, core))

    def _change_voters(self, done: Callable[[int, str], None], change: str, _: object) -> None:
        self.done.append(done)
        self.changes.append(change)

    def ask(self, request: Message) -> None:
        self.admin.ask(request, self.answers.append)


@pytest.mark.parametrize("request_", [ADD, REMOVE], ids=["add", "remove"])
def test_a_change_is_answered_once_and_nothing_is_left_behind(request_: Message) -> None:
    host = Host()
    host.ask(request_)
    assert host.answers == [] and host.changes == ["add" if request_ is ADD else "remove"]
    host.done[0](ErrorCode.NONE, "")
    assert [(each.error_code, each.error_message) for each in host.answers] == [(0, None)]
    assert host.clock.waiting == 0
    host.clock.advance(CHANGE_TIMEOUT_MS)
    assert len(host.answers) == 1


@pytest.mark.parametrize(
    ("request_", "timeout_ms"), [(ADD, 500), (REMOVE, CHANGE_TIMEOUT_MS)], ids=["add", "remove"]
)
def test_a_change_that_is_not_committed_in_time_may_be_later(
    request_: Message, timeout_ms: int
) -> None:
    host = Host()
    host.ask(request_)
    host.clock.advance(timeout_ms - 1)
    assert host.answers == []
    host.clock.advance(1)
    assert [each.error_code for each in host.answers] == [ErrorCode.REQUEST_TIMED_OUT]
    host.done[0](ErrorCode.NONE, "")
    assert len(host.answers) == 1


def test_only_the_leader_changes_who_votes() -> None:
    host = Host(Role.FOLLOWER)
    host.ask(ADD)
    assert host.answers == [Refusal.NOT_CONTROLLER]


def listener(**changes: Any) -> RaftVoterListener:
    return dataclasses.replace(ADD.listeners[0], **changes)


@pytest.mark.parametrize(
    "change",
    [
        {"voter_id": -1},
        {"listeners": ()},
        {"listeners": ADD.listeners * 17},
        {"listeners": (listener(host="h" * 256),)},
        {"listeners": (listener(host=""),)},
        {"listeners": (listener(name="n" * 256),)},
        {"listeners": (listener(port=0),)},
    ],
    ids=lambda change: str(change)[:40],
)
def test_an_implausible_voter_never_reaches_raft(change: dict[str, Any]) -> None:
    """Every node would store the voter and connect to its first listener."""
    host = Host()
    host.ask(dataclasses.replace(ADD, **change))
    assert host.done == []
    assert [each.error_code for each in host.answers] == [ErrorCode.INVALID_REQUEST]


@pytest.mark.parametrize(
    ("levels", "decided_by_raft"),
    [
        ({"kraft.version": 0}, True),
        ({"kraft.version": 1}, True),
        ({"kraft.version": 0, "metadata.version": 27}, True),
        ({"kraft.version": 1, "metadata.version": 27}, False),
        ({"metadata.version": 27}, False),
    ],
)
def test_raft_decides_features_only_if_kraft_version_changes_or_is_alone(
    levels: dict[str, int], decided_by_raft: bool
) -> None:
    updates = tuple(
        FeatureUpdateKey(feature=name, max_version_level=level) for name, level in levels.items()
    )
    request = UpdateFeaturesRequest(feature_updates=updates)
    assert Host().admin.handles(request) is decided_by_raft


@pytest.mark.parametrize(
    ("others", "sentence"),
    [
        (("metadata.version",), "kraft.version is a feature of Raft"),
        (
            ("metadata.version", "transaction.version", "group.version"),
            "these features do not exist here: group.version, transaction.version. Name",
        ),
    ],
)
def test_kraft_version_and_other_features_are_refused_with_the_reason(
    others: tuple[str, ...], sentence: str
) -> None:
    """Kafka's `upgrade --release-version` names features that do not exist here. To change
    kraft.version first would not help."""
    updates = tuple(
        FeatureUpdateKey(feature=name, max_version_level=1) for name in (*others, "kraft.version")
    )
    host = Host()
    host.ask(UpdateFeaturesRequest(feature_updates=updates))
    (answer,) = host.answers
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert answer.error_message.startswith(sentence)
