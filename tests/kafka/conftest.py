"""One cluster of ours and Apache Kafka's tools, for all tests here; skipped without a Java."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.cluster import ProcessCluster, running
from tests.kafka.tools import missing

TOPIC = "orders"


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessCluster]:
    if reason := missing():
        pytest.skip(reason)
    with running(tmp_path_factory.mktemp("kafka") / "cluster") as shared:
        yield shared
