"""`quorate status --changes`: the stages of a change, and the node that delays it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from quorate.cli.client.node_http import Address
from quorate.cli.client.options import connected
from quorate.cli.status import changes as status_changes
from quorate.cli.status.changes import acted_end, read_changes
from quorate.cli.status.changes_in_flight import Change, traced
from quorate.cli.status.node_stages import NodeStages, broker_addresses, parsed
from quorate.quorum.protocol.schemas import cluster, reassignments
from tests.unit.cli.fake_kafka import fake_kafka
from tests.unit.cli.test_cluster_commands import CLUSTER, quorum, run
from tests.unit.cli.test_topics import DESCRIBE

OFFSET = 100
UP = frozenset({4, 5, 6})
VOTERS = {1: 101, 2: 101, 3: 90}


def stages(
    node_id: int, *, committed: int = 101, replayed: int = 101, acted: int = 101
) -> NodeStages:
    """Return the stages of a broker. Its marks are at the time of the offset plus its id."""
    ends = {"committed": committed, "replayed": replayed, "acted": acted}
    return NodeStages(
        node_id=node_id,
        roles=("broker",),
        time_ms=1_000,
        offsets={"appended": 101, **ends},
        marks={name: [(end, 900 + node_id)] for name, end in ends.items()},
        proposals={"waiting": 0},
        controller=None,
    )


def line(**changed: Any) -> dict[str, Any]:
    return {
        "offset": OFFSET,
        "topic": "orders",
        "topic_id": "id",
        "partition": 0,
        "change": {"isr": [4, 5], "leader": 4},
        "cause": "session-expired",
        "hosts": [4, 5, 6],
        "requested_ms": 800,
        "appended_ms": 803,
        "committed_ms": 810,
        **changed,
    }


def change(
    nodes: Mapping[int, NodeStages | None], up: frozenset[int] = UP, **changed: Any
) -> Change:
    return traced(line(**changed), nodes, up, VOTERS, leader=1)


def waits(found: Change) -> list[tuple[int, str]]:
    return [(each.node_id, each.what) for each in found.delays]


def test_a_change_on_which_every_host_has_acted_is_complete() -> None:
    found = change({each: stages(each) for each in UP})
    assert found.delays == ()
    assert found.acted_ms == {4: 904, 5: 905, 6: 906}
    assert found.line(1_000) == (
        "offset 100 orders-0 isr [4, 5], leader 4 (session-expired): appended 3 ms after its "
        "request, committed after 10 ms, broker 4 acted after 104 ms, broker 5 acted after 105 ms, "
        "broker 6 acted after 106 ms"
    )


@pytest.mark.parametrize(
    ("node", "what"),
    [
        (stages(6, replayed=100, acted=90), "to replay it"),
        (stages(6, acted=100), "to act on it"),
        (None, "to answer"),
    ],
)
def test_a_host_that_is_behind_delays_the_change(node: NodeStages | None, what: str) -> None:
    nodes = {4: stages(4), 5: stages(5), 6: node}
    found = change(nodes)
    assert waits(found) == [(6, what)]
    assert found.line(1_000).endswith(f"; for 200 ms it waits for node 6 {what}")
    assert waits(change(nodes, up=frozenset({4, 5}))) == [], "a fenced broker delays nothing"
    assert waits(change(nodes, hosts=[4, 5])) == [], "broker 6 has no replica"


def test_voters_that_lack_a_record_delay_its_commit() -> None:
    nodes = {each: stages(each, committed=100, replayed=100, acted=100) for each in UP}
    assert waits(change(nodes, committed_ms=None)) == [(3, "to append it")]
    everywhere = traced(line(committed_ms=None), nodes, UP, {1: 101, 2: 101}, leader=2)
    assert waits(everywhere) == [(2, "to commit it")]


QUEUE = {
    "active": True,
    "queued": 3,
    "oldest_ms": 40,
    "uncommitted": 1,
    "brokers": [{"id": 5, "replayed": 97}, {"id": 6, "replayed": None}],
}
ACTED = {4: 99, 5: 90}
PARTS: dict[int, dict[str, Any]] = {
    2: {"controller": QUEUE},
    4: {"proposals": {"waiting": 2, "oldest_ms": 700, "oldest": []}},
}


def answer(address: Address, target: str) -> bytes | None:
    """Answer for the node whose id is the port minus 9000. Broker 5 does not answer."""
    node_id = address[1] - 9000
    path, _, query = target.partition("?")
    if path == "/v1/targets":
        found = [
            {
                "targets": [f"b{each}:{9000 + each}"],
                "labels": {"node_id": str(each), "role": "broker"},
            }
            for each in (4, 5)
        ]
        return json.dumps(found).encode()
    if path == "/v1/recent-changes":
        assert (node_id, query) == (2, "from=99&limit=1000")
        return "\n".join(map(json.dumps, [line(hosts=[4]), line(hosts=[4, 5], offset=98)])).encode()
    if node_id == 5:
        return None
    offsets = {"appended": 103, "committed": 102, "replayed": 102}
    if node_id in ACTED:
        offsets["acted"] = ACTED[node_id]
    return json.dumps(
        {
            "node_id": node_id,
            "roles": ["broker" if node_id > 3 else "controller"],
            "time_ms": 1_000,
            "offsets": offsets,
            "marks": {},
            **PARTS[node_id],
        }
    ).encode()


def quorum_of_two(request: Any) -> cluster.DescribeQuorumResponse:
    found = quorum(request)
    listener = cluster.QuorumListener(name="CONTROLLER", host="c2", port=9002)
    return cluster.DescribeQuorumResponse(
        topics=found.topics, nodes=(cluster.QuorumNode(node_id=2, listeners=(listener,)),)
    )


def moving(_: Any) -> reassignments.ListPartitionReassignmentsResponse:
    partition = reassignments.OngoingPartitionReassignment(
        partition_index=0, replicas=(4, 5), adding_replicas=(5,), removing_replicas=()
    )
    topic = reassignments.OngoingTopicReassignment(name="t", partitions=(partition,))
    return reassignments.ListPartitionReassignmentsResponse(topics=(topic,))


ANSWERS = {
    **DESCRIBE,
    **CLUSTER,
    cluster.DescribeQuorumRequest: quorum_of_two,
    reassignments.ListPartitionReassignmentsRequest: moving,
}


REPORT = """\
Metadata: committed up to offset 102
Node 2: controller, active; appended 103, committed 102, replayed 102, \
waiting requests: 3 (the oldest for 40 ms), uncommitted answers: 1
Node 4: broker; appended 103, committed 102, replayed 102, acted 99 (3 behind), \
ISR proposals without an answer: 2 (the oldest for 700 ms)
Node 5: does not answer
Changes in flight: 1; reassignments: 1
  offset 100 orders-0 isr [4, 5], leader 4 (session-expired): appended 3 ms after its request, \
