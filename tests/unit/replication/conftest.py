from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.unit.replication.cluster import ReplicaCluster


@pytest.fixture
def make_cluster() -> Iterator[Callable[..., ReplicaCluster]]:
    made: list[ReplicaCluster] = []

    def make(**settings: object) -> ReplicaCluster:
        made.append(ReplicaCluster(**settings))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for cluster in made:
        cluster.close()
