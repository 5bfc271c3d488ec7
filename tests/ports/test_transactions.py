"""Transactions are refused immediately, with a sentence for the client and a line in the log."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from quorate.broker.kafka.groups.find_coordinator import NO_TRANSACTIONS, TRANSACTION
from quorate.quorum.log_limit import INTERVAL_MS
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.find_coordinator import FindCoordinatorRequest
from tests.ports.node import BROKER_PORT, PortCluster
from tests.ports.requests import World

ASKED = FindCoordinatorRequest(
    key="connect-cluster", key_type=TRANSACTION, coordinator_keys=("connect-cluster",)
)


@pytest.mark.parametrize(
    ("version", "error"),
    [(3, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED), (4, ErrorCode.INVALID_REQUEST)],
)
def test_a_transactional_id_has_no_coordinator(
    prepared: tuple[PortCluster, World], version: int, error: ErrorCode
) -> None:
    node, _ = prepared
    answer: Any = node.ask(node.connect(BROKER_PORT), ASKED, version)
    found = answer.coordinators[0] if version >= 4 else answer
    assert (found.error_code, found.error_message) == (error, NO_TRANSACTIONS)


def test_the_log_names_the_client_that_asks_again_and_again(
    prepared: tuple[PortCluster, World], caplog: pytest.LogCaptureFixture
) -> None:
    """A Connect worker asks again every 250 ms."""
    node, _ = prepared
    raw = node.connect(BROKER_PORT)
    node.run(INTERVAL_MS / 1000)
    with caplog.at_level(logging.WARNING, "quorate.kafka"):
        for _ in range(4):
            node.ask(raw, ASKED, 4)
        node.run(INTERVAL_MS / 1000)
        node.ask(raw, ASKED, 4)
    lines = [each for each in caplog.messages if "transactional id connect-cluster" in each]
    assert len(lines) == 2
    assert "of client test at " in lines[0] and NO_TRANSACTIONS in lines[0]
    assert lines[1].endswith("(3 more like it were not logged)")
