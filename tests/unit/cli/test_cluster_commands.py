"""`quorate metadata-quorum`, `cluster`, `configs` and `status` with scripted answers."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from quorate.cli.main import main
from quorate.cli.status import cluster_status
from quorate.quorum.ids import ZERO_UUID, uuid_from_text
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import cluster, configs, metadata
from quorate.quorum.protocol.schemas.reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from tests.unit.cli.fake_kafka import Answer, fake_kafka
from tests.unit.cli.test_topics import DESCRIBE, described_configs, metadata_answer

DIRECTORY = "MvDxzVmcRsaTz33bUuRU6A"


def replica(node_id: int, end: int, caught_up_ms: int = 900) -> cluster.QuorumReplicaState:
    """Return the state of one replica in DescribeQuorum."""
    return cluster.QuorumReplicaState(
        replica_id=node_id,
        replica_directory_id=uuid_from_text(DIRECTORY) if node_id < 4 else ZERO_UUID,
        log_end_offset=end,
        last_fetch_timestamp=1000,
        last_caught_up_timestamp=caught_up_ms,
    )


def quorum(_: Any) -> cluster.DescribeQuorumResponse:
    """Answer DescribeQuorum: leader 2, voters 1 and 2, observer 4."""
    state = cluster.QuorumPartitionState(
        partition_index=0,
        leader_id=2,
        leader_epoch=7,
        high_watermark=99,
        current_voters=(replica(1, 90, 700), replica(2, 100)),
        observers=(replica(4, 100),),
    )
    listener = cluster.QuorumListener(name="CONTROLLER", host="h", port=9093)
    return cluster.DescribeQuorumResponse(
        topics=(cluster.QuorumTopicState(topic_name="__cluster_metadata", partitions=(state,)),),
        nodes=(cluster.QuorumNode(node_id=2, listeners=(listener,)),),
    )


def described_cluster(_: Any) -> cluster.DescribeClusterResponse:
    """Answer DescribeCluster: brokers 4 and 5, of which 5 is fenced."""
    return cluster.DescribeClusterResponse(
        cluster_id="C",
        brokers=tuple(
            cluster.DescribeClusterBroker(
                broker_id=n, host="127.0.0.1", port=9092, is_fenced=n == 5
            )
            for n in (4, 5)
        ),
    )


CLUSTER: dict[Any, Answer] = {
    cluster.DescribeQuorumRequest: quorum,
    cluster.DescribeClusterRequest: described_cluster,
}


def run(answers: dict[Any, Answer], command: str, *arguments: str) -> tuple[Result, list[Any]]:
    """Run a command against a fake server, and return the result and the requests."""
    with fake_kafka(answers) as server:
        given = [command, "--bootstrap-server", server.address, "--timeout", "2", *arguments]
        return CliRunner().invoke(main, given), server.requests


def test_quorum_status_prints_kafkas_lines() -> None:
    result, _ = run(CLUSTER, "metadata-quorum", "describe", "--status")
    assert result.output == (
        "ClusterId:              C\n"
        "LeaderId:               2\n"
        "LeaderEpoch:            7\n"
        "HighWatermark:          99\n"
        "MaxFollowerLag:         10\n"
        "MaxFollowerLagTimeMs:   200\n"
        f'CurrentVoters:          [{{"id": 1, "directoryId": "{DIRECTORY}"}}, '
        f'{{"id": 2, "directoryId": "{DIRECTORY}", "endpoints": ["CONTROLLER://h:9093"]}}]\n'
        'CurrentObservers:       [{"id": 4}]\n'
    )


def test_quorum_status_as_json() -> None:
    result, _ = run(CLUSTER, "metadata-quorum", "describe", "--status", "--format", "json")
    shown = json.loads(result.output)
    assert shown["LeaderEpoch"] == 7
    assert shown["CurrentObservers"] == [{"id": 4}]


def test_quorum_replication_prints_kafkas_table() -> None:
    result, _ = run(CLUSTER, "metadata-quorum", "describe", "--replication")
    head, leader, follower, observer = result.output.splitlines()
    assert head.split("\t")[0] == "NodeId"
    assert [cell.strip() for cell in leader.split("\t")] == (
        ["2", DIRECTORY, "100", "0", "1000", "900", "Leader", ""]
    )
    assert follower.split("\t")[3].strip() == "10"
    assert observer.split("\t")[1].strip() == "A" * 22


def test_a_quorum_without_leader_is_an_error() -> None:
    def leaderless(_: Any) -> cluster.DescribeQuorumResponse:
        return cluster.DescribeQuorumResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR, topics=())

    result, _ = run(
        {cluster.DescribeQuorumRequest: leaderless}, "metadata-quorum", "describe", "--status"
    )
    assert result.exit_code == 1


def test_cluster_id() -> None:
    with fake_kafka(CLUSTER) as server:
        given = ["cluster", "cluster-id", "--bootstrap-server", server.address]
        assert CliRunner().invoke(main, given).output == "Cluster ID: C\n"
        given = ["cluster", "cluster-id", "--bootstrap-controller", server.address]
        assert CliRunner().invoke(main, given).output == "Cluster ID: C\n"
        assert [request.endpoint_type for request in server.requests] == [1, 2]


def dynamic_config(request: Any) -> configs.DescribeConfigsResponse:
    """Answer DescribeConfigs with one dynamic config."""
    entry = configs.DescribeConfigsResourceResult(
        name="retention.ms",
        value="5",
        read_only=False,
        config_source=1,
        is_sensitive=False,
        synonyms=(
            configs.DescribeConfigsSynonym(name="retention.ms", value="5", source=1),
            configs.DescribeConfigsSynonym(name="log.retention.ms", value=None, source=5),
        ),
    )
    result = configs.DescribeConfigsResult(resource_type=2, resource_name="t", configs=(entry,))
    return configs.DescribeConfigsResponse(results=(result,))


def altered(request: Any) -> configs.IncrementalAlterConfigsResponse:
    """Answer IncrementalAlterConfigs, which refuses a config named "bad"."""
    (resource,) = request.resources
    bad = any(each.name == "bad" for each in resource.configs)
    response = configs.IncrementalAlterConfigsResourceResponse(
        error_code=ErrorCode.INVALID_CONFIG if bad else ErrorCode.NONE,
        error_message="bad: no" if bad else None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
    return configs.IncrementalAlterConfigsResponse(responses=(response,))


CONFIGS: dict[Any, Answer] = {
    configs.DescribeConfigsRequest: dynamic_config,
    configs.IncrementalAlterConfigsRequest: altered,
}


def test_configs_of_a_topic() -> None:
    result, _ = run(CONFIGS, "configs", "--describe", "--topic", "t")
    assert result.output == (
        "Dynamic configs for topic t are:\n"
        "  retention.ms=5 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=5, "
        "DEFAULT_CONFIG:log.retention.ms=null}\n"
    )


def test_configs_are_set_and_deleted_in_one_request() -> None:
    result, requests = run(
        CONFIGS,
        *("configs", "--alter", "--entity-type", "topics", "--entity-name", "t"),
        *("--add-config", "cleanup.policy=[compact,delete],a=b", "--delete-config", "retention.ms"),
    )
    assert result.output == "Completed updating config for topic t.\n"
    sent = [
        (each.name, each.config_operation, each.value) for each in requests[-1].resources[0].configs
    ]
    assert sent == [
        ("cleanup.policy", 0, "compact,delete"),
        ("a", 0, "b"),
        ("retention.ms", 1, None),
    ]


def test_a_config_that_is_not_set_cannot_be_deleted() -> None:
    result, requests = run(CONFIGS, "configs", "--alter", "--topic", "t", "--delete-config", "x")
    assert result.exit_code == 1
    assert "Invalid config(s): x" in result.output
    assert not any(isinstance(each, configs.IncrementalAlterConfigsRequest) for each in requests)


def test_a_refused_config() -> None:
    result, _ = run(CONFIGS, "configs", "--alter", "--topic", "t", "--add-config", "bad=1")
    assert result.exit_code == 1
    assert result.output == "Error: INVALID_CONFIG: bad: no\n"


def test_an_error_names_the_changes_that_it_has_prevented() -> None:
    """A change of one resource is made as a whole."""
    add = ("--add-config", "bad=1,a=2,b=3")
    result, _ = run(CONFIGS, "configs", "--alter", "--topic", "t", *add)
    assert result.output == (
        "Error: INVALID_CONFIG: bad: no. Because of it, these were not changed either: a, b\n"
    )
    delete = ("--delete-config", "x,retention.ms")
    result, requests = run(CONFIGS, "configs", "--alter", "--topic", "t", *delete)
    assert result.exit_code == 1
    assert "Invalid config(s): x, which is not set. The other changes were made." in result.output
    assert [each.name for each in requests[-1].resources[0].configs] == ["retention.ms"]


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("groups", "only groups of the classic protocol exist here"),
        ("client-metrics", "brokers take no metrics from clients"),
        ("broker-loggers", "log.level in the file of a node"),
    ],
)
def test_entities_without_configs_are_refused_with_a_sentence(kind: str, sentence: str) -> None:
    for action in (("--describe",), ("--alter", "--add-config", "a=1")):
        entity = ("--entity-type", kind, "--entity-name", "g")
        result, requests = run(CONFIGS, "configs", *action, *entity)
        assert result.exit_code == 1
        assert sentence in result.output
        assert not requests


LOST = "the metadata quorum is lost, as node 4 sees it: it reaches 1 of 3 voters"


@pytest.mark.parametrize(
    ("arguments", "undone"),
    [
        (("topics", "--create", "--topic", "new"), "topic 'new' was not created"),
        (("topics", "--delete", "--topic", "t"), "topic 't' was not deleted"),
        (("topics", "--alter", "--topic", "t", "--partitions", "9"), "topic 't' was not changed"),
        (
            ("configs", "--alter", "--topic", "t", "--add-config", "a=1"),
            "topic t was not changed",
        ),
        (
            ("configs", "--alter", "--client", "c", "--add-config", "producer_byte_rate=1"),
            "the quotas were not changed",
        ),
        (
            ("leader-election", "--election-type", "preferred", "--all-topic-partitions"),
            "no leader was elected",
        ),
        (
            ("acls", "--add", "--allow-principal", "User:a", "--topic", "t"),
            "no ACL was changed",
        ),
    ],
)
def test_without_a_controller_a_change_is_refused_and_nothing_is_sent(
    arguments: tuple[str, ...], undone: str
) -> None:
    answers = {**DESCRIBE, **CLUSTER, **CONFIGS}
    answers[metadata.MetadataRequest] = lambda _: metadata_answer("t")
    answers[cluster.DescribeQuorumRequest] = lambda _: cluster.DescribeQuorumResponse(
        error_code=ErrorCode.NOT_CONTROLLER, error_message=LOST, topics=()
    )
    result, requests = run(answers, *arguments)
    assert result.exit_code == 1, result.output
    said = f": {undone}, because there is no active controller: {LOST}. Nothing was sent. Start a "
    assert said in result.output
    names = {type(each).__name__ for each in requests}
    reads = {"DescribeQuorumRequest", "MetadataRequest", "DescribeTopicPartitionsRequest"}
    assert names <= {*reads, "DescribeClusterRequest", "DescribeConfigsRequest"}


def test_the_default_of_all_brokers() -> None:
    result, requests = run(
        CONFIGS, "configs", "--alter", "--broker-defaults", "--add-config", "a=1"
    )
    assert result.output == "Completed updating default config for brokers in the cluster.\n"
    assert (requests[-1].resources[0].resource_type, requests[-1].resources[0].resource_name) == (
        4,
        "",
    )


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--describe",),
        ("--describe", "--alter", "--topic", "t"),
        ("--alter", "--entity-type", "topics", "--add-config", "a=b"),
        ("--alter", "--topic", "t"),
        ("--alter", "--topic", "t", "--add-config", "nonsense"),
        ("--describe", "--entity-type", "brokers", "--entity-name", "x"),
    ],
)
def test_wrong_usage_of_configs(arguments: tuple[str, ...]) -> None:
    assert run(CONFIGS, "configs", *arguments)[0].exit_code == 2


def test_status_shows_what_is_wrong_and_why() -> None:
    answers = {**DESCRIBE, **CLUSTER, configs.DescribeConfigsRequest: described_configs}
    answers[metadata.MetadataRequest] = lambda _: metadata_answer("t")
    result, _ = run(answers, "status")
    assert result.exit_code == 1
    assert "Quorum: leader 2, epoch 7, high watermark 99; 2 of 2 voters" in result.output
    assert "Broker 5: fenced, 127.0.0.1:9092; cause unknown" in result.output
    assert "1 offline, 1 under min ISR, 0 under-replicated" in result.output
    why_not = "t-0 under-min-isr: leader 4, isr [4] of [4, 5]: broker 5 is down; cause unknown"
    assert why_not in result.output


@pytest.mark.parametrize("error", [ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT, None])
def test_status_does_not_wait_for_controllers_that_are_paused(
    error: ErrorCode | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their links stay open, so that the broker reports an error or, if it is None, nothing."""
    monkeypatch.setattr(cluster_status, "QUORUM_WAIT_S", 0.2)
    answers = {**DESCRIBE, **CLUSTER, configs.DescribeConfigsRequest: described_configs}
    answers[metadata.MetadataRequest] = lambda _: metadata_answer("t")

    def without_controller(_: object) -> cluster.DescribeQuorumResponse:
        if error is None:
            time.sleep(0.5)
        return cluster.DescribeQuorumResponse(error_code=error or 0, topics=())

    answers[cluster.DescribeQuorumRequest] = without_controller
    result, requests = run(answers, "status")
    assert result.exit_code == 1
    assert "Quorum: LOST: no active controller has answered for 0.2 s. The state" in result.output
    assert "1 offline, 1 under min ISR, 0 under-replicated" in result.output
    assert not any(isinstance(each, ListPartitionReassignmentsRequest) for each in requests)


