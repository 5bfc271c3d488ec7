"""controller_mutation_rate: which requests are refused, and for how long clients wait (KIP-599)."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.quorum.controller.state.context import Caller
from quorate.quorum.metadata.records import ClientQuotaRecord, QuotaEntity
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from tests.unit.controller.harness import Driver

EXCEEDED = ErrorCode.THROTTLING_QUOTA_EXCEEDED
STRICT = {CreateTopicsRequest: 6, CreatePartitionsRequest: 3, DeleteTopicsRequest: 5}


def quota_of_two() -> Driver:
    """A cluster with one broker. The client "c" may change 2 partitions per second, and 22 at once,
    which is the burst of all 11 windows."""
    driver = Driver()
    driver.start(1)
    entity = (QuotaEntity(entity_type="client-id", entity_name="c"),)
    driver.append([ClientQuotaRecord(entity=entity, key="controller_mutation_rate", value=2.0)])
    return driver


def ask(
    driver: Driver,
    request: object,
    *,
    client: str = "c",
    strict: bool = True,
    user: str = "ANONYMOUS",
) -> Any:
    version = STRICT[type(request)] - (not strict)
    return driver.take(
        driver.controller.handle(
            request,
            now_ms=driver.now_ms,
            next_offset=len(driver.log),
            caller=Caller(client, version, user=user),
        )
    )


def create(*topics: tuple[str, int], validate_only: bool = False) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=tuple(
            CreatableTopic(
                name=name, num_partitions=count, replication_factor=1, assignments=(), configs=()
            )
            for name, count in topics
        ),
        timeout_ms=1000,
        validate_only=validate_only,
    )


def delete(*names: str) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(
        topics=tuple(DeleteTopicState(name=name) for name in names), timeout_ms=1000
    )


def grow(name: str, count: int) -> CreatePartitionsRequest:
    topic = CreatePartitionsTopic(name=name, count=count, assignments=None)
    return CreatePartitionsRequest(topics=(topic,), timeout_ms=1000, validate_only=False)


def codes(response: Any) -> list[int]:
    names = ("topics", "responses", "results")
    items = next(getattr(response, name) for name in names if hasattr(response, name))
    return [each.error_code for each in items]


def test_a_change_may_make_a_debt_and_the_next_one_is_refused() -> None:
    driver = quota_of_two()
    response = ask(driver, create(("a", 20), ("b", 6), ("c", 1)))
    assert codes(response) == [0, 0, EXCEEDED]
    assert response.throttle_time_ms == 2000, "4 partitions of debt at 2 a second"
    assert [each.error_message for each in response.topics][2]
    assert set(driver.image.topic_names()) == {"a", "b"}, "nothing of the refused one is done"
    driver.run_until(1999)
    assert codes(ask(driver, delete("a"))) == [EXCEEDED]
    driver.run_until(2000)
    response = ask(driver, delete("a"))
    assert (codes(response), response.throttle_time_ms) == ([0], 0)
    response = ask(driver, grow("b", 7))
    assert (codes(response), response.throttle_time_ms) == ([EXCEEDED], 10_000)
    assert len(driver.image.topics[driver.image.topic_ids["b"]].partitions) == 6


@pytest.mark.parametrize("request_", [create(("x", 30)), delete("a"), grow("a", 31)])
def test_an_old_version_is_carried_out_and_throttled(request_: Any) -> None:
    """Its client does not know the error."""
    driver = quota_of_two()
    ask(driver, create(("a", 30)))
    assert codes(ask(driver, request_)) == [EXCEEDED]
    response = ask(driver, request_, strict=False)
    assert codes(response) == [0]
    assert response.throttle_time_ms >= 4000


def test_other_clients_and_nodes_are_not_bounded() -> None:
    driver = quota_of_two()
    ask(driver, create(("a", 30)))
    assert codes(ask(driver, create(("b", 30)), client="other")) == [0]
    driver.handle(create(("c", 30)))
    assert "c" in driver.image.topic_ids


def test_a_quota_of_a_user_counts_all_its_client_ids() -> None:
    driver = Driver()
    driver.start(1)
    entity = (QuotaEntity(entity_type="user", entity_name="alice"),)
    driver.append([ClientQuotaRecord(entity=entity, key="controller_mutation_rate", value=2.0)])
    assert codes(ask(driver, create(("a", 30)), client="x", user="alice")) == [0]
    assert codes(ask(driver, create(("b", 1)), client="y", user="alice")) == [EXCEEDED]
    assert codes(ask(driver, create(("b", 1)), client="x", user="bob")) == [0]
    assert codes(ask(driver, create(("c", 1)), client="x")) == [0]


def test_the_partitions_of_a_request_to_validate_count() -> None:
    """As in Kafka."""
    driver = quota_of_two()
    assert codes(ask(driver, create(("a", 30), validate_only=True))) == [0]
    assert codes(ask(driver, create(("a", 1)))) == [EXCEEDED]


def test_the_throttle_is_counted_for_the_metrics() -> None:
    driver = quota_of_two()
    ask(driver, create(("a", 24), ("b", 1)))
    quotas = driver.controller.mutation_quotas
    assert (quotas.throttled, quotas.throttled_ms) == (1, 1000)
