"""reassign-partitions, leader-election, delete-records, get-offsets, log-dirs and features.

Their lines equal those of Kafka's 4.1.1 tools for the same answers. Mistakes in files are
reported."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from quorate.cli.get_offsets import rule
from quorate.cli.main import main
from quorate.cli.reassign import command as reassign_partitions
from quorate.cli.reassign import log_dir_moves
from quorate.cli.reassign.partition_files import Replica
from quorate.quorum.ids import ZERO_UUID
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import (
    configs,
    elect_leaders,
    list_offsets,
    log_dirs,
    metadata,
    reassignments,
    topics,
    unregister_broker,
)
from quorate.quorum.protocol.wire import Message
from tests.unit.cli.fake_kafka import Answer, FakeKafka, fake_kafka

Run = Callable[..., Result]
PLAN = {
    "version": 1,
    "partitions": [
        {"topic": "t", "partition": 0, "replicas": [5, 6]},
        {"topic": "t", "partition": 1, "replicas": [4, 5]},
    ],
}


def run(answers: dict[type[Message], Answer], *arguments: str) -> tuple[Result, FakeKafka]:
    """Run a command against brokers 4, 5 and 6 at one address, with partitions 0 and 1 of topic t
    on 4 and 5, led by 4."""
    with fake_kafka({}) as server:
        server._answers = {cls.API_KEY: answer for cls, answer in answers.items()}
        server._answers.setdefault(metadata.MetadataRequest.API_KEY, lambda asked: known(server))
        result = CliRunner().invoke(
            main, [arguments[0], "--bootstrap-server", server.address, *arguments[1:]]
        )
    return result, server


def known(server: FakeKafka) -> metadata.MetadataResponse:
    """Return the Metadata response of these brokers."""
    return metadata.MetadataResponse(
        brokers=tuple(
            metadata.MetadataResponseBroker(node_id=each, host=server.host, port=server.port)
            for each in (4, 5, 6)
        ),
        topics=(
            metadata.MetadataResponseTopic(
                name="t",
                topic_id=ZERO_UUID,
                partitions=tuple(
                    metadata.MetadataResponsePartition(
                        partition_index=each, leader_id=4, replica_nodes=(4, 5), isr_nodes=(4, 5)
                    )
                    for each in (0, 1)
                ),
            ),
        ),
    )


def ongoing(*partitions: int) -> Answer:
    """Return an answer to ListPartitionReassignments with these partitions in progress."""
    answer = reassignments.ListPartitionReassignmentsResponse(
        topics=(
            reassignments.OngoingTopicReassignment(
                name="t",
                partitions=tuple(
                    reassignments.OngoingPartitionReassignment(
                        partition_index=each,
                        replicas=(5, 6, 4),
                        adding_replicas=(6,),
                        removing_replicas=(4,) if each == 0 else (),
                    )
                    for each in partitions
                ),
            ),
        )
    )
    return lambda _: answer


def altered(*errors: int) -> Answer:
    """Return an answer to AlterPartitionReassignments with these errors."""

    def answer(request: Any) -> Message:
        partitions = [each for topic in request.topics for each in topic.partitions]
        return reassignments.AlterPartitionReassignmentsResponse(
            responses=(
                reassignments.ReassignableTopicResponse(
                    name="t",
                    partitions=tuple(
                        reassignments.ReassignablePartitionResponse(
                            partition_index=each.partition_index,
                            error_code=error,
                            error_message="because" if error else None,
                        )
                        for each, error in zip(
                            partitions, errors or (0,) * len(partitions), strict=True
                        )
                    ),
                ),
            )
        )

    return answer


LIST, ALTER = (
    reassignments.ListPartitionReassignmentsRequest,
    reassignments.AlterPartitionReassignmentsRequest,
)
CLEARED: dict[type[Message], Answer] = {
    configs.IncrementalAlterConfigsRequest: lambda _: configs.IncrementalAlterConfigsResponse(
        responses=()
    )
}
CLEARING = (
    "Clearing broker-level throttles on brokers 4,5,6\nClearing topic-level throttles on topic t\n"
)


@pytest.fixture
def plan(tmp_path: Path) -> str:
    """Write the file of a plan and return its path."""
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(PLAN))
    return str(file)


def test_list() -> None:
    result, _ = run({LIST: ongoing(0, 1)}, "reassign-partitions", "--list")
    assert result.output == (
        "Current partition reassignments:\n"
        "t-0: replicas: 5,6,4. adding: 6. removing: 4.\n"
        "t-1: replicas: 5,6,4. adding: 6.\n"
    )
    result, _ = run({LIST: ongoing()}, "reassign-partitions", "--list")
    assert (result.exit_code, result.output) == (0, "No partition reassignments found.\n")


def test_verify(plan: str) -> None:
    at = ("reassign-partitions", "--verify", "--reassignment-json-file", plan)
    result, server = run({LIST: ongoing(0), **CLEARED}, *at)
    assert result.output == (
        "Status of partition reassignment:\n"
        "Reassignment of partition t-0 is still in progress.\n"
        "Reassignment of partition t-1 is completed.\n"
        "\n"
    )
    result, server = run({LIST: ongoing(), **CLEARED}, *at)
    assert result.output == (
        "Status of partition reassignment:\n"
        "There is no active reassignment of partition t-0, but replica set is 4,5 rather than "
        "5,6.\n"
        "Reassignment of partition t-1 is completed.\n"
        "\n" + CLEARING
    )
    changed = [each for each in server.requests if hasattr(each, "resources")]
    assert [each.resources[0].resource_name for each in changed] == ["4", "5", "6", "t"]


def test_execute(plan: str) -> None:
    at = ("reassign-partitions", "--execute", "--reassignment-json-file", plan)
    result, server = run({LIST: ongoing(), ALTER: altered()}, *at)
    assert result.output == (
        "Current partition replica assignment\n\n"
        '{"version":1,"partitions":['
        '{"topic":"t","partition":0,"replicas":[4,5],"log_dirs":["any","any"]},'
        '{"topic":"t","partition":1,"replicas":[4,5],"log_dirs":["any","any"]}]}\n\n'
        "Save this to use as the --reassignment-json-file option during rollback\n"
        "Successfully started partition reassignments for t-0,t-1\n"
    )
    asked = server.requests[-1].topics[0].partitions
    assert [each.replicas for each in asked] == [(5, 6), (4, 5)]
    result, _ = run({LIST: ongoing(), ALTER: altered(0, 39)}, *at)
    assert result.exit_code == 1
    assert result.output.endswith("Error reassigning partition(s):\nt-1: because\n")
    result, server = run({LIST: ongoing(1), ALTER: altered()}, *at)
    assert result.exit_code == 1
    assert result.output.startswith("Cannot execute because there is an existing partition ass")
    assert not any(isinstance(each, ALTER) for each in server.requests)
    result, _ = run({LIST: ongoing(1), ALTER: altered()}, *at, "--additional")
    assert result.exit_code == 0


@pytest.mark.parametrize(
    ("action", "options"),
    [
        ("execute", ["--topic", "t"]),
        ("execute", ["--broker-list", "4"]),
        ("execute", ["--disable-rack-aware"]),
        ("execute", ["--preserve-throttles"]),
        ("execute", ["--format", "json"]),
        ("execute", ["--topic", "t", "--replication-factor", "2"]),  # the file would be ignored
        ("verify", ["--additional"]),
        ("verify", ["--throttle", "0"]),
        ("cancel", ["--format", "json"]),
        ("cancel", ["--topic", "t"]),
        ("list", []),
    ],
)
def test_an_option_that_the_action_ignores_is_refused(
    plan: str, action: str, options: list[str]
) -> None:
    at = ("reassign-partitions", f"--{action}", "--reassignment-json-file", plan)
    result, server = run({LIST: ongoing(), ALTER: altered(), **CLEARED}, *at, *options)
    assert result.exit_code == 2
    assert f'can\'t be used with action "{action}"' in result.output
    assert not server.requests


def test_an_error_is_not_mixed_with_json(plan: str) -> None:
    at = ("reassign-partitions", "--verify", "--format", "json", "--reassignment-json-file")
    result, _ = run({LIST: ongoing()}, *at, f"{plan}.missing")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "No such file" in result.stderr


DIRS, DESCRIBE = log_dirs.AlterReplicaLogDirsRequest, log_dirs.DescribeLogDirsRequest


def directories(**of_partition: tuple[str | None, str | None]) -> Answer:
    """Return an answer to DescribeLogDirs: the directories of the log and of the future log of each
    partition, such as t0."""
    places = [
        (path, int(name[1:]), is_future)
        for name, paths in of_partition.items()
        for path, is_future in zip(paths, (False, True), strict=True)
        if path is not None
    ]
    answer = log_dirs.DescribeLogDirsResponse(
        results=tuple(
            log_dirs.DescribeLogDirsResult(
                log_dir=path,
                topics=(
                    log_dirs.DescribeLogDirsTopic(
                        name="t",
                        partitions=(
                            log_dirs.DescribeLogDirsPartition(
                                partition_index=index,
                                partition_size=9,
                                offset_lag=0,
                                is_future_key=is_future,
                            ),
                        ),
                    ),
                ),
            )
            for path, index, is_future in places
        )
    )
    return lambda _: answer


def taken(*errors: int) -> Answer:
    """Return an answer to AlterReplicaLogDirs with the next of these errors, then without one."""
    left = list(errors)

    def answer(request: Any) -> Message:
        names = [
            (topic.name, partition)
            for each in request.dirs
            for topic in each.topics
            for partition in topic.partitions
        ]
        return log_dirs.AlterReplicaLogDirsResponse(
            results=tuple(
                log_dirs.AlterReplicaLogDirTopicResult(
                    topic_name=name,
                    partitions=(
                        log_dirs.AlterReplicaLogDirPartitionResult(
                            partition_index=index, error_code=left.pop(0) if left else 0
                        ),
                    ),
                )
                for name, index in names
            )
        )

    return answer


@pytest.fixture
def dirs_plan(tmp_path: Path) -> str:
    file = tmp_path / "dirs.json"
    file.write_text(
        json.dumps(
            {
                "partitions": [
                    {
                        "topic": "t",
                        "partition": index,
                        "replicas": [4, 5],
                        "log_dirs": ["/b", "any"],
                    }
                    for index in (0, 1)
                ]
            }
        )
    )
    return str(file)


def test_execute_moves_replicas_between_log_directories(
    dirs_plan: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replica that its broker does not have yet is asked for again."""
    monkeypatch.setattr(log_dir_moves, "RETRY_S", 0)
    at = ("reassign-partitions", "--execute", "--reassignment-json-file", dirs_plan)
    answers = {LIST: ongoing(), ALTER: altered(), DIRS: taken(0, 9), **CLEARED}
    result, server = run(answers, *at, "--replica-alter-log-dirs-throttle", "77")
    assert result.output.splitlines()[-5:] == [
        reassign_partitions.RUN_VERIFY,
        "The replica-alter-dir throttle limit was set to 77 B/s",
        "Successfully started partition reassignments for t-0,t-1",
        "Successfully started moving log directory to /b for replica t-0 with broker 4 ",
        "Successfully started moving log directory to /b for replica t-1 with broker 4 ",
    ]
    asked = [each for each in server.requests if isinstance(each, DIRS)]
    assert [[each.path for each in request.dirs] for request in asked] == [["/b"], ["/b"]]
    (limited,) = [each for each in server.requests if hasattr(each, "resources")]
    (config,) = limited.resources[0].configs
    assert (limited.resources[0].resource_name, config.name, config.value) == (
        "4",
        "replica.alter.log.dirs.io.max.bytes.per.second",
        "77",
    )
    result, _ = run({LIST: ongoing(), ALTER: altered(), DIRS: taken(57), **CLEARED}, *at)
    assert result.exit_code == 1
    assert "Failed to alter dir for t-0-4" in result.output


