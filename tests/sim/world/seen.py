"""The last observed state of a process, with which the next observation is compared."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from quorate.broker.partition.partition import Partition as Replica
from quorate.broker.replication.partitions.hosted_partition import HostedPartition, Key
from quorate.quorum.ids import EpochOffset
from tests.sim.world.touched import Touched


@dataclass(slots=True)
class Seen:
    """The last observed state of a process."""

    touched: Touched
    raft_epoch: int = 0
    raft_high_watermark: int = 0
    metadata_offset: int = 0
    hosted: dict[Key, HostedPartition] = field(default_factory=dict)
    high_watermarks: dict[Key, int] = field(default_factory=dict)
    checked: dict[Key, int] = field(default_factory=dict)
    looks: dict[HostedPartition, tuple[Any, ...]] = field(default_factory=dict)
    """The values of each replica when it was checked last."""
    snapshot: EpochOffset | None = None  # the latest snapshot that was compared


def looks_of(partition: Replica) -> tuple[Any, ...]:
    """Return all values of a replica that a sweep compares."""
    leadership = partition.leadership
    if leadership is None:
        return (partition.high_watermark,)
    return (
        partition.high_watermark,
        leadership.epoch,
        leadership.partition_epoch,
        leadership.isr,
    )
