"""Distances between hosts: in some seeds, messages of some directions take much longer than others.

A message of one node therefore overtakes those of another node by more than the time of an ISR
change or of an election. A direction is near, or far with a constant or a varying latency.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.sim.world.network import PathSettings

FAR_SHARE = 0.4
"""The share of the directions between two hosts that are far."""
LONGEST_MS = 60.0
RETRANSMISSION_BACKOFF = 1.0
"""After a block ends, each link delays its held data by up to the duration of the block."""


def distances(seed: int | str) -> Callable[[str, str], PathSettings]:
    """Return a function that gives the settings of a direction between two hosts."""

    def between(source: str, target: str) -> PathSettings:
        random = Random(f"{seed}/distance/{source}/{target}")
        near = PathSettings(retransmission_backoff=RETRANSMISSION_BACKOFF)
        if random.random() >= FAR_SHARE:
            return near
        longest_ms = random.uniform(1.0, LONGEST_MS)
        least_ms = random.choice((near.min_latency_ms, 0.9 * longest_ms))
        return PathSettings(
            min_latency_ms=least_ms,
            max_latency_ms=longest_ms,
            retransmission_backoff=RETRANSMISSION_BACKOFF,
        )

    return between
