"""The parts of a broker that the fetch sessions of its followers share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quorate.broker.replication.appends.delayed_operations import (
    CoalescedCallbacks,
    DelayedOperations,
)
from quorate.broker.replication.partitions.partition_registry import PartitionRegistry
from quorate.broker.replication.partitions.replication_throttle import ReplicationThrottle
from quorate.quorum.seams import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionContext:
    """The parts of a broker that the sessions of its followers use. `room` returns the bytes that
    one more response may have (`quorum/rpc/budget.py`)."""

    clock: Clock
    delayed_operations: DelayedOperations
    callbacks: CoalescedCallbacks
    registry: PartitionRegistry
    throttle: ReplicationThrottle
    room: Callable[[], int]
