"""Kafka's tools that move, elect, delete and describe partitions, and ours beside them."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from quorate.cli.reassign.command import RUN_VERIFY
from tests.clients import librdkafka
from tests.clients.cluster import ProcessCluster, quorate, wait_for
from tests.kafka.tools import Ended, ended, kafka

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

Placed = dict[int, Sequence[int]]


def server(cluster: ProcessCluster) -> tuple[str, str]:
    return "--bootstrap-server", cluster.bootstrap


def ours(name: str, *arguments: str) -> Ended:
    return ended(quorate(name, *arguments))


def create(cluster: ProcessCluster, topic: str, assignment: str) -> None:
    made = ours(
        "topics", *server(cluster), "--create", "--topic", topic,
        *("--replica-assignment", assignment),
    )  # fmt: skip
    assert made.code == 0, made.lines


def fill(cluster: ProcessCluster, topic: str, count: int) -> None:
    text = "".join(f"{number}\n" for number in range(count))
    sent = quorate("console-producer", *server(cluster), "--topic", topic)
    assert ended(sent, text).code == 0


def plan_file(directory: Path, topic: str, placed: Placed) -> str:
    file = directory / f"{topic}.json"
    partitions = [
        {"topic": topic, "partition": number, "replicas": list(replicas)}
        for number, replicas in placed.items()
    ]
    file.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return str(file)


def holders(cluster: ProcessCluster, topic: str, partition: int) -> list[int]:
    """Return the ids of the brokers that have a directory of the partition."""
    found = cluster.directory.root.glob(f"nodes/*/data/{topic}-{partition}")
    return sorted(int(each.parts[-3]) for each in found)


def same(name: str, *arguments: str) -> list[str]:
    theirs, mine = kafka(name, *arguments), ours(name, *arguments)
    assert mine.lines == theirs.lines, theirs.errors
    assert mine.code == theirs.code
    return mine.lines


@pytest.mark.parametrize("tool", [kafka, ours])
def test_a_reassignment(cluster: ProcessCluster, tmp_path: Path, tool: Any) -> None:
    """The leader 4 leaves; 6 joins; nothing is lost, and the directory of 4 goes."""
    topic = f"moved-by-{tool.__name__}"
    create(cluster, topic, "4:5,5:4")
    fill(cluster, topic, 500)
    at = ("reassign-partitions", *server(cluster))
    plan = ("--reassignment-json-file", plan_file(tmp_path, topic, {0: (6, 5), 1: (6, 4)}))
    started = tool(*at, "--execute", *plan)
    assert started.code == 0, started.errors
    assert started.lines == [
        "Current partition replica assignment",
        "",
        (
            '{"version":1,"partitions":['
            f'{{"topic":"{topic}","partition":0,"replicas":[4,5],"log_dirs":["any","any"]}},'
            f'{{"topic":"{topic}","partition":1,"replicas":[5,4],"log_dirs":["any","any"]}}]}}'
        ),
        "",
        "Save this to use as the --reassignment-json-file option during rollback",
        f"Successfully started partition reassignments for {topic}-0,{topic}-1",
    ]
    ids = range(2)
    completed = [f"Reassignment of partition {topic}-{number} is completed." for number in ids]
    wait_for(lambda: ours(*at, "--verify", *plan).lines[1:3] == completed, "it is complete")
    verified = same(*at, "--verify", *plan)
    assert verified[3:] == [
        "",
        "Clearing broker-level throttles on brokers 4,5,6",
        f"Clearing topic-level throttles on topic {topic}",
    ]
    assert same(*at, "--list") == ["No partition reassignments found."]
    assert same(*at, "--cancel", *plan)[0].startswith("None of the specified partition reass")
    wait_for(lambda: holders(cluster, topic, 0) == [5, 6], "the directory of 4 is gone")
    assert holders(cluster, topic, 1) == [4, 6]
    read = ours(
        "console-consumer", *server(cluster), "--topic", topic, "--from-beginning",
        *("--max-messages", "500"),
    )  # fmt: skip
    assert sorted(map(int, read.lines)) == list(range(500))


def throttles(cluster: ProcessCluster, topic: str) -> dict[str, dict[str, str]]:
    """Return the throttle configs that are set, of the topic and of each broker."""
    found = {}
    for kind, name in (("topics", topic), ("brokers", "4"), ("brokers", "5"), ("brokers", "6")):
        shown = ours(
            "configs", *server(cluster), "--describe",
            *("--entity-type", kind, "--entity-name", name, "--format", "json"),
        )  # fmt: skip
        assert shown.code == 0, shown.errors
        found[name] = {
            key: value
            for key, value in json.loads("\n".join(shown.lines))[name].items()
            if "throttled" in key
        }
    return found


@pytest.mark.parametrize("tool", [kafka, ours])
def test_a_throttled_reassignment(cluster: ProcessCluster, tmp_path: Path, tool: Any) -> None:
    """The tools set the same configs, which hold the copy back until the limit is raised."""
    topic = f"throttled-by-{tool.__name__}"
    create(cluster, topic, "4:5")
    producer = librdkafka.producer(cluster.bootstrap)
    for _ in range(400):
        producer.produce(topic, bytes(50_000))
        producer.poll(0)
    assert producer.flush(60) == 0
    at = ("reassign-partitions", *server(cluster))
    plan = ("--reassignment-json-file", plan_file(tmp_path, topic, {0: (4, 6)}))
    started = tool(*at, "--execute", *plan, "--throttle", "1000")
    assert started.code == 0, started.lines
    assert started.lines[-3:] == [
        RUN_VERIFY,
        "The inter-broker throttle limit was set to 1000 B/s",
        f"Successfully started partition reassignment for {topic}-0",
    ]
    rates = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
    limited = dict.fromkeys(rates, "1000")
    lists = {
        "leader.replication.throttled.replicas": "0:4,0:5",
        "follower.replication.throttled.replicas": "0:6",
    }
    assert throttles(cluster, topic) == {topic: lists, "4": limited, "5": limited, "6": limited}
    of_broker = ("--describe", "--entity-type", "brokers", "--entity-name", "4")
    assert any(rates[0] in line for line in same("configs", *server(cluster), *of_broker))
    time.sleep(3)
    verified = same(*at, "--verify", *plan)
    assert verified[1] == f"Reassignment of partition {topic}-0 is still in progress."
    assert len(throttles(cluster, topic)[topic]) == 2, "they stay while it is in progress"
    again = tool(*at, "--execute", *plan, "--throttle", "100000000")
    assert again.code == 1, "a reassignment is in progress"
    again = tool(*at, "--execute", "--additional", *plan, "--throttle", "100000000")
    assert again.code == 0, again.lines
    raised = dict.fromkeys(rates, "100000000")
    assert throttles(cluster, topic) == {topic: lists, "4": raised, "5": raised, "6": raised}
    completed = f"Reassignment of partition {topic}-0 is completed."
    kept = ("--verify", *plan, "--preserve-throttles")
    wait_for(lambda: tool(*at, *kept).lines[1] == completed, "it is complete")
    assert len(throttles(cluster, topic)[topic]) == 2, "they are preserved"
    assert tool(*at, "--verify", *plan).lines[-2:] == [
        "Clearing broker-level throttles on brokers 4,5,6",
        f"Clearing topic-level throttles on topic {topic}",
    ]
    assert throttles(cluster, topic) == {topic: {}, "4": {}, "5": {}, "6": {}}
    assert holders(cluster, topic, 0) == [4, 6] or holders(cluster, topic, 0) == [4, 5, 6]


def test_a_plan_from_kafkas_tool_is_ours(cluster: ProcessCluster, tmp_path: Path) -> None:
    create(cluster, "planned", "4:5,5:6")
    file = tmp_path / "topics.json"
    file.write_text('{"version": 1, "topics": [{"topic": "planned"}]}')
    at = ("--generate", "--topics-to-move-json-file", str(file), "--broker-list", "4,5,6")
    theirs = kafka("reassign-partitions", *server(cluster), *at)
    mine = ours("reassign-partitions", *server(cluster), *at)
    assert mine.lines[:4] == theirs.lines[:4], "what is, and the headings"
    assert len(mine.lines) == len(theirs.lines) == 5
    shapes = [
        [sorted(each) for each in json.loads(lines[4])["partitions"]]
        for lines in (theirs.lines, mine.lines)
    ]
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("placed", [{0: (4, 9)}, {7: (4,)}])
def test_what_reassign_partitions_refuses(
    cluster: ProcessCluster, tmp_path: Path, placed: Placed
) -> None:
    ours("topics", *server(cluster), "--create", "--if-not-exists", "--topic", "refused")
    at = ("reassign-partitions", *server(cluster), "--execute")
    plan = ("--reassignment-json-file", plan_file(tmp_path, "refused", placed))
    theirs, mine = kafka(*at, *plan), ours(*at, *plan)
    assert theirs.code == mine.code == 1
    assert any(line.startswith("Error") for line in mine.lines)


def test_leader_election(cluster: ProcessCluster) -> None:
    create(cluster, "elected", "4:5:6")
    one = ("--topic", "elected", "--partition", "0")
    at = ("leader-election", *server(cluster), "--election-type", "preferred")
    assert same(*at, *one) == ["Valid replica already elected for partitions elected-0"]
    lines = same(*at, "--topic", "absent", "--partition", "0")
    assert lines == [
        (
            "Error completing leader election (PREFERRED) for partition: absent-0: org.apache."
            "kafka.common.errors.UnknownTopicOrPartitionException: No such topic as absent"
        )
    ]
    same("leader-election", *server(cluster), "--election-type", "unclean", *one)


def test_delete_records_and_offsets(cluster: ProcessCluster, tmp_path: Path) -> None:
    create(cluster, "shortened", "4:5:6")
    fill(cluster, "shortened", 50)
    file = tmp_path / "offsets.json"
    for offset in (10, -1):
        entry = {"topic": "shortened", "partition": 0, "offset": offset}
        file.write_text(json.dumps({"partitions": [entry], "version": 1}))
        at = ("delete-records", *server(cluster), "--offset-json-file", str(file))
        lines = same(*at)
        assert lines == [
            "Executing records delete operation",
            "Records delete operation completed:",
            f"partition: shortened-0\tlow_watermark: {10 if offset == 10 else 50}",
        ]
        at = ("get-offsets", *server(cluster), "--topic-partitions", "short.*:0-1")
        low = 10 if offset == 10 else 50
        assert same(*at, "--time", "earliest") == [f"shortened:0:{low}"]
    offsets = ("get-offsets", *server(cluster), "--topic", "shortened")
    assert same(*offsets) == ["shortened:0:50"]


def test_what_brokers_serve_and_have(cluster: ProcessCluster) -> None:
    at = server(cluster)
    theirs, mine = kafka("broker-api-versions", *at), ours("broker-api-versions", *at)
    assert sorted(mine.lines) == sorted(theirs.lines), "brokers in another order"
    create(cluster, "sized", "4:5:6,5:6:4")
    theirs, mine = kafka("log-dirs", *at, "--describe"), ours("log-dirs", *at, "--describe")
    assert mine.lines[:2] == theirs.lines[:2]
    assert by_broker(mine.lines[2], "sized") == by_broker(theirs.lines[2], "sized")


def by_broker(line: str, topic: str) -> dict[int, list[str]]:
    return {
        each["broker"]: sorted(
            json.dumps(partition, sort_keys=True)
            for directory in each["logDirs"]
            for partition in directory["partitions"]
            if partition["partition"].startswith(topic)
        )
        for each in json.loads(line)["brokers"]
    }


def test_features_and_unregistering(cluster: ProcessCluster) -> None:
    theirs = kafka("features", *server(cluster), "describe").lines
    mine = ours("features", "describe", *server(cluster)).lines
    assert [line.rpartition("\t")[0] for line in mine] == [
        line.rpartition("\t")[0] for line in theirs
    ]
    done = kafka("cluster", "unregister", *server(cluster), "--id", "99")
    assert "Broker ID 99 is not currently registered" in done.errors + "\n".join(done.lines)
    refused = ours("cluster", "unregister", *server(cluster), "--id", "99")
    assert refused.code == 1 and "not currently registered" in refused.errors