committed after 10 ms; for 200 ms it waits for node 4 to act on it
  t-0 adds [5], removes []: waits for replica on 5
"""


def test_the_report_names_the_node_that_delays_each_change() -> None:
    with (
        fake_kafka(ANSWERS) as server,
        connected(bootstrap_server=server.address, command_config=None, timeout_s=5) as admin,
    ):
        report = read_changes(admin, ask=answer)
    assert list(report.lines()) == REPORT.splitlines()
    assert len(list(report.lines(every=True))) == 8, "with the complete change"
    found = report.as_json()
    assert [each["node_id"] for each in found["nodes"] if not each["answers"]] == [5]
    assert [each["delays"] for each in found["changes"]] == [
        ({"node_id": 4, "what": "to act on it"},),
        (),
    ]


def test_a_broker_that_does_not_answer_is_as_far_as_its_last_heartbeat_said() -> None:
    found = {2: node} if (node := parsed(answer(("c2", 9002), "/v1/stages") or b"")) else {}
    assert acted_end(5, found, unknown=7) == 97
    assert acted_end(6, found, unknown=7) == 7
    assert acted_end(4, {4: stages(4, acted=80)}, unknown=7) == 80


def test_a_cluster_of_kafka_has_no_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        status_changes.read_changes, "__kwdefaults__", {"every": False, "ask": none}
    )
    result, _ = run(ANSWERS, "status", "--changes")
    assert result.exit_code == 1
    assert "no node of this cluster answers GET /v1/stages" in result.output


def none(address: Address, target: str) -> None:
    return None


def test_filters_of_problems_are_refused_with_changes() -> None:
    result, _ = run(ANSWERS, "status", "--changes", "--topic", "t")
    assert result.exit_code == 2


@pytest.mark.parametrize("body", [b"", b"[]", b'{"node_id": 1}', b'{"node_id":1,"roles":3}', b"x"])
def test_an_answer_of_another_program_counts_as_none(body: bytes) -> None:
    assert parsed(body) is None
    assert broker_addresses([("h", 1)], lambda address, target: body) == {}
