"""A node with several log directories (KIP-858), of Quorate and of Apache Kafka."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from quorate.quorum.protocol.schemas.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from quorate.quorum.protocol.schemas.metadata import MetadataRequest, MetadataResponse
from quorate.quorum.protocol.schemas.topics import (
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tests.clients.cluster import wait_for
from tests.golden.nodes import KAFKA, QUORATE
from tests.kafka.one_node import OneNode
from tests.kafka.test_partition_tools import ours
from tests.kafka.tools import Ended, kafka, missing
from tests.unit.controller.harness import creatable

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

NAMES = ("one", "two", "three")
PARTITIONS = 6


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[OneNode, OneNode]]:
    """Yield a node of Quorate and one of Kafka, with a topic in three directories."""
    if reason := missing():
        pytest.skip(reason)
    root = tmp_path_factory.mktemp("directories")
    with ExitStack() as stack:
        made = []
        for program in (QUORATE, KAFKA):
            home = root / program.name
            log_dirs = ",".join(str(home / each) for each in NAMES)
            node = OneNode(home, program, f"log.dirs={log_dirs}")
            made.append(stack.enter_context(node.running()))
            create(made[-1])
        yield made[0], made[1]


def create(node: OneNode) -> None:
    connection = node.connect()
    topic = creatable("t", partitions=PARTITIONS)
    answer = connection.ask(CreateTopicsRequest(topics=(topic,)), 7)
    connection.close()
    assert isinstance(answer, CreateTopicsResponse)
    assert not answer.topics[0].error_code
    wait_for(lambda: all_led(node), f"{node.program.name} leads all partitions", 30)
    wait_for(lambda: made(node) == PARTITIONS, f"{node.program.name} has all logs", 30)


def all_led(node: OneNode) -> bool:
    connection = node.connect()
    answer = connection.ask(MetadataRequest(topics=None), 9)
    connection.close()
    assert isinstance(answer, MetadataResponse)
    partitions = answer.topics[0].partitions if answer.topics else ()
    return len(partitions) == PARTITIONS and not any(
        each.error_code or each.offline_replicas for each in partitions
    )


def made(node: OneNode) -> int:
    """Return the number of logs of "t"."""
    return sum(partitions[0] for _, partitions in described(node).values())


def root_of(node: OneNode) -> Path:
    return node.data.parent


def described(node: OneNode) -> dict[str, tuple[int, list[int]]]:
    """Return the error and the number of partitions of "t" of each directory by its name."""
    connection = node.connect()
    answer = connection.ask(DescribeLogDirsRequest(topics=None), 4)
    connection.close()
    assert isinstance(answer, DescribeLogDirsResponse)
    found = {}
    for each in answer.results:
        assert 0 < each.usable_bytes <= each.total_bytes
        partitions = [p for topic in each.topics if topic.name == "t" for p in topic.partitions]
        assert all(p.offset_lag == p.partition_size == 0 for p in partitions)
        assert not any(p.is_future_key for p in partitions)
        found[Path(each.log_dir).name] = (each.error_code, [len(partitions)])
    return found


def test_partitions_are_spread(nodes: tuple[OneNode, OneNode]) -> None:
    mine, theirs = map(described, nodes)
    assert mine == theirs == {name: (0, [PARTITIONS // 3]) for name in NAMES}


def test_each_directory_has_an_identity(nodes: tuple[OneNode, OneNode]) -> None:
    for node in nodes:
        identities = []
        for name in NAMES:
            text = (root_of(node) / name / "meta.properties").read_text()
            identities.append(dict(re.findall(r"^([a-z.]+)=(.*)$", text, re.MULTILINE)))
        assert len({each.pop("directory.id") for each in identities}) == 3
        assert identities[0] == identities[1] == identities[2]
        assert identities[0].keys() == {"cluster.id", "node.id", "version"}


def test_kafkas_tool_describes_the_directories(nodes: tuple[OneNode, OneNode]) -> None:
    mine, theirs = nodes
    answers = []
    for node, run in ((mine, kafka), (mine, ours), (theirs, kafka)):
        at = ("log-dirs", "--bootstrap-server", f"127.0.0.1:{node.port}", "--describe")
        ended = run(*at, "--topic-list", "t")
        (broker,) = json.loads(ended.lines[-1])["brokers"]
        answers.append(
            {
                Path(each["logDir"]).name: (each["error"], len(each["partitions"]))
                for each in broker["logDirs"]
            }
        )
    assert answers[0] == answers[1] == answers[2]
    assert answers[0].keys() == set(NAMES)


def home_of(node: OneNode, topic: str) -> dict[bool, str]:
    """Return the names of the directories of partition 0's log (False) and future log (True)."""
    connection = node.connect()
    answer = connection.ask(DescribeLogDirsRequest(topics=None), 4)
    connection.close()
    assert isinstance(answer, DescribeLogDirsResponse)
    return {
        partition.is_future_key: Path(each.log_dir).name
        for each in answer.results
        for found in each.topics
        for partition in found.partitions
        if found.name == topic and partition.partition_index == 0
    }


def altered(node: OneNode, version: int, *wanted: tuple[str, str, int]) -> list[tuple[int, int]]:
    """Ask for moves to directories. Return the partitions with their errors, sorted."""
    request = AlterReplicaLogDirsRequest(
        dirs=tuple(
            AlterReplicaLogDir(
                path=str(root_of(node) / name),
                topics=(AlterReplicaLogDirTopic(name=topic, partitions=(partition,)),),
            )
            for name, topic, partition in wanted
        )
    )
    connection = node.connect()
    answer = connection.ask(request, version)
    connection.close()
    assert isinstance(answer, AlterReplicaLogDirsResponse)
    return sorted(
        (each.partition_index, each.error_code)
        for result in answer.results
        for each in result.partitions
    )


