"""The CPU and the memory of a node that the requests of its peers may use, on all of its Kafka
ports.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from quorate.quorum.rpc.budget import Memory, MemoryLimits
from quorate.quorum.rpc.kafka.request_scheduler import RequestScheduler
from quorate.quorum.seams import Clock


class NodeResources:
    """The scheduler and the memory budgets of one node. All of its Kafka ports share them."""

    def __init__(
        self, clock: Clock, scheduler: RequestScheduler | None = None, memory: Memory | None = None
    ):
        """Create the resources, with default limits for those that are not given."""
        self.scheduler = RequestScheduler(clock) if scheduler is None else scheduler
        self.memory = Memory(clock) if memory is None else memory
        self.refusals: Counter[str] = Counter()
        """The requests that closed their connections (`boundary.py`), by the name of the API."""

    @classmethod
    def of(cls, clock: Clock, node: Mapping[str, Any]) -> NodeResources:
        """Return the resources of a node with these typed settings (`quorate.config`)."""
        return cls(clock, memory=Memory(clock, MemoryLimits.of(node)))
