"""The clients of a run do not share connections, on which brokers answer in order."""

from __future__ import annotations

from typing import Any, cast

import pytest

from quorate.cli.chaos.loading.loader import load
from quorate.cli.chaos.run.setup import clients
from quorate.cli.chaos.workload.brokers import Brokers
from quorate.cli.client.errors import Refused


class NoBroker:
    """A client's metadata of a cluster that does not answer."""

    topic = "t"
    made: list[NoBroker]

    def __init__(self) -> None:
        self.leaders: dict[int, Any] = {}
        self.known: list[int] = []
        self.refreshed = self.closed = False
        self.made.append(self)

    async def refresh(self) -> None:
        """Record the call."""
        self.refreshed = True

    def close(self) -> None:
        """Record the call."""
        self.closed = True


async def test_each_client_has_connections_of_its_own() -> None:
    NoBroker.made = []
    with pytest.raises(Refused, match="no broker knows the leaders of all partitions"):
        async with clients(lambda: cast(Brokers, NoBroker()), load("leader-kill").workload):
            raise AssertionError("the clients cannot start")
    assert len(NoBroker.made) == 3
    assert all(each.refreshed and each.closed for each in NoBroker.made)
