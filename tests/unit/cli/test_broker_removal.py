"""`cluster unregister` and `cluster decommission`: the checks, the plan, and its resumption."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner, Result

from quorate.cli.cluster import decommission
from quorate.cli.main import main
from quorate.cli.reassign.drain_plan import drained
from quorate.cli.reassign.plan import Assignment, Impossible
from quorate.quorum.protocol.schemas import cluster, configs, log_dirs, metadata, reassignments
from quorate.quorum.protocol.schemas.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from tests.unit.cli.fake_kafka import fake_kafka

LISTED = "leader.replication.throttled.replicas"
Assigned = dict[int, tuple[int, ...]]


class FakeCluster:
    """A cluster with one topic, whose moves take one request for their progress."""

    def __init__(self, assignment: Assigned, fenced: tuple[int, ...] = ()) -> None:
        self.assignment = dict(assignment)
        self.moving: dict[int, tuple[int, ...]] = {}
        self.fenced = fenced
        self.registered = {4, 5, 6}
        self.throttles: list[tuple[str, str, str | None]] = []
        self.listed = ""
        self.started: list[dict[int, tuple[int, ...]]] = []
        self.address = ("h", 1)
        """The host and the port of all brokers, where nothing listens."""
        self.hosted: tuple[str, ...] = ("t",)
        """The topics of which broker 4 has replicas."""

    @property
    def answers(self) -> dict[type, Any]:
        return {
            cluster.DescribeClusterRequest: self.describe,
            metadata.MetadataRequest: self.metadata,
            reassignments.ListPartitionReassignmentsRequest: self.ongoing,
            reassignments.AlterPartitionReassignmentsRequest: self.reassign,
            configs.IncrementalAlterConfigsRequest: self.configure,
            configs.DescribeConfigsRequest: self.throttled,
            UnregisterBrokerRequest: self.unregister,
            log_dirs.DescribeLogDirsRequest: self.directories,
        }

    def describe(self, _: Any) -> cluster.DescribeClusterResponse:
        return cluster.DescribeClusterResponse(
            cluster_id="C",
            controller_id=1,
            brokers=tuple(
                cluster.DescribeClusterBroker(
                    broker_id=each, host="h", port=1, rack=None, is_fenced=each in self.fenced
                )
                for each in sorted(self.registered)
            ),
        )

    def metadata(self, request: Any) -> metadata.MetadataResponse:
        partitions = tuple(
            metadata.MetadataResponsePartition(
                error_code=0,
                partition_index=number,
                leader_id=replicas[0],
                leader_epoch=0,
                replica_nodes=replicas,
                isr_nodes=replicas,
                offline_replicas=(),
            )
            for number, replicas in self.assignment.items()
        )
        topic = metadata.MetadataResponseTopic(error_code=0, name="t", partitions=partitions)
        return metadata.MetadataResponse(
            brokers=tuple(
                metadata.MetadataResponseBroker(
                    node_id=each, host=self.address[0], port=self.address[1], rack=None
                )
                for each in sorted(self.registered.difference(self.fenced))
            ),
            topics=() if request.topics == () else (topic,),
        )

    def ongoing(self, _: Any) -> reassignments.ListPartitionReassignmentsResponse:
        found = tuple(
            reassignments.OngoingPartitionReassignment(
                partition_index=number,
                replicas=self.assignment[number] + target[-1:],
                adding_replicas=target[-1:],
                removing_replicas=(4,),
            )
            for number, target in self.moving.items()
        )
        topics = (reassignments.OngoingTopicReassignment(name="t", partitions=found),)
        answer = reassignments.ListPartitionReassignmentsResponse(topics=topics if found else ())
        for number in list(self.moving)[:1]:
            self.assignment[number] = self.moving.pop(number)
        return answer

    def reassign(self, request: Any) -> reassignments.AlterPartitionReassignmentsResponse:
        wanted = {
            each.partition_index: each.replicas
            for topic in request.topics
            for each in topic.partitions
        }
        self.started.append(wanted)
        self.moving.update(wanted)
        return reassignments.AlterPartitionReassignmentsResponse(responses=())

    def configure(self, request: Any) -> configs.IncrementalAlterConfigsResponse:
        for resource in request.resources:
            self.throttles += [
                (resource.resource_name, each.name, each.value) for each in resource.configs
            ]
        return configs.IncrementalAlterConfigsResponse(
            responses=tuple(
                configs.IncrementalAlterConfigsResourceResponse(
                    error_code=0,
                    error_message=None,
                    resource_type=each.resource_type,
                    resource_name=each.resource_name,
                )
                for each in request.resources
            )
        )

    def throttled(self, _: Any) -> configs.DescribeConfigsResponse:
        """Return the throttled replicas of the topic as they were before this run."""
        listed = configs.DescribeConfigsResourceResult(
            name=LISTED, value=self.listed, read_only=False, config_source=1, is_sensitive=False
        )
        result = configs.DescribeConfigsResult(
            error_code=0, error_message=None, resource_type=2, resource_name="t", configs=(listed,)
        )
        return configs.DescribeConfigsResponse(results=(result,))

    def directories(self, _: Any) -> log_dirs.DescribeLogDirsResponse:
        topics = tuple(
            log_dirs.DescribeLogDirsTopic(name=each, partitions=()) for each in self.hosted
        )
        result = log_dirs.DescribeLogDirsResult(error_code=0, log_dir="/data", topics=topics)
        return log_dirs.DescribeLogDirsResponse(results=(result,))

    def unregister(self, request: Any) -> UnregisterBrokerResponse:
        self.registered.discard(request.broker_id)
        return UnregisterBrokerResponse()


def run(fake: FakeCluster, *arguments: str) -> Result:
    with fake_kafka(fake.answers) as port:
        if fake.address[0] != "h":
            fake.address = port.host, port.port
        command = ("cluster", *arguments, "--bootstrap-server", port.address)
        return CliRunner().invoke(main, command)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decommission, "POLL_S", 0.0)


@pytest.mark.parametrize(
    ("replicas", "fenced", "said"),
    [
        ((5, 6), (), "broker 4 is alive. Move its replicas first"),
        ((4, 5), (), "broker 4 is alive and leads 1 partitions"),
        ((4, 5), (4,), "broker 4 is fenced and leads 1 partitions"),
    ],
)
def test_a_broker_that_is_alive_or_leads_is_unregistered_by_force_only(
    replicas: tuple[int, ...], fenced: tuple[int, ...], said: str
) -> None:
    fake = FakeCluster({0: replicas}, fenced)
    refused = run(fake, "unregister", "--id", "4")
    assert refused.exit_code == 1
    assert said in refused.output
    assert "--force" in refused.output
    assert 4 in fake.registered
    assert run(fake, "unregister", "--id", "4", "--force").exit_code == 0
    assert 4 not in fake.registered


def test_a_dead_broker_is_unregistered_without_force() -> None:
    fake = FakeCluster({0: (5, 4)}, fenced=(4,))
    assert run(fake, "unregister", "--id", "4").exit_code == 0
    assert 4 not in fake.registered


def test_a_decommissioned_broker_is_drained_under_a_throttle_and_then_unregistered() -> None:
    fake = FakeCluster({0: (4, 5), 1: (5, 4), 2: (5, 6)})
    ended = run(fake, "decommission", "4", "--throttle", "1000", "--yes")
    assert ended.exit_code == 0, ended.output
    assert fake.assignment == {0: (6, 5), 1: (5, 6), 2: (5, 6)}
    assert fake.started == [{0: (6, 5), 1: (5, 6)}], "moves in progress are not started again"
    assert ("4", "leader.replication.throttled.rate", "1000") in fake.throttles
    assert fake.throttles[-1][2] is None, "the throttles are removed at the end"
    assert 4 not in fake.registered
    assert "no longer registered" in ended.output


def test_a_broker_with_replicas_of_hidden_topics_is_not_decommissioned() -> None:
    """A client without DESCRIBE on a topic sees none of its replicas, so they were left behind."""
    fake = FakeCluster({0: (5, 6)})
    fake.address = ("127.0.0.1", 0)
    fake.hosted = ("t", "secret")
    refused = run(fake, "decommission", "4", "--yes")
    assert refused.exit_code == 1
    assert "replicas of 1 topics that this client cannot describe: secret." in refused.output
    assert 4 in fake.registered
    fake.hosted = ("t",)
    assert run(fake, "decommission", "4", "--yes").exit_code == 0
    assert 4 not in fake.registered


def test_an_interrupted_decommission_goes_on_with_the_moves_in_progress() -> None:
    fake = FakeCluster({0: (4, 5), 1: (5, 4)})
    fake.moving = {0: (6, 5)}
    ended = run(fake, "decommission", "4", "--yes")
    assert ended.exit_code == 0, ended.output
    assert fake.started == [{1: (5, 6)}]


@pytest.mark.parametrize("assignment", [{0: (5, 6)}, {0: (4, 5)}])
def test_the_throttles_of_a_killed_decommission_are_removed(assignment: Assigned) -> None:
    fake = FakeCluster(assignment)
    fake.listed = "0:4,0:5"
    ended = run(fake, "decommission", "4", "--yes")
    assert ended.exit_code == 0, ended.output
    assert "removed the throttles that an interrupted run left on 1 topics" in ended.output
    assert ("t", LISTED, None) in fake.throttles
    assert ("5", "leader.replication.throttled.rate", None) in fake.throttles


@pytest.mark.parametrize("listed", ["", "*", "0:5,0:14"])
def test_the_throttles_of_other_reassignments_stay(listed: str) -> None:
    fake = FakeCluster({0: (5, 6)})
    fake.listed = listed
    assert run(fake, "decommission", "4", "--yes").exit_code == 0
    assert not fake.throttles


class SlowCluster(FakeCluster):
    """A cluster whose moves take several requests. Metadata lists the old and the new replicas of a
    partition that moves, as a real cluster does."""

    def __init__(self, assignment: Assigned) -> None:
        super().__init__(assignment)
        self.left = 5

    def metadata(self, request: Any) -> metadata.MetadataResponse:
        before = dict(self.assignment)
        for number, target in self.moving.items():
            added = (each for each in target if each not in before[number])
            self.assignment[number] = (*before[number], *added)
        try:
            return super().metadata(request)
        finally:
            self.assignment = before

    def ongoing(self, request: Any) -> reassignments.ListPartitionReassignmentsResponse:
        self.left -= bool(self.moving)
        if self.left:
            moving = dict(self.moving)
            before = dict(self.assignment)
            answer = super().ongoing(request)
            self.moving, self.assignment = moving, before
            return answer
        self.assignment.update(self.moving)
        self.moving.clear()
        return super().ongoing(request)


def test_a_slow_move_to_the_last_other_broker_is_no_lack_of_brokers() -> None:
    """While it lasts, the partition has replicas on all brokers."""
    fake = SlowCluster({0: (4, 5)})
    result = run(fake, "decommission", "4", "--yes")
    assert result.exit_code == 0, result.output
    assert fake.started == [{0: (6, 5)}]
    assert fake.registered == {5, 6}


def test_a_new_throttle_replaces_that_of_a_killed_decommission() -> None:
    fake = SlowCluster({0: (4, 5)})
    fake.moving = {0: (6, 5)}
    fake.listed = "0:4,0:5"
    ended = run(fake, "decommission", "4", "--throttle", "1000", "--yes")
    assert ended.exit_code == 0, ended.output
    assert fake.started == []
    assert ("5", "follower.replication.throttled.rate", "1000") in fake.throttles
    assert fake.throttles[-1][1:] == ("follower.replication.throttled.replicas", None)


def test_nothing_moves_without_a_confirmation_or_a_broker_to_move_to() -> None:
    fake = FakeCluster({0: (4, 5)})
    assert run(fake, "decommission", "4").exit_code == 1
    assert fake.started == []
    whole = FakeCluster({0: (4, 5, 6)})
    refused = run(whole, "decommission", "4", "--yes")
    assert "partition t-0 has 3 replicas, and only 2 other brokers are live" in refused.output
    assert 4 in whole.registered
    unknown = run(fake, "decommission", "9", "--yes")
    assert "broker 9 is not registered" in unknown.output


def test_the_plan_moves_only_what_it_must_and_spreads_it() -> None:
    current: Assignment = {("t", number): (4, 5) for number in range(4)}
    current["u", 0] = (5, 6)
    plan = drained(current, {5: None, 6: None, 7: None}, 4)
    assert sorted(plan) == [("t", number) for number in range(4)]
    assert all(replicas[1] == 5 for replicas in plan.values())
    assert sorted(replicas[0] for replicas in plan.values()) == [6, 6, 7, 7]
    with pytest.raises(Impossible, match="t-0"):
        drained(current, {5: None}, 4)
