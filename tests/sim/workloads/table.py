"""The workloads and the seeds that they belong to.

A row is a class with the methods of `Workload`. Its `keys` configure the nodes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from random import Random

from tests.sim.workloads.autocreated import AutoCreated
from tests.sim.workloads.compacted import Compacted
from tests.sim.workloads.credentials import Credentials
from tests.sim.workloads.fetch_sessions import FetchSessions
from tests.sim.workloads.membership import Membership
from tests.sim.workloads.min_isr import MinIsr
from tests.sim.workloads.moves import Moves
from tests.sim.workloads.offsets import Offsets
from tests.sim.workloads.permissions import Permissions
from tests.sim.workloads.quotas import Quotas
from tests.sim.workloads.recreated import Recreated
from tests.sim.workloads.throttled import Throttled
from tests.sim.workloads.trimmed import Trimmed
from tests.sim.workloads.unclean import Unclean
from tests.sim.workloads.unregistered import Unregistered
from tests.sim.workloads.workload import Workload

WORKLOADS: tuple[type[Workload], ...] = (
    Offsets,
    Recreated,
    Trimmed,
    AutoCreated,
    Membership,
    FetchSessions,
    Compacted,
    Throttled,
    Quotas,
    Unregistered,
    Unclean,
    MinIsr,
    Moves,
    Permissions,
    Credentials,
)
PER_SEED = 3
OWN_DRAWS: Mapping[type[Workload], float] = {Moves: 0.1, Permissions: 0.1, Credentials: 0.1}
"""The share of the seeds that have each of these workloads. They are drawn separately, so that the
others keep their seeds. A swarm with such a workload has no other one."""


def workloads_of(seed: int, always: Collection[str] = ()) -> list[type[Workload]]:
    """Return the workloads of a seed with brokers, those in `always` first."""
    drawn = [each for each in WORKLOADS if each not in OWN_DRAWS]
    found = Random(f"{seed}/workloads").sample(drawn, PER_SEED)
    own = [
        work
        for work, share in OWN_DRAWS.items()
        if Random(f"{seed}/{work.name_of}").random() < share
    ]
    named = [each for each in WORKLOADS if each.name_of in always]
    rest = [each for each in (*own, *found[len(own) :]) if each not in named]
    return [*named, *rest[: max(0, PER_SEED - len(named))]]
