"""Produce and Fetch on a broker with an authorizer: large requests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from quorate.quorum.ids import ZERO_UUID
from quorate.quorum.protocol.acl_codes import Operation
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.produce import PartitionProduceData, ProduceRequest
from tests.ports.requests import batch, create, produced
from tests.ports.secured import ALICE, NOBODY, ROOT, TOPIC, Secured, secured_cluster

PARTITIONS = 40
"""More than one step of a Produce takes (`produce.PARTITIONS_PER_STEP`)."""


@pytest.fixture(scope="module")
def secured() -> Iterator[Secured]:
    with secured_cluster() as found:
        yield found


def to_many_partitions(topic: str) -> ProduceRequest:
    data = tuple(PartitionProduceData(index=at, records=batch()) for at in range(PARTITIONS))
    request = produced(topic, ZERO_UUID)
    return replace(request, topic_data=(replace(request.topic_data[0], partition_data=data),))


def test_a_produce_of_many_partitions_is_checked_and_appended(secured: Secured) -> None:
    """The check of permissions once did not take what the steps of a large request pass on."""
    secured.ask(ROOT, create("wide", PARTITIONS), 5)
    secured.node.run(1.0)
    request = to_many_partitions("wide")
    secured.allow((TOPIC, Operation.WRITE), principal=ALICE)
    forbidden = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    for principal, error in ((ALICE, ErrorCode.NONE), (NOBODY, forbidden)):
        answer: Any = secured.ask(principal, request, 9)
        results = answer.responses[0].partition_responses
        assert [each.error_code for each in results] == [error] * PARTITIONS
    secured.forget()
