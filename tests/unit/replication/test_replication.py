"""Produce, fetch, follow and fail over: replica managers over a simulated network."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from quorate.quorum.rpc.kafka.errors import ErrorCode
from tests.unit.replication.cluster import Cluster, led_by


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    cluster = Cluster()
    yield cluster
    cluster.close()


def test_acks_all_waits_for_the_isr(cluster: Cluster) -> None:
    topic = cluster.create("t", [led_by(1, 2, 3)])
    cluster.run(50)
    answers = cluster.produce(1, topic)
    assert not answers
    cluster.run(20)
    assert [each.error for each in answers] == [0]
    assert answers[0].base_offset == 0
    assert {end for end, _ in cluster.offsets(topic).values()} == {1}
    assert cluster.content(1, topic) == cluster.content(2, topic) == cluster.content(3, topic)
