"""`quorate topics`: its lines equal those of kafka-topics 4.1.1 for the same answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from quorate.cli.main import main
from quorate.cli.topics import topic_view
from quorate.cli.topics.topic_view import PartitionView, Report, TopicView, lines, matching
from quorate.quorum.ids import uuid_from_text
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import cluster, configs, metadata, reassignments, topics
from tests.unit.cli.fake_kafka import Answer, fake_kafka

TOPIC_ID = "XCXALlL4T82863c-QI40LQ"
LIVE = frozenset({4, 5, 6})


def metadata_answer(*names: str) -> metadata.MetadataResponse:
    """Return a Metadata response with these topics."""
    return metadata.MetadataResponse(
        brokers=tuple(
            metadata.MetadataResponseBroker(node_id=n, host="127.0.0.1", port=9092) for n in LIVE
        ),
        topics=tuple(
            metadata.MetadataResponseTopic(
                name=name,
                topic_id=uuid_from_text(TOPIC_ID),
                partitions=tuple(
                    metadata.MetadataResponsePartition(
                        partition_index=n, leader_id=4, replica_nodes=(4, 5), isr_nodes=(4,)
                    )
                    for n in range(2)
                ),
            )
            for name in names
        ),
    )


def described(_: Any) -> cluster.DescribeTopicPartitionsResponse:
    """Answer DescribeTopicPartitions."""
    partitions = tuple(
        cluster.DescribeTopicPartitionsResponsePartition(
            partition_index=n,
            leader_id=leader,
            replica_nodes=(4, 5),
            isr_nodes=(4,),
            eligible_leader_replicas=(),
            last_known_elr=(),
        )
        for n, leader in ((1, -1), (0, 4))
    )
    return cluster.DescribeTopicPartitionsResponse(
        topics=(
            cluster.DescribeTopicPartitionsResponseTopic(
                name="t", topic_id=uuid_from_text(TOPIC_ID), partitions=partitions
            ),
        )
    )


def described_configs(request: Any) -> configs.DescribeConfigsResponse:
    """Answer DescribeConfigs."""
    entry = configs.DescribeConfigsResourceResult
    return configs.DescribeConfigsResponse(
        results=tuple(
            configs.DescribeConfigsResult(
                resource_type=2,
                resource_name=resource.resource_name,
                configs=(
                    entry(
                        name="min.insync.replicas",
                        value="2",
                        read_only=False,
                        config_source=4,
                        is_sensitive=False,
                    ),
                    entry(
                        name="retention.ms",
                        value="7",
                        read_only=False,
                        config_source=5,
                        is_sensitive=False,
                    ),
                ),
            )
            for resource in request.resources
        )
    )


DESCRIBE: dict[Any, Answer] = {
    metadata.MetadataRequest: lambda _: metadata_answer("t"),
    cluster.DescribeTopicPartitionsRequest: described,
    configs.DescribeConfigsRequest: described_configs,
    reassignments.ListPartitionReassignmentsRequest: (
        lambda _: reassignments.ListPartitionReassignmentsResponse(topics=())
    ),
}


def run(answers: dict[Any, Answer], *arguments: str) -> tuple[Result, list[Any]]:
    """Run `quorate topics` against a fake server, and return the result and the requests."""
    timeout = () if "--timeout" in arguments else ("--timeout", "2")
    with fake_kafka(answers) as server:
        result = CliRunner().invoke(main, ["topics", "-b", server.address, *timeout, *arguments])
        return result, server.requests


def test_describe_prints_kafkas_lines() -> None:
    result, _ = run(DESCRIBE, "--describe", "--topic", "t")
    assert result.exit_code == 0
    assert result.output == (
        f"Topic: t\tTopicId: {TOPIC_ID}\tPartitionCount: 2\tReplicationFactor: 2"
        "\tConfigs: min.insync.replicas=2\n"
        "\tTopic: t\tPartition: 0\tLeader: 4\tReplicas: 4,5\tIsr: 4\tElr: \tLastKnownElr: \n"
        "\tTopic: t\tPartition: 1\tLeader: none\tReplicas: 4,5\tIsr: 4\tElr: \tLastKnownElr: \n"
    )


def test_describe_by_metadata_where_the_newer_api_is_not_served() -> None:
    answers = dict(DESCRIBE)
    del answers[cluster.DescribeTopicPartitionsRequest]
    del answers[reassignments.ListPartitionReassignmentsRequest]
    result, _ = run(answers, "--describe")
    assert "\tIsr: 4\tElr: N/A\tLastKnownElr: N/A\n" in result.output


def test_describe_as_json() -> None:
    result, _ = run(DESCRIBE, "--describe", "--format", "json", "--unavailable-partitions")
    (topic,) = json.loads(result.output)
    assert [each["partition"] for each in topic["partitions"]] == [1]
    assert topic["configs"] == {"min.insync.replicas": "2"}


def test_a_topic_that_is_not_there() -> None:
    result, _ = run(DESCRIBE, "--describe", "--topic", "other")
    assert result.exit_code == 1
    assert result.output == (
        "Error while executing topic command : Topic 'other' does not exist as expected\n"
    )
    result, _ = run(DESCRIBE, "--describe", "--topic", "other", "--if-exists")
    assert (result.exit_code, result.output) == (0, "")


def test_describe_without_an_active_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker answers from its image, and only the controller knows the reassignments."""
    monkeypatch.setattr(topic_view, "MOVES_WAIT_S", 0.01)
    lost = reassignments.ListPartitionReassignmentsResponse(
        error_code=ErrorCode.REQUEST_TIMED_OUT, error_message="nobody was asked", topics=()
    )
    answers = {**DESCRIBE, reassignments.ListPartitionReassignmentsRequest: lambda _: lost}
    result, requests = run(answers, "--describe", "--topic", "t", "--timeout", "600")
    assert (result.exit_code, result.stderr) == (0, f"{topic_view.NO_MOVES}\n")
    assert result.stdout == run(DESCRIBE, "--describe", "--topic", "t")[0].stdout
    asked = [each for each in requests if hasattr(each, "timeout_ms")]
    assert {each.timeout_ms for each in asked} == {10}


