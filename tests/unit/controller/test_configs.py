"""IncrementalAlterConfigs and AlterConfigs."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.quorum.controller.state.result import MAX_RECORDS_PER_USER_OP
from quorate.quorum.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE
from quorate.quorum.metadata.records import ConfigRecord
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from tests.unit.controller.harness import Driver

SET, DELETE, APPEND, SUBTRACT = range(4)
Operation = tuple[str, int, str | None]


def resource(
    resource_type: int, name: str, *operations: Operation
) -> IncrementalAlterConfigsResource:
    return IncrementalAlterConfigsResource(
        resource_type=resource_type,
        resource_name=name,
        configs=tuple(
            IncrementalAlterableConfig(name=key, config_operation=code, value=value)
            for key, code, value in operations
        ),
    )


def alter(
    driver: Driver, *resources: IncrementalAlterConfigsResource, validate_only: bool = False
) -> list[Any]:
    request = IncrementalAlterConfigsRequest(resources=resources, validate_only=validate_only)
    return list(driver.handle(request).responses)


def alter_topic(driver: Driver, *operations: Operation) -> int:
    (response,) = alter(driver, resource(TOPIC_RESOURCE, "t", *operations))
    assert bool(response.error_message) == bool(response.error_code)
    assert (response.resource_type, response.resource_name) == (TOPIC_RESOURCE, "t")
    return int(response.error_code)


def with_topic() -> Driver:
    driver = Driver()
    driver.start(1)
    driver.create("t", (1,))
    return driver


def test_set_and_delete() -> None:
    driver = with_topic()
    operations = [("retention.ms", SET, "1000"), ("segment.ms", SET, "7")]
    assert alter_topic(driver, *operations) == ErrorCode.NONE
    assert driver.image.config(TOPIC_RESOURCE, "t") == {"retention.ms": "1000", "segment.ms": "7"}
    assert alter_topic(driver, ("retention.ms", DELETE, None)) == ErrorCode.NONE
    assert driver.image.config(TOPIC_RESOURCE, "t") == {"segment.ms": "7"}


@pytest.mark.parametrize(
    ("before", "operation", "after"),
    [
        (None, (APPEND, "compact"), "delete,compact"),  # to the default
        ("compact", (APPEND, "delete,compact"), "compact,delete"),
        ("compact,delete", (SUBTRACT, "delete"), "compact"),
        ("compact", (SUBTRACT, "delete"), "compact"),
    ],
)
def test_append_and_subtract(before: str | None, operation: tuple[int, str], after: str) -> None:
    driver = with_topic()
    if before is not None:
        alter_topic(driver, ("cleanup.policy", SET, before))
    assert alter_topic(driver, ("cleanup.policy", *operation)) == ErrorCode.NONE
    assert driver.image.config(TOPIC_RESOURCE, "t") == {"cleanup.policy": after}


@pytest.mark.parametrize(
    ("operations", "error"),
    [
        ([("no.such.config", SET, "1")], ErrorCode.INVALID_CONFIG),
        ([("retention.ms", SET, "soon")], ErrorCode.INVALID_CONFIG),
        ([("retention.ms", APPEND, "1")], ErrorCode.INVALID_CONFIG),
        ([("cleanup.policy", SUBTRACT, "delete")], ErrorCode.INVALID_CONFIG),  # nothing is left
        ([("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", 9, "1")], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", SET, "1"), ("retention.ms", DELETE, None)], ErrorCode.INVALID_REQUEST),
        (
            [("min.compaction.lag.ms", SET, "9"), ("max.compaction.lag.ms", SET, "8")],
            ErrorCode.INVALID_CONFIG,
        ),
    ],
)
def test_topic_configs_that_are_refused(operations: list[Operation], error: ErrorCode) -> None:
    driver = with_topic()
    length = len(driver.log)
    assert alter_topic(driver, *operations) == error
    assert len(driver.log) == length


def test_a_key_is_checked_together_with_those_that_are_set() -> None:
    driver = with_topic()
    alter_topic(driver, ("max.compaction.lag.ms", SET, "100"))
    assert alter_topic(driver, ("min.compaction.lag.ms", SET, "101")) == ErrorCode.INVALID_CONFIG
    assert alter_topic(driver, ("min.compaction.lag.ms", SET, "100")) == ErrorCode.NONE


def test_a_topics_unchanged_value_is_not_written() -> None:
    driver = with_topic()
    alter_topic(driver, ("retention.ms", SET, "1000"))
    length = len(driver.log)
    operations = [("retention.ms", SET, "1000"), ("segment.ms", DELETE, None)]
    assert alter_topic(driver, *operations) == ErrorCode.NONE
    assert len(driver.log) == length


def test_kafka_14136_a_brokers_value_is_always_written() -> None:
    driver = with_topic()
    change = resource(BROKER_RESOURCE, "1", ("log.cleaner.threads", SET, "2"))
    for _ in range(2):
        length = len(driver.log)
        assert alter(driver, change)[0].error_code == ErrorCode.NONE
        assert isinstance(driver.log[length], ConfigRecord)


@pytest.mark.parametrize(
    ("name", "key", "value", "error"),
    [
        ("", "unclean.leader.election.enable", "true", ErrorCode.NONE),
        ("1", "log.retention.ms", "5", ErrorCode.NONE),
        ("1", "a.plugins.own", "x", ErrorCode.INVALID_REQUEST),
        ("", "a.plugins.own", "x", ErrorCode.INVALID_REQUEST),
        ("1", "num.io.threads", "3", ErrorCode.INVALID_REQUEST),
        ("1", "ssl.keystore.location", "/x", ErrorCode.INVALID_REQUEST),
        ("", "log.retention.ms", "0", ErrorCode.INVALID_REQUEST),
        ("2", "log.cleaner.threads", "2", ErrorCode.BROKER_ID_NOT_REGISTERED),
        ("one", "log.cleaner.threads", "2", ErrorCode.INVALID_REQUEST),
        ("01", "log.cleaner.threads", "2", ErrorCode.INVALID_REQUEST),  # node 1 would ignore it
        ("-1", "log.cleaner.threads", "2", ErrorCode.INVALID_REQUEST),
        ("1", "log.dirs", "/x", ErrorCode.INVALID_REQUEST),
        ("1", "leader.replication.throttled.rate", "1000", ErrorCode.NONE),
        ("", "follower.replication.throttled.rate", "0", ErrorCode.NONE),
        ("1", "follower.replication.throttled.rate", "-1", ErrorCode.INVALID_REQUEST),
        ("1", "leader.replication.throttled.rate", "1.5", ErrorCode.INVALID_REQUEST),
        ("1", "replica.alter.log.dirs.io.max.bytes.per.second", "1000", ErrorCode.NONE),
        ("", "replica.alter.log.dirs.io.max.bytes.per.second", "-1", ErrorCode.INVALID_REQUEST),
        ("1", "unclean.leader.election.enable", "perhaps", ErrorCode.INVALID_REQUEST),
    ],
)
def test_broker_configs(name: str, key: str, value: str, error: ErrorCode) -> None:
    driver = with_topic()
    (response,) = alter(driver, resource(BROKER_RESOURCE, name, (key, SET, value)))
    assert response.error_code == error
    written = driver.image.config(BROKER_RESOURCE, name)
    assert written == ({key: value} if error == ErrorCode.NONE else {})


def test_throttles_that_are_not_set_can_be_deleted() -> None:
    """Kafka's reassignment tool deletes all three of each broker."""
    keys = (
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    )
    driver = with_topic()
    change = resource(BROKER_RESOURCE, "1", *((key, DELETE, None) for key in keys))
    assert alter(driver, change)[0].error_code == ErrorCode.NONE
    assert driver.image.config(BROKER_RESOURCE, "1") == {}