@pytest.mark.parametrize("version", [1, 2])
def test_requests_for_moves_have_the_same_errors(
    nodes: tuple[OneNode, OneNode], version: int
) -> None:
    mine, theirs = (
        [
            altered(node, version, ("nowhere", "t", 0)),
            altered(node, version, ("one", "t", 99)),
            altered(node, version, ("one", "absent", 0)),
            altered(node, version, ("one", "x" * 213, 0), ("one", "x" * 214, 1)),
            altered(node, version, (home_of(node, "t")[False], "t", 0)),
            altered(node, version, ("nowhere", "t", 0), (home_of(node, "t")[False], "t", 0)),
        ]
        for node in nodes
    )
    assert mine == theirs
    assert [error for answer in mine for _, error in answer] == [57, 3, 3, 3, 17, 0, 0]


def test_the_tools_move_a_log_to_another_directory(
    nodes: tuple[OneNode, OneNode], tmp_path: Path
) -> None:
    said = [
        moved_by(tmp_path, f"moved-{number}", node, run)
        for number, (node, run) in enumerate(
            ((nodes[0], kafka), (nodes[0], ours), (nodes[1], kafka))
        )
    ]
    assert said[0] == said[1]
    assert said[0] == said[2]
    assert said[0][0][-1].startswith("Successfully started moving log directory to /TARGET for")
    assert "Reassignment of replica T-0-ID completed successfully." in said[0][1]
    assert (
        "Partition T-0 on broker ID is not being moved from log dir /TARGET to /no." in said[0][2]
    )


def moved_by(
    directory: Path, topic: str, node: OneNode, run: Callable[..., Ended]
) -> list[list[str]]:
    """Move a log with a tool. Return the lines of --execute, of --verify afterwards, and of
    --verify for another target, with the same names for every node."""
    connection = node.connect()
    answer = connection.ask(CreateTopicsRequest(topics=(creatable(topic, partitions=1),)), 7)
    assert isinstance(answer, CreateTopicsResponse)
    connection.close()
    wait_for(lambda: bool(home_of(node, topic)), "the log is made", 30)
    target = next(name for name in NAMES if name != home_of(node, topic)[False])
    server = ("--bootstrap-server", f"127.0.0.1:{node.port}")
    (broker,) = json.loads(kafka("log-dirs", *server, "--describe").lines[-1])["brokers"]
    broker_id = str(broker["broker"])

    def plan(path: str) -> tuple[str, str]:
        file = directory / f"{topic}.json"
        partition = {"topic": topic, "partition": 0, "replicas": [int(broker_id)]}
        partition["log_dirs"] = [path]
        file.write_text(json.dumps({"version": 1, "partitions": [partition]}))
        return "--reassignment-json-file", str(file)

    wanted = plan(str(root_of(node) / target))
    at = ("reassign-partitions", *server)
    throttle = ("--replica-alter-log-dirs-throttle", "1000000")
    started = run(*at, "--execute", *wanted, *throttle)
    assert started.code == 0, (started.lines, started.errors)
    wait_for(lambda: home_of(node, topic) == {False: target}, "the log has moved", 30)
    verified = run(*at, "--verify", *wanted)
    elsewhere = run(*at, "--verify", *plan("/no"))
    names = (
        (str(root_of(node) / target), "/TARGET"),
        (topic, "T"),
        (f"T-0-{broker_id}", "T-0-ID"),
        (f"broker {broker_id}", "broker ID"),
        (f"[{broker_id}]", "[ID]"),
    )
    said = []
    for each in (started, verified, elsewhere):
        lines = each.lines
        for old, new in names:
            lines = [line.replace(old, new) for line in lines]
        said.append(lines)
    return said


def test_the_tools_say_the_same_of_several_directories(tmp_path: Path) -> None:
    if reason := missing():
        pytest.skip(reason)
    said: dict[str, list[list[str]]] = {}
    for run in (ours, kafka):
        root = tmp_path / run.__name__
        root.mkdir()
        file = root / "server.properties"

        def configured(*names: str, root: Path = root, file: Path = file) -> str:
            file.write_text(
                "process.roles=broker\nnode.id=7\ncontroller.quorum.voters=1@localhost:9093\n"
                "controller.listener.names=CONTROLLER\nlisteners=PLAINTEXT://localhost:9092\n"
                f"log.dirs={','.join(str(root / name) for name in names)}\n"
            )
            return str(file)

        answers = said.setdefault(run.__name__, [])
        cluster = "4L6g3nShT-eMCtK--X86sw"
        for names, more in (
            (("one", "two"), ()),
            (("one", "two"), ()),
            (("one", "two", "three"), ("--ignore-formatted",)),
            (("one", "two", "three"), ("--ignore-formatted",)),
        ):
            ended = run("storage", "format", "-t", cluster, "-c", configured(*names), *more)
            lines = [line.replace(str(root), "") for line in ended.lines]
            answers.append([str(ended.code), *sorted(lines)])
    assert said["ours"] == said["kafka"]
    assert said["ours"][2][1].startswith("Formatting data directory /three with metadata.version")
