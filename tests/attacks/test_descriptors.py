"""Controllers whose last file descriptor is a link of an attacker."""

from __future__ import annotations

import asyncio
import os
import resource
from pathlib import Path

import pytest

from tests.attacks.node_links import creates, greeted
from tests.attacks.nodes import dead
from tests.attacks.run import Site, fresh

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        not hasattr(resource, "prlimit"), reason="only Linux limits other processes"
    ),
]

LEFT = 20
"""Descriptors that a controller may open after its start. Its bounds of links do not know this
limit, so only the disk's own means are left."""
SPARE = 2
"""Descriptors that the disk may have freed at a moment."""
LINKS = 100
TOPICS = 30


def limited(pid: int) -> int:
    """Let a process open LEFT more descriptors, and return its limit."""
    most = max(int(name) for name in os.listdir(f"/proc/{pid}/fd")) + 1 + LEFT
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, most))
    return most


async def crowded(site: Site, limits: dict[int, int]) -> None:
    target = site.target()
    await target.prepare()
    held = [link for each in target.controllers for link in await greeted(target, each, LINKS)]
    try:
        for node_id, limit in limits.items():
            left = limit - len(os.listdir(f"/proc/{site.pids[node_id]}/fd"))
            assert left <= SPARE, "the attacker does not hold the descriptors"
        for number in range(TOPICS):
            await creates(target, f"crowded-{number}")
    finally:
        for link in held:
            link.close()
    await creates(target, "afterwards")


def test_controllers_without_a_free_descriptor_go_on(tmp_path: Path) -> None:
    with fresh(tmp_path) as site:
        ids = sorted(site.pids)
        controllers = ids[: len(site.target().controllers)]
        limits = {node_id: limited(site.pids[node_id]) for node_id in controllers}
        asyncio.run(crowded(site, limits))
        assert not dead(site.pids)