def test_a_stored_config_that_cannot_be_set_can_be_deleted() -> None:
    driver = with_topic()
    for name in ("", "1"):
        driver.append(
            [
                ConfigRecord(resource_type=BROKER_RESOURCE, resource_name=name, name=key, value="x")
                for key in ("a.plugins.own", "log.dirs", "num.io.threads")
            ]
        )
        stored = driver.image.config(BROKER_RESOURCE, name)
        change = resource(BROKER_RESOURCE, name, *((key, DELETE, None) for key in stored))
        assert len(stored) == 3
        assert alter(driver, change)[0].error_code == ErrorCode.NONE
        assert driver.image.config(BROKER_RESOURCE, name) == {}


@pytest.mark.parametrize(
    ("kind", "name", "key"),
    [
        (BROKER_RESOURCE, "", "max.connections"),
        (BROKER_RESOURCE, "1", "max.connections"),
        (TOPIC_RESOURCE, "t", "retention.ms"),
    ],
)
def test_a_stored_config_that_cannot_be_set_blocks_no_other(kind: int, name: str, key: str) -> None:
    driver = with_topic()
    bad = ConfigRecord(resource_type=kind, resource_name=name, name="a.plugins.own", value="x")
    driver.append([bad])
    (changed,) = alter(driver, resource(kind, name, (key, SET, "1000")))
    assert changed.error_code == ErrorCode.NONE, changed.error_message
    stored = {"a.plugins.own": "x", key: "1000"}
    assert driver.image.config(kind, name) == stored
    (refused,) = alter(driver, resource(kind, name, (key, SET, "2000"), ("no.such", SET, "1")))
    assert "no.such" in (refused.error_message or "")
    assert driver.image.config(kind, name) == stored, "one request changes all or nothing"


