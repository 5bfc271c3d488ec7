"""Admin requests with one mistake each get Kafka's error, and change nothing.

Quorate's errors are compared with those that Kafka 4.1.1 gave (admin_errors.json). With a Java,
Kafka is asked again.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.golden.admin_requests import CASES, ask, prepare
from tests.golden.admin_state import state
from tests.golden.nodes import KAFKA, QUORATE, TwoNodes, two_nodes
from tests.kafka.tools import missing

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]

GOLDEN: dict[str, list[str]] = json.loads((Path(__file__).parent / "admin_errors.json").read_text())
UNANSWERED = "(no answer)"
"""4.1.1 fails in the handler and leaves the client waiting."""
# docs/differences.md says why.
DEPARTURES = {
    "IncrementalAlterConfigs: operation 4": ["INVALID_REQUEST"],
    "IncrementalAlterConfigs: operation -1": ["INVALID_REQUEST"],
    "IncrementalAlterConfigs: broker unknown": ["BROKER_ID_NOT_REGISTERED"],
    "IncrementalAlterConfigs: group key unknown": ["INVALID_REQUEST"],
    "IncrementalAlterConfigs: group value no number": ["INVALID_REQUEST"],
    "AlterConfigs: topic twice": ["INVALID_REQUEST", "INVALID_REQUEST"],
    "AlterConfigs: broker unknown": ["BROKER_ID_NOT_REGISTERED"],
    "DescribeConfigs: group unknown": ["INVALID_REQUEST"],
}
# Where the words are ours too: values of configs, and what Kafka words for its own log.
OWN_WORDS = re.compile(
    "Invalid value|Excessively large|conflict topic config|Cannot update these configs"
)
# The tools print what these answer.
TOLD = ("CreateTopics", "DeleteTopics", "CreatePartitions", "AlterPartitionReassignments")


def codes(errors: list[str]) -> list[str]:
    return [each.partition(":")[0] for each in errors]


def worded(case: str, errors: list[str]) -> list[str]:
    """Return the errors whose text must equal Kafka's."""
    if case.partition(":")[0] not in TOLD:
        return []
    return [each for each in errors if each.partition(": ")[2] and not OWN_WORDS.search(each)]


def asked(nodes: TwoNodes, skipped: frozenset[str]) -> dict[str, list[str]]:
    admin = nodes.admin()
    try:
        prepare(admin)
        before = state(nodes, admin)
        answers = {case: ask(admin, CASES[case]) for case in CASES if case not in skipped}
        assert state(nodes, admin) == before, nodes.logs()
    finally:
        admin.close()
    return answers


def test_the_golden_file_is_of_these_cases() -> None:
    assert list(GOLDEN) == list(CASES)
    assert DEPARTURES.keys() <= CASES.keys()


def test_every_mistake_has_kafkas_error_and_changes_nothing(tmp_path: Path) -> None:
    with two_nodes(tmp_path / "nodes", QUORATE) as nodes:
        answers = asked(nodes, frozenset())
    wrong = {
        case: (GOLDEN[case], ours)
        for case, ours in answers.items()
        if codes(ours) != DEPARTURES.get(case, codes(GOLDEN[case]))
    }
    assert not wrong
    silent = [
        case
        for case, errors in answers.items()
        if any(": " in each for each in GOLDEN[case])
        and set(errors) - {"NONE"}
        and not any(": " in each for each in errors)
    ]
    assert not silent, "a refusal says why where Kafka's does"
    for case, ours in answers.items():
        for text in worded(case, GOLDEN[case]):
            assert text in ours, case


def test_a_departure_is_still_one() -> None:
    for case, ours in DEPARTURES.items():
        assert codes(GOLDEN[case]) != ours, case


@pytest.mark.kafka
def test_apache_kafka_says_so(tmp_path: Path) -> None:
    if reason := missing():
        pytest.skip(reason)
    unanswered = frozenset(case for case, errors in GOLDEN.items() if errors == [UNANSWERED])
    with two_nodes(tmp_path / "nodes", KAFKA) as nodes:
        answers = asked(nodes, unanswered)
    assert answers == {case: GOLDEN[case] for case in CASES if case not in unanswered}
