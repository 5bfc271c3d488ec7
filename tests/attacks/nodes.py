"""The nodes of the attacked cluster: their processes, their leaderships and their memory."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from quorate.cli.nodes.cluster_dir import alive
from tests.attacks.target import Target

KB = 1024
MAX_GROWTH_BYTES = 160 << 20
"""One attack may leave a node larger by this much: the budgets for requests and responses, and
what the allocator keeps of them."""
SETTLE_S = 20.0
POLL_S = 0.5


@dataclass(frozen=True, slots=True)
class Standing:
    """The active controller and the leaders of the bystanders' topic at one moment."""

    controller: tuple[int, int]
    leaders: tuple[tuple[int, int, int], ...]
    """(partition, leader, leader epoch)."""


async def standing(target: Target, topic: str) -> Standing:
    controller = await target.quorum()
    found = await target.metadata(topic)
    leaders = sorted(
        (each.partition_index, each.leader_id, each.leader_epoch)
        for each in found.topics[0].partitions
    )
    return Standing(controller, tuple(leaders))


def memory_bytes(pid: int) -> int:
    """Return the resident memory of a process; 0 if it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * KB for line in lines if line.startswith("VmRSS:")), 0)


def memories(pids: dict[int, int]) -> dict[int, int]:
    return {node_id: memory_bytes(pid) for node_id, pid in pids.items()}


def dead(pids: dict[int, int]) -> list[int]:
    return [node_id for node_id, pid in pids.items() if not alive(pid)]


def settled_growth(pids: dict[int, int], before: dict[int, int]) -> dict[int, int]:
    """Wait until every node's memory is back within the bound, but not for long; return growth."""
    deadline_s = time.monotonic() + SETTLE_S
    while True:
        growth = {node: now - before[node] for node, now in memories(pids).items()}
        if max(growth.values(), default=0) <= MAX_GROWTH_BYTES or time.monotonic() > deadline_s:
            return growth
        time.sleep(POLL_S)
