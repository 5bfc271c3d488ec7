"""Unclean elections elect the longest log (KIP-966, part 2): the questions to live replicas, the
time bound, the strategies, and the end offsets in the cause of the record."""

from __future__ import annotations

import pytest

from quorate.quorum.controller.state import replica_log_queries
from quorate.quorum.controller.state.replica_log_queries import (
    KNOWN_MS,
    MAX_QUERIES,
    QUERY_TIMEOUT_MS,
    ReplicaLogQueries,
)
from quorate.quorum.metadata.causes import describe
from quorate.quorum.metadata.records import NO_LEADER, RECOVERING, PartitionChangeRecord
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.elect_leaders import ElectLeadersRequest, TopicPartitions
from tests.unit.controller.harness import SESSION_MS, Driver, uuid
from tests.unit.controller.test_eligible_leaders import fence, restart, shrink, unfence
from tests.unit.controller.test_reassign import reassign

ENABLED = {"unclean.leader.election.enable": "true"}
AGGRESSIVE = {"unclean.recovery.strategy": "aggressive"}
BALANCED = {"unclean.recovery.strategy": "balanced", "min.insync.replicas": "2"}


def started(configs: dict[str, str], *, elr: bool = True, brokers: int = 4) -> Driver:
    driver = Driver(elr=elr)
    driver.start(*range(1, brokers + 1))
    driver.create("t", tuple(range(1, brokers + 1)), configs=configs)
    return driver


def lagging(configs: dict[str, str], *, elr: bool = True) -> Driver:
    """Return a driver whose only leader, broker 1, goes away next. Brokers 2 to 4 are alive and
    lag."""
    driver = started(configs, elr=elr)
    shrink(driver, 1, reported=1)
    driver.logs = {2: (0, 100, 90), 3: (0, 120, 95), 4: (0, 110, 90)}
    return driver


def last_cause(driver: Driver) -> str:
    return [each for each in driver.log if isinstance(each, PartitionChangeRecord)][-1].cause


@pytest.mark.parametrize("configs", [ENABLED, AGGRESSIVE])
@pytest.mark.parametrize("elr", [False, True], ids=["without ELR", "with ELR"])
def test_the_longest_log_leads(configs: dict[str, str], elr: bool) -> None:
    driver = lagging(configs, elr=elr)
    fence(driver, 1)
    assert driver.leader_and_isr("t") == (3, (3,))
    assert driver.partition("t").leader_recovery_state == RECOVERING
    assert [each.broker_id for each in driver.asked] == [2, 3, 4]
    assert driver.controller.index.unclean_elections == 1


def test_a_later_epoch_is_longer_than_more_records() -> None:
    driver = lagging(ENABLED)
    driver.logs = {2: (1, 50, 0), 3: (0, 120, 0), 4: (1, 40, 0)}
    fence(driver, 1)
    assert driver.leader_and_isr("t") == (2, (2,))
    assert last_cause(driver) == "unclean-election 120 50"


def test_the_first_replica_leads_of_those_with_equal_logs() -> None:
    driver = lagging(ENABLED)
    driver.logs = {2: (0, 50, 0), 3: (0, 120, 0), 4: (0, 120, 0)}
    fence(driver, 1)
    assert driver.leader_and_isr("t")[0] == 3


def test_the_cause_says_what_is_lost() -> None:
    driver = lagging(ENABLED)
    driver.logs[2] = (0, 90, 130)
    fence(driver, 1)
    assert last_cause(driver) == "unclean-election 130 120"
    assert describe(last_cause(driver)).endswith(
        "ends at offset 120, the longest known one at 130: at least 10 offsets are lost."
    )
    assert "no loss is known" in describe("unclean-election 120 120")
    assert "the old end is not known" in describe("last-known-leader ? 7")


def test_there_is_no_leader_before_all_have_answered() -> None:
    driver = lagging(ENABLED)
    driver.answers_logs = False
    fence(driver, 1)
    for asked in driver.asked[:2]:
        driver.answer_logs(asked)
        assert driver.leader_and_isr("t")[0] == NO_LEADER
    driver.answer_logs(driver.asked[2])
    assert driver.leader_and_isr("t")[0] == 3


