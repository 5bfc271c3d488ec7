"""One cluster for all tests that leave it whole, and one of its own for each that kills nodes.

The ends of the nodes' logs stand in the report of a failed test."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from tests.clients.cluster import ProcessCluster, running

CLUSTERS: pytest.StashKey[list[ProcessCluster]] = pytest.StashKey()


@pytest.fixture(scope="session")
def clusters(request: pytest.FixtureRequest) -> list[ProcessCluster]:
    """Those that run now."""
    return request.config.stash.setdefault(CLUSTERS, [])


@pytest.fixture(scope="session")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, clusters: list[ProcessCluster]
) -> Iterator[ProcessCluster]:
    """Shared: three controllers, three brokers. Do not kill its nodes."""
    with running(tmp_path_factory.mktemp("shared") / "cluster") as shared:
        clusters.append(shared)
        yield shared
        clusters.remove(shared)


@pytest.fixture
def own_cluster(tmp_path: Path, clusters: list[ProcessCluster]) -> Iterator[ProcessCluster]:
    """For one test, which may do to it what it likes."""
    with running(tmp_path / "cluster") as own:
        clusters.append(own)
        yield own
        clusters.remove(own)


@pytest.fixture(scope="session")
def new_topic() -> Callable[[], str]:
    """Names that no other test uses."""
    numbers = itertools.count(1)
    return lambda: f"topic-{next(numbers)}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        for cluster in item.config.stash.get(CLUSTERS, []):
            report.sections.append((f"logs in {cluster.directory.root}", cluster.logs()))
    return report