def test_execute_gives_up_after_a_time(dirs_plan: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reassign_partitions, "START_TIMEOUT_S", 0)
    at = ("reassign-partitions", "--execute", "--reassignment-json-file", dirs_plan)
    result, _ = run({LIST: ongoing(), ALTER: altered(), DIRS: taken(9, 9)}, *at)
    assert result.exit_code == 1
    assert "Timed out before log directory moves could be started for: t-0-4,t-1-4" in result.output


def test_verify_prints_the_moves_between_log_directories(dirs_plan: str) -> None:
    at = ("reassign-partitions", "--verify", "--reassignment-json-file", dirs_plan)
    for places, lines in (
        (
            {"t0": ("/b", None), "t1": ("/a", "/b")},
            (
                "Reassignment of replica t-0-4 completed successfully.",
                "Reassignment of replica t-1-4 is still in progress.",
            ),
        ),
        (
            {"t0": ("/a", None), "t1": ("/a", "/c")},
            (
                "Partition t-0 on broker 4 is not being moved from log dir /a to /b.",
                "Partition t-1 on broker 4 is being moved to log dir /c instead of /b.",
            ),
        ),
    ):
        result, _ = run({LIST: ongoing(), DESCRIBE: directories(**places), **CLEARED}, *at)
        assert tuple(result.output.splitlines()[3:]) == lines, "no throttle is cleared"
    result, _ = run({LIST: ongoing(), DESCRIBE: directories(t0=("/b", None)), **CLEARED}, *at)
    assert result.output.splitlines()[3:5] == [
        "Reassignment of replica t-0-4 completed successfully.",
        log_dir_moves.state_line(Replica("t", 1, 4), "/b", log_dir_moves.Place(None, None)),
    ]
    assert "Clearing broker-level throttles" in result.output
    answers = {LIST: ongoing(), DESCRIBE: directories(t0=("/b", None), t1=("/a", "/b"))}
    result, _ = run(answers, *at, "--format", "json")
    assert [each["log_dirs"] for each in json.loads(result.output)] == [
        {"4": {"target": "/b", "current": "/b", "future": None}},
        {"4": {"target": "/b", "current": "/a", "future": "/b"}},
    ]


