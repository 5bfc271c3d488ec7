"""`quorate status`: states of partitions, their order, their counts by cause, and the filters."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from quorate.cli.status.cluster_status import MAX_SHOWN
from quorate.cli.status.partition_problems import (
    OFFLINE,
    UNDER_MIN_ISR,
    UNDER_REPLICATED,
    Problem,
    Reason,
    count_states,
    groups,
    problems,
    reasons,
    selected,
)
from quorate.cli.topics.topic_view import PartitionView, TopicView
from quorate.quorum.ids import uuid_from_text
from quorate.quorum.protocol.schemas import cluster, metadata
from tests.unit.cli.test_cluster_commands import CLUSTER, run
from tests.unit.cli.test_topics import DESCRIBE, TOPIC_ID

ALL = frozenset({4, 5, 6})
FEW, MANY = 3_000, 30_000


def partition(leader: int | None, isr: tuple[int, ...], number: int = 0) -> PartitionView:
    """Return a partition with replicas 4, 5 and 6."""
    return PartitionView(partition=number, leader=leader, replicas=(4, 5, 6), isr=isr)


def topic(name: str, *partitions: PartitionView) -> TopicView:
    return TopicView(name=name, topic_id="", partitions=partitions, configs={}, min_isr=2)


@pytest.mark.parametrize(
    ("view", "state"),
    [
        (partition(4, (4, 5, 6)), []),
        (partition(4, (4, 5)), [UNDER_REPLICATED]),
        (partition(4, (4,)), [UNDER_MIN_ISR]),
        (partition(None, (4, 5, 6)), [OFFLINE]),
    ],
)
def test_states_of_partitions(view: PartitionView, state: list[str]) -> None:
    assert [each.state for each in problems([topic("t", view)], ALL)] == state


def test_the_status_names_the_replicas_that_may_lead_when_they_return() -> None:
    view = replace(partition(None, ()), elr=(4, 5), last_known_elr=(5,))
    (problem,) = problems([topic("t", view)], frozenset({6}))
    assert problem.line().startswith(
        "t-0 offline: leader none, isr [] of [4, 5, 6], elr [4, 5], last leader 5: "
    )


def test_the_reasons_why_a_replica_is_missing() -> None:
    found = reasons(partition(4, (4,)), frozenset({4, 6}))
    assert [str(each) for each in found] == ["broker 5 is down", "replica on 6 catches up"]
    found = reasons(partition(None, (4, 5, 6)), ALL)
    assert [str(each) for each in found] == ["all its replicas are up"]


def test_the_worst_states_come_first_and_internal_topics_last() -> None:
    lagging, alone, lost = partition(4, (4, 5)), partition(4, (4,)), partition(None, ())
    found = problems(
        [
            topic("__consumer_offsets", lagging, replace(lost, partition=1)),
            topic("b", lagging, replace(alone, partition=1)),
            topic("c", replace(lost, partition=7), replace(lost, partition=3)),
        ],
        ALL,
    )
    assert [f"{each.topic}-{each.partition}" for each in found] == [
        "c-3",
        "c-7",
        "__consumer_offsets-1",
        "b-1",
        "b-0",
        "__consumer_offsets-0",
    ]


def a_problem(state: str, *found: Reason) -> Problem:
    return Problem(
        topic="t", partition=0, state=state, leader=4, isr=(4,), replicas=(4, 5), reasons=found
    )


DOWN, LAGS = Reason(broker=6, down=True), Reason(broker=5)


def test_problems_are_counted_by_reason_the_worst_first() -> None:
    found = [
        *[a_problem(UNDER_REPLICATED, LAGS)] * 9,
        *[a_problem(UNDER_REPLICATED, DOWN)] * 2,
        a_problem(OFFLINE, DOWN, LAGS),
        *[a_problem(OFFLINE, DOWN)] * 3,
    ]
    assert [each.line() for each in groups(found, {6: "session-expired"})] == [
        "broker 6 is down (session-expired): 4 offline, 2 under-replicated",
        "replica on 5 catches up: 1 offline, 9 under-replicated",
    ]
    assert count_states(found) == {OFFLINE: 4, UNDER_MIN_ISR: 0, UNDER_REPLICATED: 11}


def test_the_filters_select_by_broker_and_by_state() -> None:
    found = [a_problem(OFFLINE, DOWN), a_problem(UNDER_REPLICATED, DOWN, LAGS)]
    assert selected(found, broker=5) == [found[1]]
    assert selected(found, broker=4) == [], "broker 4 is in sync and causes no problem"
    assert selected(found, only=(OFFLINE, UNDER_MIN_ISR)) == [found[0]]
    assert selected(found, broker=6, only=(UNDER_REPLICATED,)) == [found[1]]
    assert selected(found) == found


def described(count: int) -> Callable[[Any], cluster.DescribeTopicPartitionsResponse]:
    """Return an answer to DescribeTopicPartitions: `count` partitions of "t" without a replica on
    broker 5, of which 3 have no leader."""

    def answer(request: Any) -> cluster.DescribeTopicPartitionsResponse:
        start = request.cursor.partition_index if request.cursor else 0
        end = min(count, start + request.response_partition_limit)
        partitions = tuple(
            cluster.DescribeTopicPartitionsResponsePartition(
                error_code=0,
                partition_index=number,
                leader_id=-1 if number % (count // 3) == 7 else 4,
                replica_nodes=(4, 5),
                isr_nodes=(4,),
            )
            for number in range(start, end)
        )
        return cluster.DescribeTopicPartitionsResponse(
            topics=(
                cluster.DescribeTopicPartitionsResponseTopic(
                    name="t", topic_id=uuid_from_text(TOPIC_ID), partitions=partitions
                ),
            ),
            next_cursor=(
                cluster.Cursor(topic_name="t", partition_index=end) if end < count else None
            ),
        )

    return answer


def named(*names: str) -> metadata.MetadataResponse:
    return metadata.MetadataResponse(
        brokers=(),
        topics=tuple(metadata.MetadataResponseTopic(name=name, partitions=()) for name in names),
    )


ANSWERS: dict[Any, Any] = {
    **DESCRIBE,
    **CLUSTER,
    cluster.DescribeTopicPartitionsRequest: described(FEW),
    metadata.MetadataRequest: lambda _: named("t", "u"),
}


def test_thirty_thousand_problems_are_counted_and_the_worst_are_listed() -> None:
    answers = {**ANSWERS, cluster.DescribeTopicPartitionsRequest: described(MANY)}
    result, requests = run(answers, "status", "--topic", "t")
    assert result.exit_code == 1
    lines = result.output.splitlines()
    counts = "3 offline, 29997 under min ISR"
    assert f"Partitions: 30000 in 1 topics; {counts}, 0 under-replicated" in lines
    start = lines.index(f"  by cause: broker 5 is down: {counts}")
    listed = lines[start + 1 :]
    assert [each.split()[0] for each in listed[:4]] == ["t-7", "t-10007", "t-20007", "t-0"]
    assert len(listed) == MAX_SHOWN + 1
    assert listed[-1] == f"  and {MANY - MAX_SHOWN} more (--all lists them)"
    (asked,) = [each for each in requests if type(each).__name__ == "DescribeConfigsRequest"]
    (resource,) = asked.resources
    assert resource.configuration_keys == ("min.insync.replicas",)


def test_all_problems_are_listed_on_request() -> None:
    result, _ = run(ANSWERS, "status", "--topic", "t", "--only", "offline", "--all")
    listed = [line for line in result.output.splitlines() if line.startswith("  t-")]
    assert [line.split()[:2] for line in listed] == [
        ["t-7", "offline:"],
        ["t-1007", "offline:"],
        ["t-2007", "offline:"],
    ]
    assert "3 offline, 0 under min ISR, 0 under-replicated" in result.output
    assert all(line.endswith("cause unknown") for line in listed)


def test_the_status_of_topics_and_brokers_without_a_problem() -> None:
    result, _ = run(ANSWERS, "status", "--topic", "none.*")
    assert result.exit_code == 0
    assert "Partitions: 0 in 0 topics; 0 offline" in result.output
    result, _ = run(ANSWERS, "status", "--topic", "t", "--broker", "4")
    assert result.exit_code == 0
    assert "3000 in 1 topics; 0 offline, 0 under min ISR, 0 under-replicated" in result.output
    result, _ = run(ANSWERS, "status", "--topic", "(")
    assert result.exit_code == 1
    assert "must be a regular expression" in result.output


def test_json_has_every_problem_and_the_counts() -> None:
    result, _ = run(ANSWERS, "status", "--topic", "t", "--format", "json")
    found = json.loads(result.output)
    assert len(found["problems"]) == FEW
    assert found["counts"] == {"offline": 3, "under-min-isr": 2_997, "under-replicated": 0}
    assert found["groups"] == [
        {
            "reason": {"broker": 5, "down": True},
            "counts": {"offline": 3, "under-min-isr": 2_997},
            "why": "",
        }
    ]
    assert found["problems"][0]["partition"] == 7
