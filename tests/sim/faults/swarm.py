"""Swarm testing: half of the seeds have few kinds of stress, and each of them more often.

In a seed with all kinds, the same rare event hardly happens twice, and two rare events hardly meet.
Other faults end the history first (Groce et al., Swarm Testing, ISSTA 2012). A swarm draws a few
kinds of faults, short and close together. It also draws the properties of the cluster that they
hit: the distances between hosts, the paces of the clients, and the timeouts of the nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from tests.sim.faults.nemesis import EVERYTHING, Profile

SHARE = 0.5
KINDS = (3, 7)
"""The least and the most kinds of faults in a swarm."""
PAUSES_S = (0.1, 0.2, 0.4)
AT_ONCE = (2, 3, 4)
LONGEST_S = (0.3, 0.8, 2.0)
PACES_S = (0.02, 0.05, 0.1)
ADMIN_PACES_S = (0.1, 0.3, 1.0)
VOTER_PACES_S = (0.05, 0.3, 1.0)
LAGS_MS = (300, 600, 1500)
CHECKPOINTS_MS = (200, 1000, 5000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Swarm:
    """The stress of one seed. Paces are the mean times between two requests of a client."""

    profile: Profile
    keys: Mapping[str, str]
    distances: bool
    pace_s: float
    admin_pace_s: float
    voter_pace_s: float


def is_swarm(seed: int, share: float = SHARE) -> bool:
    """Return True if the seed belongs to that share of all seeds."""
    return Random(f"{seed}/is swarm").random() < share


def swarm_of(seed: int) -> Swarm:
    """Return the swarm of a seed."""
    random = Random(f"{seed}/swarm")
    kinds = random.sample(list(EVERYTHING), random.randint(*KINDS))
    profile = Profile(
        name="swarm",
        pause_s=random.choice(PAUSES_S),
        at_once=random.choice(AT_ONCE),
        min_s=0.02,
        max_s=random.choice(LONGEST_S),
        weights=dict.fromkeys(kinds, 1),
    )
    lag_ms = random.choice(LAGS_MS)
    keys = {
        "replica.lag.time.max.ms": str(lag_ms),
        "replica.fetch.wait.max.ms": str(min(lag_ms // 2, 500)),
        "replica.high.watermark.checkpoint.interval.ms": str(random.choice(CHECKPOINTS_MS)),
    }
    return Swarm(
        profile=profile,
        keys=keys,
        distances=bool(random.getrandbits(1)),
        pace_s=random.choice(PACES_S),
        admin_pace_s=random.choice(ADMIN_PACES_S),
        voter_pace_s=random.choice(VOTER_PACES_S),
    )