def test_cancel_takes_moves_between_log_directories_back(dirs_plan: str) -> None:
    at = ("reassign-partitions", "--cancel", "--reassignment-json-file", dirs_plan)
    places = directories(t0=("/b", None), t1=("/a", "/b"))
    result, server = run({LIST: ongoing(), DESCRIBE: places, DIRS: taken(), **CLEARED}, *at)
    assert "Successfully started moving log directory to /a for replica t-1 with" in result.output
    (asked,) = [each for each in server.requests if isinstance(each, DIRS)]
    assert [(each.path, each.topics[0].partitions) for each in asked.dirs] == [("/a", (1,))]


def test_cancel_takes_back_what_is_active(plan: str) -> None:
    at = ("reassign-partitions", "--cancel", "--reassignment-json-file", plan)
    result, server = run({LIST: ongoing(1), ALTER: altered(), **CLEARED}, *at)
    assert result.output == (
        "Successfully cancelled partition reassignment for: t-1\n"
        "None of the specified partition moves are active." + CLEARING
    )
    (asked,) = [each for each in server.requests if isinstance(each, ALTER)]
    assert [each.replicas for each in asked.topics[0].partitions] == [None]
    result, _ = run({LIST: ongoing(), **CLEARED}, *at, "--preserve-throttles")
    assert result.output == (
        "None of the specified partition reassignments are active.\n"
        "None of the specified partition moves are active.\n"
    )


