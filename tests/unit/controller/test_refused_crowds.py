"""Requests with many items that the rules refuse: they are decided in steps, too."""

from __future__ import annotations

import pytest

from quorate.quorum.controller.state.decision_steps import STEP_RECORDS
from quorate.quorum.protocol.schemas.reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignableTopic,
)
from quorate.quorum.protocol.schemas.user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from quorate.quorum.protocol.wire import Message
from tests.unit.controller.harness import Driver

ITEMS = 10 * STEP_RECORDS


def deletions() -> Message:
    return AlterUserScramCredentialsRequest(
        deletions=tuple(
            ScramCredentialDeletion(name=f"user {number}", mechanism=1) for number in range(ITEMS)
        ),
        upsertions=(),
    )


def topics_without_partitions() -> Message:
    return AlterPartitionReassignmentsRequest(
        topics=tuple(ReassignableTopic(name=f"t{number}", partitions=()) for number in range(ITEMS))
    )


@pytest.mark.parametrize("request_", [deletions(), topics_without_partitions()])
def test_refused_items_are_decided_in_steps(request_: Message) -> None:
    """20,000 unknown users were one step of 80 ms on the active controller."""
    driver = Driver()
    driver.handle(request_)
    assert len(driver.pauses) >= ITEMS // STEP_RECORDS
