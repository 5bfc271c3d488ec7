"""The last known leader, if the topic allows unclean elections: its log is compared with those of
the other active replicas before it leads (KIP-966, part 2)."""

from __future__ import annotations

import pytest

from quorate.quorum.controller.partitions.scheduled_elections import balance_leaders
from quorate.quorum.metadata.records import NO_LEADER
from quorate.quorum.protocol.schemas.elect_leaders import ElectLeadersRequest, TopicPartitions
from quorate.quorum.protocol.schemas.reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tests.unit.controller.test_eligible_leaders import unfence
from tests.unit.controller.test_unclean_recovery import (
    AGGRESSIVE,
    ENABLED,
    last_cause,
    uncleanly_stopped,
)

MIN_ISR = {"min.insync.replicas": "2"}


def test_aggressive_compares_the_log_of_the_last_leader_with_the_others() -> None:
    """The last known leader has lost its records, and returns while broker 2 is asked."""
    driver = uncleanly_stopped(AGGRESSIVE | MIN_ISR)
    driver.logs[1] = (0, 0, 0)
    driver.answers_logs = False
    unfence(driver, 2, 3)
    unfence(driver, 1)
    assert driver.leader_and_isr("t")[0] == NO_LEADER
    for asked in driver.asked:
        driver.answer_logs(asked)
    assert driver.leader_and_isr("t") == (2, (2,))
    assert last_cause(driver) == "unclean-election 120 120"


@pytest.mark.parametrize("configs", [ENABLED, AGGRESSIVE])
def test_the_last_leader_alone_leads_after_its_answer(configs: dict[str, str]) -> None:
    driver = uncleanly_stopped(configs | MIN_ISR)
    driver.answers_logs = False
    unfence(driver, 1)
    assert driver.leader_and_isr("t")[0] == NO_LEADER
    driver.answer_logs(driver.asked[0])
    assert driver.leader_and_isr("t") == (1, (1,))
    assert last_cause(driver) == "unclean-election 100 100"


def test_without_any_answer_the_last_leader_precedes_the_others() -> None:
    driver = uncleanly_stopped(AGGRESSIVE | MIN_ISR)
    driver.logs = {}
    driver.answers_logs = False
    unfence(driver, 2, 1)
    for asked in driver.asked:
        driver.answer_logs(asked)
    assert driver.leader_and_isr("t") == (1, (1,))
    assert last_cause(driver) == "last-known-leader"


REASSIGN = AlterPartitionReassignmentsRequest(
    topics=(
        ReassignableTopic(
            name="t", partitions=(ReassignablePartition(partition_index=0, replicas=(1, 2)),)
        ),
    ),
    timeout_ms=1,
)
PREFER = ElectLeadersRequest(
    election_type=0,
    topic_partitions=(TopicPartitions(topic="t", partitions=(0,)),),
    timeout_ms=1,
)


@pytest.mark.parametrize("request_", [REASSIGN, PREFER], ids=["reassignment", "preferred"])
def test_no_request_makes_the_last_leader_lead_while_it_is_asked(request_: object) -> None:
    driver = uncleanly_stopped(AGGRESSIVE | MIN_ISR)
    driver.answers_logs = False
    unfence(driver, 2, 1)
    driver.handle(request_)
    assert driver.leader_and_isr("t")[0] == NO_LEADER


def test_the_task_for_preferred_leaders_waits_for_the_answers() -> None:
    driver = uncleanly_stopped(AGGRESSIVE | MIN_ISR)
    driver.answers_logs = False
    unfence(driver, 2, 1)
    assert balance_leaders(driver.controller._context) == []