def test_generate(tmp_path: Path) -> None:
    file = tmp_path / "topics.json"
    file.write_text('{"version": 1, "topics": [{"topic": "t"}]}')
    at = ("reassign-partitions", "--generate", "--topics-to-move-json-file", str(file))
    result, _ = run({}, *at, "--broker-list", "5,6")
    lines = result.output.splitlines()
    assert lines[0] == "Current partition replica assignment"
    assert lines[2:4] == ["", "Proposed partition reassignment configuration"]
    assert [each["replicas"] for each in json.loads(lines[4])["partitions"]] == [[5, 6], [6, 5]]
    result, _ = run({}, *at, "--broker-list", "5,9")
    assert (result.exit_code, result.output) == (1, "Error: Unknown broker id 9\n")


def test_a_replication_factor_plans_by_itself() -> None:
    at = ("reassign-partitions", "--topic", "t", "--replication-factor", "3")
    result, _ = run({}, *at)
    assert result.output.splitlines()[0] == "Current partition replica assignment"
    result, server = run({LIST: ongoing(), ALTER: altered()}, *at, "--execute")
    assert result.output.endswith("Successfully started partition reassignments for t-0,t-1\n")
    asked = server.requests[-1].topics[0].partitions
    assert [each.replicas for each in asked] == [(4, 5, 6), (4, 5, 6)]


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--list", "--verify"),
        ("--execute",),
        ("--generate", "--broker-list", "4"),
        ("--replication-factor", "3"),
        ("--verify", "--replication-factor", "3", "--topic", "t"),
        ("--execute", "--reassignment-json-file", "f", "--topic", "t"),
        ("--execute", "--reassignment-json-file", "f", "--preserve-throttles"),
        ("--execute", "--reassignment-json-file", "f", "--broker-list", "1"),
        ("--verify", "--reassignment-json-file", "f", "--additional"),
        ("--replication-factor", "3", "--topic", "t", "--reassignment-json-file", "f"),
        ("--list", "--reassignment-json-file", "f"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...]) -> None:
    result, server = run({}, "reassign-partitions", *arguments)
    assert result.exit_code == 2
    assert not server.requests


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"version": 1,\n "partitions": [}', ":2: Expecting value"),
        ("[]", ": the value must be an object"),
        ('{"version": 2}', ": Not supported version field value 2"),
        ("{}", ": 'partitions' must be a list"),
        ('{"partitions": [3]}', ": partitions[0] must be an object"),
        ('{"partitions": [{"topic": 3}]}', ": partitions[0].topic must be a string"),
        (
            '{"partitions": [{"topic": "t", "partition": true}]}',
            ": partitions[0].partition must be an integer",
        ),
        ('{"partitions": []}', "Partition reassignment list cannot be empty"),
        ("[" * 100_000, ": the values are nested too deeply"),
        ('{"partitions": [' + "1" * 5_000 + "]}", ": a number has too many digits"),
        (
            '{"partitions": [{"topic": "t", "partition": 0, "replicas": [4, true]}]}',
            ":1: replicas of t-0 must be integers",
        ),
        (
            '{"partitions": [{"topic": "t", "partition": 0, "replicas": []}]}',
            "Partition replica list cannot be empty",
        ),
        (
            '{"partitions": [{"topic": "t", "partition": 0, "replicas": [4, 4]}]}',
            "may not contain duplicate entries: t-0 contains multiple entries for 4",
        ),
        (
            '{"partitions": [{"topic": "t", "partition": 0, "replicas": [4], "log_dirs": []}]}',
            "Size of replicas list [4] is different from size of log dirs list [] for part",
        ),
    ],
)
def test_mistakes_in_a_plan_are_told_and_nothing_is_asked(
    tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "plan.json"
    file.write_text(text)
    result, server = run(
        {}, "reassign-partitions", "--execute", "--reassignment-json-file", str(file)
    )
    assert result.exit_code == 1
    assert message in result.output and result.output.startswith("Error: ")
    assert not server.requests


def test_leader_election() -> None:
    def answer(request: Any) -> Message:
        codes = (0, ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)
        return elect_leaders.ElectLeadersResponse(
            replica_election_results=(
                elect_leaders.ReplicaElectionResult(
                    topic="t",
                    partition_result=tuple(
                        elect_leaders.PartitionResult(
                            partition_id=number, error_code=code, error_message="why"
                        )
                        for number, code in enumerate(codes)
                    ),
                ),
            )
        )

    answers: dict[type[Message], Answer] = {elect_leaders.ElectLeadersRequest: answer}
    at = ("leader-election", "--election-type", "PREFERRED")
    result, server = run(answers, *at, "--all-topic-partitions")
    assert result.exit_code == 1
    assert result.stdout == (
        "Successfully completed leader election (PREFERRED) for partitions t-0\n"
        "Valid replica already elected for partitions t-1\n"
        "Error completing leader election (PREFERRED) for partition: t-2: "
        "org.apache.kafka.common.errors.PreferredLeaderNotAvailableException: why\n"
    )
    assert server.requests[-1].topic_partitions is None
    assert run(answers, *at)[0].exit_code == 2
    assert run(answers, *at, "--topic", "t")[0].exit_code == 2


def test_delete_records(tmp_path: Path) -> None:
    def answer(request: Any) -> Message:
        return topics.DeleteRecordsResponse(
            topics=(
                topics.DeleteRecordsTopicResult(
                    name="t",
                    partitions=(
                        topics.DeleteRecordsPartitionResult(partition_index=0, low_watermark=7),
                        topics.DeleteRecordsPartitionResult(
                            partition_index=1,
                            low_watermark=-1,
                            error_code=ErrorCode.OFFSET_OUT_OF_RANGE,
                        ),
                    ),
                ),
            )
        )

    file = tmp_path / "offsets.json"
    partitions = [{"topic": "t", "partition": each, "offset": 7} for each in (0, 1)]
    file.write_text(json.dumps({"partitions": partitions, "version": 1}))
    result, server = run(
        {topics.DeleteRecordsRequest: answer}, "delete-records", "--offset-json-file", str(file)
    )
    lines = result.output.splitlines()
    assert lines[:3] == [
        "Executing records delete operation",
        "Records delete operation completed:",
        "partition: t-0\tlow_watermark: 7",
    ]
    assert lines[3].startswith(
        "partition: t-1\terror: org.apache.kafka.common.errors.OffsetOutOfRangeException: "
    )
    assert result.exit_code == 1, "a script must notice the partition that failed"
    assert lines[4] == "Error: No records were deleted in 1 of 2 partition(s)."
    assert len(server.requests[-1].topics[0].partitions) == 2


def test_get_offsets() -> None:
    def answer(request: Any) -> Message:
        return list_offsets.ListOffsetsResponse(
            topics=tuple(
                list_offsets.ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=tuple(
                        list_offsets.ListOffsetsPartitionResponse(
                            partition_index=each.partition_index,
                            error_code=0,
                            offset=100 + each.timestamp,
                        )
                        for each in topic.partitions
                    ),
                )
                for topic in request.topics
            )
        )

    answers: dict[type[Message], Answer] = {list_offsets.ListOffsetsRequest: answer}
    assert run(answers, "get-offsets")[0].output == "t:0:99\nt:1:99\n"
    result, _ = run(answers, "get-offsets", "--time", "earliest", "--partitions", "1")
    assert result.output == "t:1:98\n"
    result, _ = run(answers, "get-offsets", "--topic", "absent")
    assert result.exit_code == 1 and "Could not match any topic-partitions" in result.output
    assert run(answers, "get-offsets", "--time", "soon")[0].exit_code == 1
    both = run(answers, "get-offsets", "--topic", "t", "--topic-partitions", "t:0")[0]
    assert both.exit_code == 1


