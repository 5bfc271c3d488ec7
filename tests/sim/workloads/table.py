"""The workloads and the seeds that they belong to.

Compaction, eligible leader replicas and quotas get rows here: a class with the methods of
`Workload`, whose `keys` configure the nodes.
"""

from __future__ import annotations

from random import Random

from tests.sim.workloads.autocreated import AutoCreated
from tests.sim.workloads.fetch_sessions import FetchSessions
from tests.sim.workloads.membership import Membership
from tests.sim.workloads.offsets import Offsets
from tests.sim.workloads.recreated import Recreated
from tests.sim.workloads.trimmed import Trimmed
from tests.sim.workloads.workload import Workload

WORKLOADS: tuple[type[Workload], ...] = (
    Offsets,
    Recreated,
    Trimmed,
    AutoCreated,
    Membership,
    FetchSessions,
)
PER_SEED = 2


def workloads_of(seed: int) -> list[type[Workload]]:
    """Return the workloads of a seed with brokers."""
    return Random(f"{seed}/workloads").sample(WORKLOADS, PER_SEED)