def test_status_reports_a_lost_quorum_immediately() -> None:
    reason = "the metadata quorum is lost, as node 4 sees it: it reaches 1 of 3 voters"
    answers = {**DESCRIBE, **CLUSTER, configs.DescribeConfigsRequest: described_configs}
    answers[metadata.MetadataRequest] = lambda _: metadata_answer("t")
    answers[cluster.DescribeQuorumRequest] = lambda _: cluster.DescribeQuorumResponse(
        error_code=ErrorCode.NOT_CONTROLLER, error_message=reason, topics=()
    )
    answers[ListPartitionReassignmentsRequest] = lambda _: ListPartitionReassignmentsResponse(
        error_code=ErrorCode.REQUEST_TIMED_OUT, error_message="the controller was not asked"
    )
    result, requests = run(answers, "status")
    assert result.exit_code == 1
    assert f"Quorum: LOST: {reason}. The state below is the last" in result.output
    assert "Broker 5: fenced" in result.output
    asked = [each for each in requests if isinstance(each, cluster.DescribeQuorumRequest)]
    assert len(asked) == 1, "it does not wait for another answer"


def test_the_error_of_one_broker_names_its_address_once() -> None:
    """The broker of the metadata does not listen any more."""
    with socket.create_server(("127.0.0.1", 0)) as dead:
        port = dead.getsockname()[1]
    gone = metadata.MetadataResponseBroker(node_id=4, host="127.0.0.1", port=port)
    answer = metadata.MetadataResponse(brokers=(gone,), topics=())
    result, _ = run({metadata.MetadataRequest: lambda _: answer}, "broker-api-versions")
    assert result.output == (
        f"127.0.0.1:{port} (id: 4 rack: null isFenced: false) -> ERROR: connection refused\n"
    )
    result, _ = run(
        {metadata.MetadataRequest: lambda _: answer}, "broker-api-versions", "--format", "json"
    )
    assert json.loads(result.output) == {"broker": 4, "error": "connection refused"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["cluster", "cluster-id", "--bootstrap-controller", "h"],
            "--bootstrap-controller: value 'h' must be host:port",
        ),
        (
            ["cluster", "cluster-id", "--command-config", "bad.properties"],
            "bootstrap.servers: value 'h' must be host:port",
        ),
        (
            ["status", "-b", "h:1", "--dir", "d"],
            "only one of --bootstrap-server and --dir can be given",
        ),
        (["status", "-b", "h:1", "--interval", "5"], "--interval needs --watch"),
        (["cluster", "unregister", "-b", "h:1", "--id", "99999999999"], "value for '--id'"),
        (["cluster", "decommission", "-b", "h:1", "99999999999"], "Invalid value for 'ID'"),
        (
            ["metadata-quorum", "-b", "h:1", "remove-controller", "-i", "99999999999", "-d", "x"],
            "'--controller-id' / '-i': 99999999999 is not in the range",
        ),
        (
            [
                *("leader-election", "-b", "h:1", "--election-type", "preferred"),
                *("--topic", "t", "--partition", "99999999999"),
            ],
            "value for '--partition'",
        ),
        (
            [
                *("leader-election", "--election-type", "preferred", "--all-topic-partitions"),
                *("--command-config", "bad.properties", "--admin.config", "bad.properties"),
            ],
            "only one of --command-config and --admin.config can be given",
        ),
    ],
)
def test_wrong_usage_names_the_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.properties").write_text("bootstrap.servers=h\n")
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert message in result.output


def test_the_directory_of_a_new_voter_that_cannot_be_read(tmp_path: Path) -> None:
    file = tmp_path / "c.properties"
    file.write_text(
        f"process.roles=controller\nnode.id=9\nlog.dirs={file}\n"
        "controller.quorum.bootstrap.servers=h:1\ncontroller.listener.names=CONTROLLER\n"
        "listeners=CONTROLLER://h:1\n"
    )
    command = ["metadata-quorum", "--command-config", str(file), "add-controller", "--dry-run"]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 1
    assert result.output == f"Error: {file}/meta.properties: Not a directory\n"


def test_a_client_file_is_bounded() -> None:
    """A device or a segment that is given by mistake would fill the memory."""
    arguments = ["cluster", "cluster-id", "-b", "h:1", "--command-config", "/dev/zero"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 1
    assert result.output.startswith("Error: /dev/zero: has more than 4194304 bytes")
