from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.unit.replication.cluster import Cluster


@pytest.fixture
def make_cluster() -> Iterator[Callable[..., Cluster]]:
    made: list[Cluster] = []

    def make(**settings: object) -> Cluster:
        made.append(Cluster(**settings))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for cluster in made:
        cluster.close()
