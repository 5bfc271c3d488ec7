"""The bounds of the audit log."""

from __future__ import annotations

import logging

import pytest

from quorate.quorum.authorization.decision import DEFAULT_DENY, Action, Client
from quorate.quorum.log_limit import INTERVAL_MS
from quorate.quorum.protocol.acl_codes import Operation, ResourceType
from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.rpc.kafka.audit_log import LINES, AuditLog
from tests.unit.rpc.kafka.fakes import FakeClock

MALLORY, ALICE = Client("User:mallory", "10.0.0.1"), Client("User:alice", "10.0.0.2")


def reading(group: str) -> Action:
    return Action(Operation.READ, ResourceType.GROUP, group)


def test_a_client_cannot_fill_the_log_with_names(caplog: pytest.LogCaptureFixture) -> None:
    """The names in its requests are those that it likes. Other clients have lines of their own."""
    clock = FakeClock()
    log = AuditLog(clock)
    refused = log.of_request(ApiKey.FIND_COORDINATOR)
    with caplog.at_level(logging.INFO, logger="kafka.authorizer.logger"):
        for number in range(1000):
            refused(MALLORY, reading(f"{number} {'x' * 30_000}"), DEFAULT_DENY)
        assert len(caplog.records) == LINES
        assert all(len(each.message) < 1000 for each in caplog.records)
        refused(ALICE, reading("a"), DEFAULT_DENY)
        refused(ALICE, reading("a"), DEFAULT_DENY)
        assert len(caplog.records) == LINES + 1
        clock.advance(INTERVAL_MS)
        refused(ALICE, reading("a"), DEFAULT_DENY)
    assert caplog.records[-1].message.endswith("(1 more like it were not logged)")
    assert log.denied == 1003
