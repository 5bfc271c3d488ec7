"""Situations that surprise users of Kafka's Java clients."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.cluster import ProcessCluster
from tests.kafka.tools import ended, libs

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]
PROGRAM = Path(__file__).parent / "Traps.java"


def run(cluster: ProcessCluster, trap: str) -> list[str]:
    done = ended(["java", "-cp", f"{libs()}/*", str(PROGRAM), cluster.bootstrap, trap])
    assert done.code == 0, done.errors
    return done.lines


def test_a_consumer_that_closes_does_not_create_its_deleted_topic_again(
    cluster: ProcessCluster,
) -> None:
    """The brokers create missing topics that Metadata requests name. A consumer that still polls
    brings its topic back, as in Apache Kafka (allow.auto.create.topics)."""
    assert run(cluster, "closing") == ["subscribed deleted", "assigned deleted"]


def test_a_transactional_producer_fails_immediately(cluster: ProcessCluster) -> None:
    sentence, seconds = run(cluster, "transactional")
    assert "transactions are not offered" in sentence
    assert int(seconds) < 10