def test_the_time_for_answers_is_bounded() -> None:
    driver = lagging(ENABLED)
    driver.answers_logs = False
    fence(driver, 1)
    driver.answer_logs(driver.asked[0])
    driver.run_until(driver.now_ms + QUERY_TIMEOUT_MS - 1)
    assert driver.leader_and_isr("t")[0] == NO_LEADER
    driver.run_until(driver.now_ms + 1)
    assert driver.leader_and_isr("t")[0] == 2, "of those that have answered"
    driver.answer_logs(driver.asked[1])
    assert driver.leader_and_isr("t")[0] == 2, "too late"


def test_without_any_answer_the_first_replica_leads() -> None:
    driver = lagging(ENABLED)
    driver.logs = {}
    fence(driver, 1)
    assert driver.leader_and_isr("t") == (2, (2,))
    assert last_cause(driver) == "unclean-election"


def reassigned_to_five(configs: dict[str, str]) -> Driver:
    """Return a driver in which broker 5 is added to the replicas 1, 2 and 3, leads and is alone in
    the ISR and the ELR. Brokers 2 and 3 are alive and lag."""
    driver = Driver(elr=True)
    driver.start(1, 2, 3, 5)
    driver.create("t", (1, 2, 3), configs=configs)
    assert reassign(driver, (5, 2, 3)) == (ErrorCode.NONE, None)
    assert driver.propose_isr("t", (1, 5)).error == ErrorCode.NONE
    restart(driver, 1, clean=False)
    fence(driver, 1)
    assert driver.leader_and_isr("t") == (5, (5,))
    driver.logs = {2: (0, 100, 90), 3: (0, 120, 95)}
    return driver


def test_a_cancelled_reassignment_elects_the_longest_log() -> None:
    driver = reassigned_to_five(ENABLED)
    driver.answers_logs = False
    assert reassign(driver, None) == (ErrorCode.NONE, None)
    assert driver.partition("t").replicas == (2, 3, 1)
    for asked in driver.asked:
        assert driver.leader_and_isr("t")[0] == NO_LEADER
        driver.answer_logs(asked)
    assert [each.broker_id for each in driver.asked] == [2, 3]
    assert driver.leader_and_isr("t") == (3, (3,))
    assert driver.partition("t").leader_recovery_state == RECOVERING
    assert last_cause(driver) == "unclean-election 120 120"


def test_balanced_cancels_no_reassignment_whose_last_leader_was_added() -> None:
    driver = reassigned_to_five(BALANCED)
    driver.answers_logs = False
    restart(driver, 5, clean=False)
    unfence(driver, 5)
    assert driver.leader_and_isr("t") == (NO_LEADER, ())
    assert driver.partition("t").last_known_elr == (5,)
    assert reassign(driver, None)[0] == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert driver.partition("t").reassigning