def test_get_offsets_waits_for_a_new_leader_that_does_not_know_the_end_yet() -> None:
    """KIP-207: the partition was left out, and the command succeeded."""
    told = iter([ErrorCode.OFFSET_NOT_AVAILABLE, ErrorCode.NONE])

    def answer(request: Any) -> Message:
        partition = list_offsets.ListOffsetsPartitionResponse(
            partition_index=0, error_code=next(told), offset=7
        )
        topic = list_offsets.ListOffsetsTopicResponse(name="t", partitions=(partition,))
        return list_offsets.ListOffsetsResponse(topics=(topic,))

    result, _ = run({list_offsets.ListOffsetsRequest: answer}, "get-offsets", "--partitions", "0")
    assert result.output == "t:0:7\n"


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("t", [0, 1, 2, 3]),
        ("t:2", [2]),
        ("t:1-3", [1, 2]),
        ("t:-2", [0, 1]),
        ("t:2-", [2, 3]),
        (":3", [3]),
        ("u:3", []),
    ],
)
def test_rules_of_topic_partitions(text: str, numbers: list[int]) -> None:
    assert [each for each in range(4) if rule(text)(("t", each))] == numbers


def test_log_dirs() -> None:
    directory = log_dirs.DescribeLogDirsResult(
        log_dir="/data",
        topics=(
            log_dirs.DescribeLogDirsTopic(
                name="t",
                partitions=(
                    log_dirs.DescribeLogDirsPartition(
                        partition_index=0, partition_size=9, offset_lag=0, is_future_key=False
                    ),
                ),
            ),
        ),
    )
    answers: dict[type[Message], Answer] = {
        log_dirs.DescribeLogDirsRequest: lambda _: log_dirs.DescribeLogDirsResponse(
            results=(directory,)
        )
    }
    result, _ = run(answers, "log-dirs", "--describe", "--broker-list", "5")
    assert result.output == (
        "Querying brokers for log directories information\n"
        "Received log directory information from brokers 5\n"
        '{"brokers":[{"broker":5,"logDirs":[{"partitions":[{"partition":"t-0","size":9,'
        '"offsetLag":0,"isFuture":false}],"error":null,"logDir":"/data"}]}],"version":1}\n'
    )
    result, _ = run(answers, "log-dirs", "--describe", "--broker-list", "9")
    assert result.exit_code == 1 and "Current existent brokers: 4,5,6" in result.output


def test_unregister() -> None:
    def answer(request: Any) -> Message:
        return unregister_broker.UnregisterBrokerResponse(
            error_code=0 if request.broker_id == 6 else ErrorCode.BROKER_ID_NOT_REGISTERED,
            error_message="not there",
        )

    answers: dict[type[Message], Answer] = {unregister_broker.UnregisterBrokerRequest: answer}
    for broker_id, code in (("6", 0), ("9", 1)):
        with fake_kafka(answers) as server:
            command = ("cluster", "unregister", "--force", "--id", broker_id)
            result = CliRunner().invoke(main, [*command, "--bootstrap-server", server.address])
        assert result.exit_code == code
        expected = "Broker 6 is no longer registered.\n" if code == 0 else "not there"
        assert expected in result.output