def created(*codes: ErrorCode) -> dict[Any, Answer]:
    """Return an answer to CreateTopics with these errors, one per request."""
    left = list(codes)

    def answer(request: Any) -> topics.CreateTopicsResponse:
        code = left.pop(0)
        text = None if code == ErrorCode.NONE else f"no: {code.name}"
        result = topics.CreatableTopicResult(
            name=request.topics[0].name, error_code=code, error_message=text
        )
        return topics.CreateTopicsResponse(topics=(result,))

    return {topics.CreateTopicsRequest: answer}


def test_create_sends_what_was_asked_for() -> None:
    result, (request,) = run(
        created(ErrorCode.NONE),
        *("--create", "--topic", "t", "--partitions", "3", "--config", "retention.ms=1000"),
    )
    assert (result.exit_code, result.output) == (0, "Created topic t.\n")
    (topic,) = request.topics
    assert (topic.num_partitions, topic.replication_factor) == (3, -1)
    assert topic.configs[0].name == "retention.ms"


def test_create_with_an_assignment() -> None:
    _, (request,) = run(
        created(ErrorCode.NONE), "--create", "--topic", "t", "--replica-assignment", "4:5,5:6"
    )
    assert [each.broker_ids for each in request.topics[0].assignments] == [(4, 5), (5, 6)]


def test_create_again_is_an_error_unless_told_otherwise() -> None:
    result, _ = run(created(ErrorCode.TOPIC_ALREADY_EXISTS), "--create", "--topic", "t")
    assert result.exit_code == 1
    assert result.output == "Error while executing topic command : no: TOPIC_ALREADY_EXISTS\n"
    result, _ = run(
        created(ErrorCode.TOPIC_ALREADY_EXISTS), "--create", "--topic", "t", "--if-not-exists"
    )
    assert result.exit_code == 0


def test_what_was_not_carried_out_is_asked_again() -> None:
    result, requests = run(
        created(ErrorCode.NOT_CONTROLLER, ErrorCode.NONE), "--create", "--topic", "t"
    )
    assert (result.exit_code, len(requests)) == (0, 2)


def test_a_change_whose_outcome_is_unknown_is_not_sent_twice() -> None:
    result, requests = run(created(ErrorCode.REQUEST_TIMED_OUT), "--create", "--topic", "t")
    assert (result.exit_code, len(requests)) == (1, 1)
    answers: dict[Any, Answer] = {topics.CreateTopicsRequest: lambda _: None}
    result, requests = run(answers, "--create", "--topic", "t")
    assert (result.exit_code, len(requests)) == (3, 1)
    assert "the outcome of the request is unknown" in result.output


