"""The cost of the rules: it grows linearly with the number of items in a request, up to their
bounds.

A rule runs as a whole inside the active controller. Each test compares the CPU time for n and for
4n items: 16 times as long is quadratic, 4 times as long is linear.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from quorate.quorum.controller.state.result import MAX_RECORDS_PER_USER_OP
from quorate.quorum.metadata.records import ConfigRecord
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import configs, elect_leaders, reassignments, topics
from tests.unit.controller.harness import Driver, creatable

QUADRATIC = 10
"""Between 4 and 16: the machine may be busy."""
TRIES = 4
MIN_S = 0.003
PARTITIONS = 4000
LIST_KEY = "leader.replication.throttled.replicas"
APPEND, SUBTRACT = 2, 3

Request = Callable[[int], Any]


@pytest.fixture(scope="module")
def driver() -> Driver:
    made = Driver()
    made.start(1, 2, 3)
    partitions = creatable("big", partitions=PARTITIONS, replication_factor=3)
    made.handle(topics.CreateTopicsRequest(topics=(partitions,)))
    return made


def cpu_s(driver: Driver, request: object) -> float:
    begun = time.process_time()
    driver.last_step(
        driver.controller.handle(request, now_ms=driver.now_ms, next_offset=len(driver.log))
    )
    return time.process_time() - begun


def alter(*changes: configs.IncrementalAlterableConfig) -> Any:
    resource = configs.IncrementalAlterConfigsResource(
        resource_type=2, resource_name="big", configs=changes
    )
    return configs.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=True)


def changed_list(operation: int, count: int) -> Any:
    value = ",".join(f"{each}:1" for each in range(count))
    return alter(
        configs.IncrementalAlterableConfig(name=LIST_KEY, config_operation=operation, value=value)
    )


def altered(count: int) -> Any:
    return configs.IncrementalAlterConfigsRequest(
        resources=tuple(
            configs.IncrementalAlterConfigsResource(
                resource_type=2, resource_name=str(each), configs=()
            )
            for each in range(count)
        ),
        validate_only=True,
    )


def reassigned(count: int) -> Any:
    partitions = tuple(
        reassignments.ReassignablePartition(partition_index=each, replicas=(1, 2))
        for each in range(count)
    )
    topic = reassignments.ReassignableTopic(name="big", partitions=partitions)
    return reassignments.AlterPartitionReassignmentsRequest(topics=(topic,))


def listed(count: int) -> Any:
    topic = reassignments.ListPartitionReassignmentsTopics(
        name="big", partition_indexes=tuple(range(count))
    )
    return reassignments.ListPartitionReassignmentsRequest(topics=(topic,))


def elected(count: int) -> Any:
    topic = elect_leaders.TopicPartitions(topic="big", partitions=tuple(range(count)))
    return elect_leaders.ElectLeadersRequest(topic_partitions=(topic,))


def created(count: int) -> Any:
    named = tuple(creatable(f"t{each}") for each in range(count))
    return topics.CreateTopicsRequest(topics=named, validate_only=True)


def grown(count: int) -> Any:
    named = tuple(
        topics.CreatePartitionsTopic(name=f"t{each}", count=2, assignments=None)
        for each in range(count)
    )
    return topics.CreatePartitionsRequest(topics=named, timeout_ms=1, validate_only=True)


def deleted(count: int) -> Any:
    names = tuple(f"t{each}" for each in range(count))
    return topics.DeleteTopicsRequest(topic_names=names, timeout_ms=1)


def deleted_twice(count: int) -> Any:
    return topics.DeleteTopicsRequest(topic_names=("",) * count, timeout_ms=1)


@pytest.mark.parametrize(
    ("request_", "items"),
    [
        pytest.param(lambda n: changed_list(APPEND, n), 1000, id="append"),
        pytest.param(altered, 2500, id="alter-configs"),
        pytest.param(reassigned, 1000, id="reassign"),
        pytest.param(listed, 7500, id="list-reassignments"),
        pytest.param(elected, 7500, id="elect-leaders"),
        pytest.param(created, 1000, id="create-topics"),
        pytest.param(grown, 2500, id="create-partitions"),
        pytest.param(deleted, 2500, id="delete-topics"),
        pytest.param(deleted_twice, 2500, id="delete-one-topic-often"),
    ],
)
def test_the_work_grows_linearly(driver: Driver, request_: Request, items: int) -> None:
    few, many = request_(items), request_(4 * items)
    ratios = []
    for _ in range(TRIES):
        ratios.append(cpu_s(driver, many) / max(MIN_S, cpu_s(driver, few)))
        if ratios[-1] < QUADRATIC:
            return
    raise AssertionError(f"4 times the items take {min(ratios):.0f} times as long")


def test_a_list_is_subtracted_in_linear_time() -> None:
    driver = Driver()
    driver.start(1)
    driver.create("big", (1,))
    times = []
    for count in (800, 3200):
        driver.handle(set_list(count))
        times.append(min(cpu_s(driver, changed_list(SUBTRACT, count)) for _ in range(TRIES)))
    assert times[1] < QUADRATIC * max(MIN_S, times[0])


def set_list(count: int) -> Any:
    value = ",".join(f"{each}:1" for each in range(count))
    change = configs.IncrementalAlterableConfig(name=LIST_KEY, config_operation=0, value=value)
    resource = configs.IncrementalAlterConfigsResource(
        resource_type=2, resource_name="big", configs=(change,)
    )
    return configs.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)


def test_the_topics_of_a_request_do_not_multiply_with_the_brokers() -> None:
    few, many = Driver(), Driver()
    few.start(*range(1, 4))
    many.start(*range(1, 101))
    request = created(1000)
    ratios = [cpu_s(many, request) / max(MIN_S, cpu_s(few, request)) for _ in range(TRIES)]
    assert min(ratios) < 3


# ------------------------------------------------------------------------------------------ bounds


@pytest.mark.parametrize(
    "request_", [altered, reassigned, created, grown, deleted], ids=lambda each: each.__name__
)
def test_more_items_than_a_batch_has_records_are_refused(driver: Driver, request_: Request) -> None:
    answer = driver.handle(request_(MAX_RECORDS_PER_USER_OP + 1))
    arrays = ("topics", "results", "responses")
    items = [each for name in arrays for each in getattr(answer, name, ())]
    errors = {each.error_code for each in items} or {answer.error_code}
    assert errors == {ErrorCode.POLICY_VIOLATION}


def test_an_appended_value_must_fit_in_a_record(driver: Driver) -> None:
    driver = Driver()
    driver.start(1)
    driver.create("big", (1,))
    driver.handle(set_list(4000))
    value = ",".join(f"{each}:2" for each in range(4000))
    change = configs.IncrementalAlterableConfig(name=LIST_KEY, config_operation=APPEND, value=value)
    (result,) = driver.handle(alter(change)).responses
    assert result.error_code == ErrorCode.INVALID_CONFIG
    assert "at most 32767 are allowed" in result.error_message


def test_a_resource_has_a_bounded_number_of_configs() -> None:
    """The log may hold many unknown configs of a broker from an earlier version."""
    driver = Driver()
    driver.start(1)
    driver.append(
        [
            ConfigRecord(resource_type=4, resource_name="1", name=f"unknown.{each}", value="1")
            for each in range(1000)
        ]
    )

    def change(*changes: tuple[str, int, str | None]) -> ErrorCode:
        resource = configs.IncrementalAlterConfigsResource(
            resource_type=4,
            resource_name="1",
            configs=tuple(
                configs.IncrementalAlterableConfig(name=name, config_operation=code, value=value)
                for name, code, value in changes
            ),
        )
        request = configs.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
        (result,) = driver.handle(request).responses
        return ErrorCode.of(result.error_code)

    assert change(("log.roll.ms", 0, "5")) is ErrorCode.POLICY_VIOLATION
    assert change(("unknown.7", 1, None)) is ErrorCode.NONE
    assert change(("log.roll.ms", 0, "5")) is ErrorCode.NONE
    assert change(("log.roll.ms", 0, "6")) is ErrorCode.NONE, "no config is new"
    assert change(("log.retention.ms", 0, "6")) is ErrorCode.POLICY_VIOLATION


def test_texts_do_not_grow_with_what_they_quote(driver: Driver) -> None:
    name = "x" * 32_767
    topic = elect_leaders.TopicPartitions(topic=name, partitions=(0,))
    elected = driver.handle(elect_leaders.ElectLeadersRequest(topic_partitions=(topic,)))
    text = elected.replica_election_results[0].partition_result[0].error_message
    created = driver.handle(topics.CreateTopicsRequest(topics=(creatable(name),)))
    assert len(text) < 200
    assert len(created.topics[0].error_message) < 700
