"""Apache Kafka's own tools against a Quorate cluster, and ours beside them: the same lines.

So each test holds two things: that Kafka's tool works here unchanged, and that a script which greps
its output may call ours instead."""

from __future__ import annotations

import re

import pytest

from tests.clients.cluster import ProcessCluster, quorate
from tests.kafka.tools import Ended, ended, kafka

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]


def both(name: str, *arguments: str) -> tuple[Ended, Ended]:
    """(Kafka's, ours)."""
    return kafka(name, *arguments), ended(quorate(name, *arguments))


def assert_same(name: str, *arguments: str) -> list[str]:
    theirs, ours = both(name, *arguments)
    assert ours.lines == theirs.lines, theirs.errors
    assert ours.code == theirs.code == 0
    return ours.lines


def assert_same_topics(*arguments: str) -> list[str]:
    """As `assert_same`, sorted: Kafka's tool prints topics in the order of their hashes."""
    theirs, ours = both("topics", *arguments, "--exclude-internal")
    assert sorted(ours.lines) == sorted(theirs.lines), theirs.errors
    assert ours.code == theirs.code == 0
    return ours.lines


def server(cluster: ProcessCluster) -> tuple[str, str]:
    return "--bootstrap-server", cluster.bootstrap


def numbers_masked(lines: list[str]) -> list[str]:
    """Offsets and times move between two calls, and with them the width of a column."""
    return [re.sub(r"\d+ +\t|\d+", "N", line) for line in lines]


def test_topics_from_creation_to_deletion(cluster: ProcessCluster) -> None:
    at = server(cluster)
    made = kafka("topics", *at, "--create", "--topic", "orders", "--partitions", "3")
    assert made.lines == ["Created topic orders."], made.errors
    made = kafka(
        "topics", *at, "--create", "--topic", "kept", "--replica-assignment", "4:5:6,5:6:4",
        *("--config", "retention.ms=3600000"),
    )  # fmt: skip
    assert made.code == 0
    assert_same("topics", *at, "--list")
    described = assert_same_topics(*at, "--describe", "--topic", "kept|orders")
    assert described[0].startswith("Topic: kept\tTopicId: ")
    assert "Configs: min.insync.replicas=2,retention.ms=3600000" in described[0]
    assert len(described) == 7
    assert_same_topics(*at, "--describe")
    assert_same_topics(*at, "--describe", "--topic", "ord.*")
    assert_same_topics(*at, "--describe", "--under-replicated-partitions")
    assert_same_topics(*at, "--describe", "--at-min-isr-partitions")
    assert_same_topics(*at, "--describe", "--topics-with-overrides")
    assert kafka("topics", *at, "--alter", "--topic", "orders", "--partitions", "5").code == 0
    assert len(assert_same_topics(*at, "--describe", "--topic", "orders")) == 6
    assert kafka("topics", *at, "--delete", "--topic", "kept|orders").code == 0
    assert_same_topics(*at, "--describe")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--create", "--topic", "taken"),
        ("--create", "--topic", "bad name"),
        ("--create", "--topic", "many", "--replication-factor", "9"),
        ("--create", "--topic", "none", "--partitions", "0"),
        ("--create", "--topic", "odd", "--config", "retention.ms=soon"),
        ("--alter", "--topic", "taken", "--partitions", "1"),
        ("--describe", "--topic", "absent"),
        ("--delete", "--topic", "absent"),
    ],
)
def test_what_is_refused(cluster: ProcessCluster, arguments: tuple[str, ...]) -> None:
    """The words may be the server's or, for a config, the tool's own; the verdict is the same."""
    at = server(cluster)
    kafka("topics", *at, "--create", "--if-not-exists", "--topic", "taken", "--partitions", "2")
    theirs, ours = both("topics", *at, *arguments)
    assert theirs.code == ours.code == 1
    assert theirs.lines[0].startswith("Error while executing topic command : ")
    if "--config" not in arguments:
        assert ours.lines == theirs.lines[:1]