def test_names_that_could_collide_are_warned_of() -> None:
    result, _ = run(created(ErrorCode.NONE), "--create", "--topic", "a.b")
    assert result.output.startswith("WARNING: Due to limitations in metric names")


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--list", "--describe"),
        ("--create",),
        ("--alter", "--topic", "t"),
        ("--list", "--config", "a=b"),
        ("--create", "--topic", "t", "--config", "nonsense"),
        ("--create", "--topic", "t", "--replica-assignment", "1:x"),
        ("--create", "--topic", "t", "--replica-assignment", "1:2", "--partitions", "1"),
    ],
)
def test_wrong_usage_ends_with_2(arguments: tuple[str, ...]) -> None:
    result = CliRunner().invoke(main, ["topics", "-b", "127.0.0.1:1", *arguments])
    assert result.exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ("--delete --topic .* --exclude-internal", ("exclude-internal", "delete")),
        ("--alter --topic .* --partitions 3 --exclude-internal", ("exclude-internal", "alter")),
        ("--delete --topic t --topic-id x", ("topic-id", "delete")),
        ("--delete --topic t --partitions 0", ("partitions", "delete")),
        ("--delete --topic t --if-not-exists", ("if-not-exists", "delete")),
        ("--create --topic t --if-exists", ("if-exists", "create")),
        ("--describe --replica-assignment 1:2", ("replica-assignment", "describe")),
        ("--list --unavailable-partitions", ("unavailable-partitions", "list")),
        (
            "--describe --at-min-isr-partitions --topics-with-overrides",
            ("at-min-isr-partitions", "topics-with-overrides"),
        ),
    ],
)
def test_an_option_that_the_action_would_ignore_is_refused(
    arguments: str, options: tuple[str, str]
) -> None:
    """`--delete --exclude-internal` deleted internal topics."""
    result, requests = run(DESCRIBE, *arguments.split())
    assert result.exit_code == 2
    assert 'Option "[{}]" can\'t be used with option "[{}]"'.format(*options) in result.output
    assert not requests


def test_an_assignment_without_brokers_for_the_new_partitions_is_sent() -> None:
    """The cluster refuses it, as in Kafka. Without an assignment it would choose the brokers."""
    answers: dict[Any, Answer] = {
        metadata.MetadataRequest: lambda _: metadata_answer("t"),
        topics.CreatePartitionsRequest: lambda _: topics.CreatePartitionsResponse(results=()),
    }
    alter = ("--alter", "--topic", "t", "--partitions", "3")
    sent = []
    for assignment in ((), ("--replica-assignment", "4:5"), ("--replica-assignment", "4,5,6")):
        _, requests = run(answers, *alter, *assignment)
        sent.append(requests[-1].topics[0].assignments)
    assert sent == [None, (), (topics.CreatePartitionsAssignment(broker_ids=(6,)),)]


def test_nobody_there_ends_with_3() -> None:
    with fake_kafka({}) as server:
        address = server.address
    result = CliRunner().invoke(main, ["topics", "-b", address, "--timeout", "0.01", "--list"])
    assert result.exit_code == 3
    assert address in result.output


def test_a_pattern_is_for_the_whole_name() -> None:
    names = ["a", "ab", "b", "__consumer_offsets"]
    assert matching(names, None, exclude_internal=False) == ["__consumer_offsets", "a", "ab", "b"]
    assert matching(names, "a|b", exclude_internal=False) == ["a", "b"]
    assert matching(names, "a,b", exclude_internal=False) == ["a", "b"]
    assert matching(names, None, exclude_internal=True) == ["a", "ab", "b"]


def partition(leader: int | None, isr: tuple[int, ...], adding: tuple[int, ...] = ()) -> Any:
    """Return a partition with replicas 4, 5 and the added ones."""
    return PartitionView(
        partition=0, leader=leader, replicas=(4, 5, *adding), isr=isr, adding=adding
    )


@pytest.mark.parametrize(
    ("report", "shown"),
    [
        (Report(), [0, 1, 2, 3]),
        (Report(under_replicated=True), [1, 2]),
        (Report(unavailable=True), [2, 3]),
        (Report(under_min_isr=True), [1, 2]),
        (Report(at_min_isr=True), [0, 3]),
    ],
)
def test_reports(report: Report, shown: list[int]) -> None:
    cases = (
        partition(4, (4, 5)),
        partition(4, (4,)),
        partition(None, ()),
        partition(9, (4, 5), adding=(6,)),
    )
    found = [n for n, each in enumerate(cases) if report.shows(each, 2, LIVE)]
    assert found == shown


def test_a_partition_that_moves() -> None:
    view = TopicView(
        name="t", topic_id=TOPIC_ID, partitions=(partition(4, (4,), adding=(6,)),), configs={}
    )
    head, line = lines([view], Report(), LIVE)
    assert "ReplicationFactor: 2" in head
    assert "\tIsr: 4\tAdding Replicas: 6\tRemoving Replicas: \tElr: N/A" in line
