"""The CPU and the memory of a node that its peers' requests may take, on all its Kafka ports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quorate.quorum.rpc.budget import Memory, MemoryLimits
from quorate.quorum.rpc.kafka.work import Work
from quorate.quorum.seams import Clock


class Shares:
    def __init__(self, clock: Clock, work: Work | None = None, memory: Memory | None = None):
        self.work = Work(clock) if work is None else work
        self.memory = Memory(clock) if memory is None else memory

    @classmethod
    def of(cls, clock: Clock, node: Mapping[str, Any]) -> Shares:
        """Return the shares of a node with these typed settings (`quorate.config`)."""
        return cls(clock, memory=Memory(clock, MemoryLimits.of(node)))
