"""Refusals that once differed from Apache Kafka 4.1.1 (tests/kafka/test_secured_answers.py)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from quorate.quorum.protocol.acl_codes import Operation
from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.group_offsets import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tests.ports.requests import BUILDERS, READ
from tests.ports.secured import ALICE, GROUPS, NOBODY, Secured, secured_cluster

CLUSTER, DENIED_GROUP = (
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
)


@pytest.fixture(scope="module")
def secured() -> Iterator[Secured]:
    with secured_cluster() as found:
        yield found


def refusal(secured: Secured, key: int, version: int) -> Any:
    return secured.ask(NOBODY, BUILDERS[key](secured.world, version), version)


def test_no_producer_id_has_no_epoch(secured: Secured) -> None:
    answer = refusal(secured, ApiKey.INIT_PRODUCER_ID, 4)
    found = answer.error_code, answer.producer_id, answer.producer_epoch
    assert found == (CLUSTER, -1, -1)


@pytest.mark.parametrize(("version", "named"), [(1, 1), (2, 0), (7, 0)])
def test_the_error_of_a_group_replaces_its_topics(
    secured: Secured, version: int, named: int
) -> None:
    """Since version 2 of OffsetFetch the response has an error of its own."""
    answer = refusal(secured, ApiKey.OFFSET_FETCH, version)
    assert len(answer.topics) == named
    codes = {each.error_code for topic in answer.topics for each in topic.partitions}
    assert (codes or {answer.error_code}) == {DENIED_GROUP}


def test_refused_quotas_are_no_list(secured: Secured) -> None:
    answer = refusal(secured, ApiKey.DESCRIBE_CLIENT_QUOTAS, 1)
    assert (answer.error_code, answer.entries) == (CLUSTER, None)


def test_refused_credentials_name_no_user(secured: Secured) -> None:
    answer = refusal(secured, ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0)
    assert answer.error_code == CLUSTER
    assert [(each.user, each.error_code) for each in answer.results] == [("", CLUSTER)] * 3


def test_each_refused_reassignment_has_the_error(secured: Secured) -> None:
    answer = refusal(secured, ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0)
    (topic,) = answer.responses
    found = [(each.partition_index, each.error_code) for each in topic.partitions]
    assert (answer.error_code, topic.name, found) == (CLUSTER, READ, [(0, CLUSTER), (9, CLUSTER)])


def test_an_unknown_group_has_no_topics(secured: Secured) -> None:
    secured.allow((GROUPS, Operation.DELETE))
    one = OffsetDeleteRequestPartition(partition_index=1)
    topic = OffsetDeleteRequestTopic(name=READ, partitions=(one,))
    request = OffsetDeleteRequest(group_id="absent", topics=(topic,))
    answer: Any = secured.ask(ALICE, request, 0)
    assert (answer.error_code, answer.topics) == (ErrorCode.GROUP_ID_NOT_FOUND, ())
