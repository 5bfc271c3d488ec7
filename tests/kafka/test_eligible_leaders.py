"""The eligible leaders of Quorate and of Apache Kafka after the same kills, stops and starts: the
answers of DescribeTopicPartitions, and the change records in the metadata log (KIP-966).

Node 1 is the only controller, and is never stopped.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from quorate.cli.client.admin import Admin, AdminSettings
from quorate.cli.client.errors import NotReachable
from quorate.quorum.protocol.schemas.cluster import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from tests.clients.cluster import run_quorate, wait_for
from tests.golden.nodes import KAFKA, QUORATE, Program
from tests.kafka.three_nodes import ThreeNodes, three_nodes
from tests.kafka.tools import missing

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]

CONFIG = {
    "broker.session.timeout.ms": 2000,
    "broker.heartbeat.interval.ms": 400,
    "min.insync.replicas": 2,
    "auto.leader.rebalance.enable": "false",
    "controlled.shutdown.enable": "true",
    "offsets.topic.num.partitions": 1,
}
TOPICS = {"two": "2:3", "three": "1:2:3"}
State = dict[str, tuple[int, list[int], list[int], list[int]]]
"""Leader, ISR, ELR and last known ELR of each topic's partition."""
STEPS: tuple[tuple[str, int, State], ...] = (
    ("kill", 3, {"two": (2, [2], [3], []), "three": (1, [1, 2], [], [])}),
    ("kill", 2, {"two": (-1, [], [2, 3], [2]), "three": (1, [1], [2], [])}),
    ("start", 2, {"two": (-1, [], [3], [2]), "three": (1, [1, 2], [], [])}),
    ("start", 3, {"two": (2, [2, 3], [], []), "three": (1, [1, 2, 3], [], [])}),
    ("stop", 3, {"two": (2, [2], [3], []), "three": (1, [1, 2], [], [])}),
    ("stop", 2, {"two": (-1, [], [2, 3], [2]), "three": (1, [1], [2], [])}),
    ("start", 2, {"two": (2, [2], [3], []), "three": (1, [1, 2], [], [])}),
)
"""A command, its node, and the state to which it leads."""
FIELDS = ("leader", "isr", "eligibleLeaderReplicas", "lastKnownElr", "leaderRecoveryState")


def state(nodes: ThreeNodes) -> State:
    """Return the state as broker 1 describes it."""
    admin = Admin(AdminSettings(servers=(("127.0.0.1", nodes.ports[1]),), timeout_s=5.0))
    request = DescribeTopicPartitionsRequest(
        topics=tuple(TopicRequest(name=name) for name in TOPICS), response_partition_limit=100
    )
    try:
        answer = admin.ask(request, DescribeTopicPartitionsResponse)
    except NotReachable:
        return {}
    finally:
        admin.close()
    found: State = {}
    for topic in answer.topics:
        for each in topic.partitions:
            found[topic.name or ""] = (
                each.leader_id,
                sorted(each.isr_nodes),
                sorted(each.eligible_leader_replicas or ()),
                sorted(each.last_known_elr or ()),
            )
    return found


def changes(nodes: ThreeNodes) -> dict[str, list[dict[str, Any]]]:
    """Return the change records of each topic's partition in the order of the log."""
    dumped = run_quorate(
        *("dump-log", "--cluster-metadata-decoder", "--format", "json", "--files"),
        str(nodes.metadata_segment(1)),
    )
    names: dict[str, str] = {}
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in TOPICS}
    for line in dumped.stdout.splitlines():
        value = json.loads(line).get("value")
        if not isinstance(value, dict):  # a control record
            continue
        data = value.get("data", {})
        if value.get("type") == "TOPIC_RECORD":
            names[data["topicId"]] = data["name"]
        if value.get("type") == "PARTITION_CHANGE_RECORD" and names[data["topicId"]] in TOPICS:
            record = {name: data[name] for name in FIELDS if data.get(name) is not None}
            found[names[data["topicId"]]].append(record)
    return found


def played(root: Path, program: Program) -> dict[str, list[dict[str, Any]]]:
    """Carry out the steps, check the state after each of them, and return the change records."""
    with three_nodes(root, program, CONFIG, controllers=(1,)) as nodes:
        for name, replicas in TOPICS.items():
            created = program.run(
                *("topics", "--bootstrap-server", nodes.bootstrap, "--create", "--topic", name),
                *("--replica-assignment", replicas),
            )
            assert created.code == 0, created.errors
        for number, (command, node, expected) in enumerate(STEPS):
            nodes.run(node, command)

            def reached(expected: State = expected) -> bool:
                return state(nodes) == expected

            wait_for_state(reached, f"{program.name}, step {number}", nodes)
        return changes(nodes)


def wait_for_state(reached: Callable[[], bool], what: str, nodes: ThreeNodes) -> None:
    try:
        wait_for(reached, what, 30)
    except AssertionError as error:
        raise AssertionError(f"{error}: {state(nodes)} {changes(nodes)}") from None


@pytest.mark.skipif(bool(missing()), reason=missing())
def test_the_same_kills_lead_to_the_same_eligible_leaders(tmp_path: Path) -> None:
    programs = (QUORATE, KAFKA)
    with ThreadPoolExecutor() as pool:  # both mostly wait
        roots = [tmp_path / each.name for each in programs]
        ours, theirs = pool.map(played, roots, programs)
    assert ours == theirs
    assert all(len(each) >= len(STEPS) for each in ours.values())
