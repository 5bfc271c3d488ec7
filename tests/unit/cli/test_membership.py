"""The console consumer in a group: assignments, their encoding, and joins that do not succeed."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from click.testing import CliRunner, Result

from quorate.cli.client import membership
from quorate.cli.client.errors import Refused
from quorate.cli.client.groups import assigned
from quorate.cli.client.membership import assignment, range_shares, subscription, topics_of
from quorate.cli.main import main
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import (
    find_coordinator,
    group_membership,
    list_offsets,
    metadata,
)
from quorate.quorum.protocol.wire import Message
from tests.unit.cli.fake_kafka import Answer, FakeKafka, fake_kafka


def test_ranges() -> None:
    shares = range_shares({"b": ["t"], "a": ["t", "u"], "c": ["t"]}, {"t": 4, "u": 2})
    assert shares == {
        "a": [("t", 0), ("t", 1), ("u", 0), ("u", 1)],
        "b": [("t", 2)],
        "c": [("t", 3)],
    }
    assert range_shares({"a": ["gone"]}, {"t": 2}) == {"a": []}
    assert range_shares({"a": ["t"], "b": ["t"]}, {"t": 1}) == {"a": [("t", 0)], "b": []}


def test_the_bytes() -> None:
    places = [("t", 0), ("t", 5), ("uu", 1)]
    assert assigned(assignment(places)) == places
    assert assigned(assignment([])) == []
    assert topics_of(subscription(["t", "uu"])) == ["t", "uu"]
    with pytest.raises(Refused, match="cannot be decoded"):
        topics_of(b"\0\0\0\0\0\2\0\1t")


def joined(coordinator: Answer, join: Answer, *arguments: str) -> Result:
    """Run `console-consumer --group` against a broker with these answers."""
    servers: list[FakeKafka] = []

    def described(_: Any) -> Message:
        node = metadata.MetadataResponseBroker(
            node_id=1, host=servers[0].host, port=servers[0].port
        )
        partition = metadata.MetadataResponsePartition(
            partition_index=0, leader_id=1, replica_nodes=(1,), isr_nodes=(1,)
        )
        topic = metadata.MetadataResponseTopic(name="t", partitions=(partition,))
        return metadata.MetadataResponse(brokers=(node,), topics=(topic,))

    def offsets(_: Any) -> Message:
        found = list_offsets.ListOffsetsPartitionResponse(partition_index=0, offset=0)
        topic = list_offsets.ListOffsetsTopicResponse(name="t", partitions=(found,))
        return list_offsets.ListOffsetsResponse(topics=(topic,))

    answers: dict[type[Message], Answer] = {
        list_offsets.ListOffsetsRequest: offsets,
        metadata.MetadataRequest: described,
        find_coordinator.FindCoordinatorRequest: coordinator,
        group_membership.JoinGroupRequest: join,
    }
    with fake_kafka(answers) as server:
        servers.append(server)
        given = ["--bootstrap-server", server.address, "--topic", "t", "--group", "g"]
        command = ["console-consumer", *given, "--from-beginning", "--timeout", "0.3", *arguments]
        return CliRunner().invoke(main, command)


def found(_: Any) -> Message:
    """Answer FindCoordinator with node 1."""
    node = find_coordinator.Coordinator(key="g", node_id=1, host="h", port=1)
    return find_coordinator.FindCoordinatorResponse(node_id=1, coordinators=(node,))


def none_available(_: Any) -> Message:
    """Answer FindCoordinator with COORDINATOR_NOT_AVAILABLE."""
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    node = find_coordinator.Coordinator(key="g", node_id=-1, host="", port=-1, error_code=code)
    return find_coordinator.FindCoordinatorResponse(error_code=code, coordinators=(node,))


def refuses(code: ErrorCode) -> Answer:
    """Return an answer to JoinGroup with this error."""
    return lambda _: group_membership.JoinGroupResponse(
        error_code=code, leader="", member_id="m", members=()
    )


@pytest.fixture
def short_rebalances(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reduces the time that a join may take in addition to --timeout."""
    monkeypatch.setattr(membership, "REBALANCE_TIMEOUT_MS", 200)


def test_a_group_without_a_coordinator_ends_the_command() -> None:
    result = joined(none_available, refuses(ErrorCode.NONE))
    assert result.exit_code == 1
    assert "group g: COORDINATOR_NOT_AVAILABLE" in result.output


def test_a_coordinator_that_never_answers_ends_the_command(short_rebalances: None) -> None:
    released = threading.Event()

    def silent(_: Any) -> None:
        released.wait(1)

    try:
        result = joined(found, silent)
    finally:
        released.set()
    assert result.exit_code == 3
    assert "the coordinator of group g did not answer within 0.3 s: " in result.output


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.MEMBER_ID_REQUIRED])
def test_a_join_that_never_succeeds_ends_the_command(
    code: ErrorCode, short_rebalances: None
) -> None:
    result = joined(found, refuses(code))
    assert result.exit_code == 3
    assert result.output == (
        "Error: group g: the coordinator assigned no partitions within 0.5 s; its last answer was "
        f"{code.name}\n"
    )


def test_a_coordinator_that_moves_all_the_time_ends_the_command(short_rebalances: None) -> None:
    result = joined(found, refuses(ErrorCode.NOT_COORDINATOR))
    assert result.exit_code == 3
    assert "the coordinator of group g did not answer within" in result.output
    assert "NOT_COORDINATOR" in result.output
