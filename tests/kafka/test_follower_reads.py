"""Kafka's Java consumer reads from the follower in its own rack (KIP-392)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.test_follower_reads import RECORDS, TOPIC, racked, read_by_consumers
from tests.kafka.tools import kafka

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]


def test_the_java_consumer_reads_in_its_rack(tmp_path: Path) -> None:
    with racked(tmp_path / "cluster") as (cluster, leader, follower):
        at = ("--bootstrap-server", cluster.bootstrap, "--topic", TOPIC, "--from-beginning")
        done = kafka(
            "console-consumer", *at, "--max-messages", str(RECORDS), "--timeout-ms", "30000",
            *("--consumer-property", f"client.rack=rack-{follower}"),
        )  # fmt: skip
        assert done.code == 0, done.errors
        assert len(done.lines) == RECORDS
        assert read_by_consumers(cluster, leader) == 0
        assert read_by_consumers(cluster, follower) > RECORDS * 20