@pytest.mark.parametrize(
    ("resource_type", "name", "error"),
    [
        (TOPIC_RESOURCE, "nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC_RESOURCE, "", ErrorCode.INVALID_REQUEST),
        (8, "1", ErrorCode.INVALID_REQUEST),
        (99, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_unknown_resources(resource_type: int, name: str, error: ErrorCode) -> None:
    driver = with_topic()
    (response,) = alter(driver, resource(resource_type, name, ("retention.ms", SET, "1")))
    assert response.error_code == error


def test_each_resource_stands_alone_and_a_double_one_fails() -> None:
    driver = with_topic()
    good = resource(TOPIC_RESOURCE, "t", ("retention.ms", SET, "1"))
    bad = resource(TOPIC_RESOURCE, "nope", ("retention.ms", SET, "1"))
    errors = [response.error_code for response in alter(driver, good, bad)]
    assert errors == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    errors = [response.error_code for response in alter(driver, good, good)]
    assert errors == [ErrorCode.INVALID_REQUEST] * 2


def test_validate_only_writes_nothing() -> None:
    driver = with_topic()
    change = resource(TOPIC_RESOURCE, "t", ("retention.ms", SET, "1"))
    assert alter(driver, change, validate_only=True)[0].error_code == ErrorCode.NONE
    assert driver.image.config(TOPIC_RESOURCE, "t") == {}


def test_too_many_records_fail_the_whole_request() -> None:
    driver = with_topic()
    count = MAX_RECORDS_PER_USER_OP
    many: list[Operation] = [(f"own.{index}", DELETE, None) for index in range(count)]
    small = resource(TOPIC_RESOURCE, "t", ("retention.ms", SET, "1"))
    errors = [r.error_code for r in alter(driver, small, resource(BROKER_RESOURCE, "1", *many))]
    assert errors == [ErrorCode.POLICY_VIOLATION] * 2
    assert driver.image.config(TOPIC_RESOURCE, "t") == {}


def replace_all(driver: Driver, configs: dict[str, str | None]) -> int:
    wanted = tuple(AlterableConfig(name=key, value=value) for key, value in configs.items())
    request = AlterConfigsRequest(
        resources=(
            AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name="t", configs=wanted),
        ),
        validate_only=False,
    )
    return int(driver.handle(request).responses[0].error_code)


def test_the_legacy_api_replaces_all_configs() -> None:
    driver = with_topic()
    alter_topic(driver, ("retention.ms", SET, "1"), ("segment.ms", SET, "2"))
    assert replace_all(driver, {"segment.ms": "3", "flush.ms": "4"}) == ErrorCode.NONE
    assert driver.image.config(TOPIC_RESOURCE, "t") == {"segment.ms": "3", "flush.ms": "4"}
    assert replace_all(driver, {"segment.ms": None}) == ErrorCode.INVALID_REQUEST
    assert replace_all(driver, {}) == ErrorCode.NONE
    assert driver.image.config(TOPIC_RESOURCE, "t") == {}


def test_a_stored_config_that_is_not_valid_does_not_block_the_others() -> None:
    """A log of Apache Kafka, or of an earlier version, may hold configs that are not valid here."""
    driver = with_topic()
    for key, value in (("no.such.key", "1"), ("retention.ms", "soon")):
        record = ConfigRecord(
            resource_type=TOPIC_RESOURCE, resource_name="t", name=key, value=value
        )
        driver.append([record])
    assert alter_topic(driver, ("segment.bytes", SET, "2000000")) == 0
    assert alter_topic(driver, ("other.unknown.key", SET, "1")) == ErrorCode.INVALID_CONFIG
    assert alter_topic(driver, ("no.such.key", DELETE, None)) == 0
    assert alter_topic(driver, ("retention.ms", DELETE, None)) == 0
    assert driver.image.config(TOPIC_RESOURCE, "t") == {"segment.bytes": "2000000"}


def test_the_configs_of_a_broker_that_is_gone_can_only_be_deleted() -> None:
    driver = with_topic()
    record = ConfigRecord(
        resource_type=BROKER_RESOURCE, resource_name="7", name="log.retention.ms", value="1"
    )
    driver.append([record])
    (response,) = alter(driver, resource(BROKER_RESOURCE, "7", ("log.roll.ms", SET, "5000")))
    assert response.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    (response,) = alter(driver, resource(BROKER_RESOURCE, "8", ("log.roll.ms", DELETE, None)))
    assert response.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    (response,) = alter(driver, resource(BROKER_RESOURCE, "7", ("log.retention.ms", DELETE, None)))
    assert response.error_code == ErrorCode.NONE
    assert driver.image.config(BROKER_RESOURCE, "7") == {}
