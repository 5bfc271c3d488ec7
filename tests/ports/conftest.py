"""One node in memory for all tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.ports.node import PortCluster, running
from tests.ports.requests import World


@pytest.fixture(scope="module")
def prepared() -> Iterator[tuple[PortCluster, World]]:
    with running() as node:
        yield node, node.prepared()