def test_a_replica_that_returns_while_others_are_asked_is_asked_too() -> None:
    driver = lagging(AGGRESSIVE)
    driver.answers_logs = False
    fence(driver, 4, 1)
    assert [each.broker_id for each in driver.asked] == [2, 3]
    driver.logs[4] = (0, 130, 90)
    driver.run_until(driver.now_ms + QUERY_TIMEOUT_MS // 2)
    driver.heartbeat(4)
    assert [each.broker_id for each in driver.asked] == [2, 3, 4]
    for asked in driver.asked:
        assert driver.leader_and_isr("t")[0] == NO_LEADER
        driver.answer_logs(asked)
    assert driver.leader_and_isr("t") == (4, (4,))


def test_a_replica_that_returns_does_not_extend_the_time_for_answers() -> None:
    driver = lagging(AGGRESSIVE)
    driver.answers_logs = False
    fence(driver, 4, 1)
    driver.answer_logs(driver.asked[0])
    driver.run_until(driver.now_ms + QUERY_TIMEOUT_MS - 1)
    driver.heartbeat(4)
    driver.run_until(driver.now_ms + 1)
    assert driver.leader_and_isr("t")[0] == 2


def test_a_replica_that_restarts_while_others_are_asked_is_asked_again() -> None:
    """Its first answer is that of a log whose end it may have lost."""
    driver = lagging(AGGRESSIVE)
    driver.answers_logs = False
    fence(driver, 1)
    driver.answer_logs(driver.asked[1])
    restart(driver, 3, clean=False)
    unfence(driver, 3)
    driver.logs[3] = (0, 60, 60)
    assert [each.broker_id for each in driver.asked] == [2, 3, 4, 3]
    for asked in driver.asked:
        driver.answer_logs(asked)
    assert driver.leader_and_isr("t") == (4, (4,))


def test_the_answer_of_another_incarnation_does_not_count() -> None:
    driver = lagging(ENABLED)
    driver.answers_logs = False
    fence(driver, 1)
    driver.answer_logs(driver.asked[0])
    driver.answer_logs(driver.asked[1], epoch=driver.asked[1].broker_epoch + 1)
    driver.answer_logs(driver.asked[2])
    assert driver.leader_and_isr("t")[0] == 4


def test_a_replica_that_died_after_its_answer_is_not_elected() -> None:
    driver = lagging(ENABLED)
    driver.answers_logs = False
    fence(driver, 1)
    driver.answer_logs(driver.asked[0])
    driver.answer_logs(driver.asked[1])
    fence(driver, 3)
    driver.answer_logs(driver.asked[2])
    assert driver.leader_and_isr("t")[0] == 4


def test_a_clean_leader_that_returns_while_others_are_asked_leads() -> None:
    driver = lagging(ENABLED)
    driver.answers_logs = False
    fence(driver, 1)
    unfence(driver, 1)
    assert driver.leader_and_isr("t") == (1, (1,))
    for asked in driver.asked:
        driver.answer_logs(asked)
    assert driver.leader_and_isr("t") == (1, (1,))
    assert driver.partition("t").leader_recovery_state != RECOVERING


def test_without_a_strategy_no_replica_is_asked() -> None:
    driver = lagging({})
    fence(driver, 1)
    assert driver.leader_and_isr("t")[0] == NO_LEADER
    assert driver.asked == []


# --------------------------------------------------------------------------------------- balanced


def uncleanly_stopped(configs: dict[str, str]) -> Driver:
    """Return a driver whose partition has no ISR and no ELR; its last leader is broker 1. All
    brokers stopped uncleanly and are fenced."""
    driver = started(configs, brokers=3)
    shrink(driver, 1)
    fence(driver, 2, 3, 1)
    for each in (1, 2, 3):
        restart(driver, each, clean=False)
    partition = driver.partition("t")
    assert (partition.isr, partition.elr, partition.last_known_elr) == ((), (), (1,))
    driver.logs = {1: (0, 100, 90), 2: (0, 120, 95), 3: (0, 110, 90)}
    return driver


def test_balanced_waits_for_the_last_leader_and_elects_the_longest_log() -> None:
    driver = uncleanly_stopped(BALANCED)
    unfence(driver, 2, 3)
    assert driver.leader_and_isr("t")[0] == NO_LEADER
    assert driver.asked == []
    unfence(driver, 1)
    assert driver.leader_and_isr("t") == (2, (2,))
    assert last_cause(driver) == "unclean-election 120 120"


def test_balanced_elects_nobody_without_the_answer_of_the_last_leader() -> None:
    driver = uncleanly_stopped(BALANCED)
    del driver.logs[1]
    unfence(driver, 2, 3, 1)
    assert driver.leader_and_isr("t")[0] == NO_LEADER


def test_balanced_does_not_elect_while_a_replica_is_eligible() -> None:
    driver = started(BALANCED, brokers=3)
    shrink(driver, 1)
    fence(driver, 2, 3, 1)
    restart(driver, 1, clean=False)
    unfence(driver, 1)
    assert driver.partition("t").elr == (2, 3)
    assert driver.leader_and_isr("t")[0] == NO_LEADER
    assert driver.asked == []


def test_none_elects_the_last_leader_only() -> None:
    driver = uncleanly_stopped({"min.insync.replicas": "2"})
    unfence(driver, 2, 3)
    assert driver.leader_and_isr("t")[0] == NO_LEADER
    unfence(driver, 1)
    assert driver.leader_and_isr("t") == (1, (1,))
    assert driver.asked == []


# ------------------------------------------------------------------------------- administrators


def elect_uncleanly(driver: Driver) -> int:
    asked = (TopicPartitions(topic="t", partitions=(0,)),)
    request = ElectLeadersRequest(election_type=1, topic_partitions=asked, timeout_ms=1)
    response = driver.handle(request)
    return int(response.replica_election_results[0].partition_result[0].error_code)


def test_the_longest_log_leads_on_request() -> None:
    driver = lagging({})
    fence(driver, 1)
    assert elect_uncleanly(driver) == 0
    assert driver.leader_and_isr("t") == (3, (3,))
    assert last_cause(driver) == "unclean-election 120 120"


def test_an_administrators_question_elects_nobody_by_itself() -> None:
    driver = lagging({})
    fence(driver, 1)
    driver.answers_logs = False
    asked = tuple(TopicPartitions(topic=name, partitions=(0, 7)) for name in ("t", "u"))
    request = ElectLeadersRequest(election_type=1, topic_partitions=asked, timeout_ms=1)
    driver.carry_out(driver.controller.questions(request, now_ms=driver.now_ms))
    keys = driver.controller.unclean_keys(request)
    assert keys and driver.controller.has_questions(keys)
    for question in driver.asked:
        driver.answer_logs(question)
    assert not driver.controller.has_questions(keys)
    assert driver.leader_and_isr("t")[0] == NO_LEADER


def test_a_new_active_controller_asks_again() -> None:
    driver = lagging(ENABLED)
    driver.answers_logs = False
    fence(driver, 1)
    driver.controller.deactivate()
    driver.activate(driver.controller)
    asked, driver.asked = driver.asked, []
    for each in asked:
        driver.answer_logs(each)
    assert driver.leader_and_isr("t")[0] == NO_LEADER
    driver.answers_logs = True
    driver.run_until(driver.now_ms + SESSION_MS - 1)
    unfence(driver, 2, 3, 4)
    fence(driver, 2)
    driver.run_until(driver.now_ms + 1)
    unfence(driver, 2)
    assert driver.leader_and_isr("t")[0] == 3


# ------------------------------------------------------------------------------------- the bounds


def test_the_queries_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = started(ENABLED).broker(1)
    queries = ReplicaLogQueries()
    monkeypatch.setattr(replica_log_queries, "MAX_WANTED", 2 * MAX_QUERIES)
    for partition_id in range(3 * MAX_QUERIES):
        queries.want((uuid(1), partition_id))
    keys = queries.take_wanted()
    assert len(keys) == MAX_QUERIES
    assert len(queries.open({key: [broker] for key in keys}, 0)[0].partitions) == MAX_QUERIES
    assert queries.take_wanted() == []
    assert len(queries.overdue(QUERY_TIMEOUT_MS)) == MAX_QUERIES
    for key in keys:
        assert queries.close(key, QUERY_TIMEOUT_MS) == {}
    assert len(queries.take_wanted()) == MAX_QUERIES


def test_a_query_that_is_wanted_again_asks_before_it_is_complete() -> None:
    driver = started(ENABLED)
    queries, key = ReplicaLogQueries(), (uuid(1), 0)
    (first,) = queries.open({key: [driver.broker(1)]}, 0)
    queries.want(key)
    assert queries.answered(first, ()) == []
    assert queries.take_wanted() == [key]
    assert queries.open({key: [driver.broker(1)]}, 5) == []
    assert queries.overdue(5) == [key]


def test_an_administrators_answers_are_kept_for_a_while() -> None:
    broker = started(ENABLED).broker(1)
    queries, key, other = ReplicaLogQueries(), (uuid(1), 0), (uuid(1), 1)
    for each in (key, other):
        queries.open({each: [broker]}, 0, administrator=True)
        assert queries.close(each, 0) is None
    assert queries._known.keys() == {key, other}
    queries.open({key: [broker]}, KNOWN_MS, administrator=True)
    queries.close(key, KNOWN_MS)
    assert queries._known.keys() == {key}