@pytest.mark.parametrize("by", ["server", "controller"])
def test_the_quorum(cluster: ProcessCluster, by: str) -> None:
    at = (
        server(cluster)
        if by == "server"
        else ("--bootstrap-controller", cluster.bootstrap_controllers)
    )
    theirs, ours = both("metadata-quorum", *at, "describe", "--status")
    assert theirs.code == ours.code == 0, theirs.errors
    assert numbers_masked(ours.lines) == numbers_masked(theirs.lines)
    assert ours.lines[0].startswith("ClusterId:              ")
    assert ours.lines[-2:] == theirs.lines[-2:]
    theirs, ours = both("metadata-quorum", *at, "describe", "--replication")
    assert theirs.code == ours.code == 0, theirs.errors
    assert numbers_masked(ours.lines) == numbers_masked(theirs.lines)
    statuses = [line.split("\t")[-2].strip() for line in theirs.lines[1:]]
    assert statuses == ["Leader", "Follower", "Follower", "Observer", "Observer", "Observer"]


def test_the_cluster_id(cluster: ProcessCluster) -> None:
    (line,) = assert_same("cluster", "cluster-id", *server(cluster))
    assert line == f"Cluster ID: {cluster.entry()['cluster_id']}"


def test_configs_of_topics_and_brokers(cluster: ProcessCluster) -> None:
    at = server(cluster)
    kafka("topics", *at, "--create", "--topic", "settings")
    changed = kafka(
        "configs", *at, "--alter", "--topic", "settings",
        *("--add-config", "cleanup.policy=[compact,delete],segment.ms=1000"),
    )  # fmt: skip
    assert changed.lines == ["Completed updating config for topic settings."], changed.errors
    assert len(assert_same("configs", *at, "--describe", "--topic", "settings")) == 3
    assert_same("configs", *at, "--describe", "--all", "--topic", "settings")
    broker = str(cluster.entry()["brokers"][0]["id"])
    changed = kafka(
        "configs", *at, "--alter", "--broker", broker, "--add-config", "log.retention.ms=86400000"
    )
    assert changed.code == 0, changed.errors
    assert_same("configs", *at, "--describe", "--broker", broker)
    assert_same("configs", *at, "--describe", "--entity-type", "brokers")
    assert kafka("configs", *at, "--alter", "--broker", broker, "--delete-config",
                 "log.retention.ms").code == 0  # fmt: skip
    assert_same("configs", *at, "--describe", "--broker", broker)


def test_records_from_one_console_to_the_other(cluster: ProcessCluster) -> None:
    at = server(cluster)
    kafka("topics", *at, "--create", "--topic", "lines", "--partitions", "1")
    sent = "".join(f"k{n}\tv{n}\n" for n in range(100))
    keyed = ("--topic", "lines", "--property", "parse.key=true")
    assert kafka("console-producer", *at, *keyed, stdin=sent).code == 0
    assert ended(quorate("console-producer", *at, *keyed), sent).code == 0
    reading = (
        *("--topic", "lines", "--partition", "0", "--offset", "earliest"),
        *("--max-messages", "200", "--timeout-ms", "20000"),
        *("--property", "print.key=true", "--property", "print.offset=true"),
    )
    read = assert_same("console-consumer", *at, *reading)
    assert read == [f"Offset:{n}\tk{n % 100}\tv{n % 100}" for n in range(200)]


def test_kafka_reads_our_metadata_log(cluster: ProcessCluster) -> None:
    """Byte for byte a log of Kafka's; only the causes, in a tag that it skips, are ours."""
    node = cluster.entry()["controllers"][0]
    segment = f"{node['log_dir']}/__cluster_metadata-0/00000000000000000000.log"
    decoded = ("--cluster-metadata-decoder", "--files", segment)
    ours, theirs = ended(quorate("dump-log", *decoded)), kafka("dump-log", *decoded)
    assert theirs.code == ours.code == 0, theirs.errors
    shown = [re.sub(r',?"cause":"[^"]*"', "", line) for line in ours.lines]
    assert len(shown) > 20
    assert theirs.lines[: len(shown) - 1] == shown[:-1]  # the log grows in between
    assert not any("invalid" in line or "skipping" in line for line in theirs.lines)


@pytest.mark.parametrize("kind", ["controllers", "brokers"])
def test_kafka_reads_our_directories(cluster: ProcessCluster, kind: str) -> None:
    node = (
        cluster.entry()["controllers"] if kind == "controllers" else cluster.entry()["brokers"]
    )[0]
    told = kafka("storage", "info", "-c", str(cluster.directory.node_file(node["id"])))
    assert told.code == 0, told.errors
    cluster_id = cluster.entry()["cluster_id"]
    assert any(
        f"cluster.id={cluster_id}" in line and f"node.id={node['id']}" in line
        for line in told.lines
    )
