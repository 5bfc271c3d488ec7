"""A Quorate cluster for tests, which runs in the process of the test, and failure scenarios.

`chaos_run` runs a scenario of `quorate chaos` on processes of its own. For a cluster, start with
`LocalCluster`, whose docstring explains its use. `with` gives a ThreadedCluster, and `async with` a
Cluster. The module also exports the errors of their methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from quorate.broker.local.cluster import Cluster
from quorate.broker.local.errors import (
    LocalClusterError,
    NodeFailed,
    NotInTime,
    TopicRefused,
    WrongState,
)
from quorate.broker.local.local_cluster import LocalCluster
from quorate.broker.local.threaded import ThreadedCluster

if TYPE_CHECKING:
    from quorate.cli.chaos.results.result import Result

__all__ = [
    "Cluster",
    "LocalCluster",
    "LocalClusterError",
    "NodeFailed",
    "NotInTime",
    "ThreadedCluster",
    "TopicRefused",
    "WrongState",
    "chaos_run",
]


def chaos_run(
    scenario: str,
    *,
    variant: str | None = None,
    partitions: int | None = None,
    seed: int = 0,
    config: Mapping[str, object] | None = None,
    secure: bool = False,
    require_good: bool = True,
) -> Result:
    """Run a scenario of `quorate chaos` on new processes, and return its result. Block.

    `scenario` is a name of `quorate chaos list`, or the path of a .toml file. `config` overrides
    configs of all nodes. `secure` gives the cluster TLS, SASL and ACLs. Only the main thread may
    call this. Raise AssertionError, which names each failed check, if the verdict is bad and
    `require_good`. Raise ScenarioError, Refused or click.UsageError for a scenario, a variant or a
    config that is not valid."""
    from quorate.cli.chaos.command import variants_named
    from quorate.cli.chaos.loading.loader import load
    from quorate.cli.chaos.results.view import View
    from quorate.cli.chaos.run.temporary_runs import NewCluster, run_on_temporary_cluster

    loaded = load(scenario).with_partitions(partitions)
    variants = variants_named(loaded, variant)
    new = NewCluster(tuple(f"{name}={value}" for name, value in (config or {}).items()), secure)
    result = run_on_temporary_cluster(loaded, variants, seed, new, View(None))
    bad = [f"{check.name}: {check.text}" for check in result.checks if not check.good]
    if bad and require_good:
        raise AssertionError(f"{scenario}: the verdict is bad: {'; '.join(bad)}")
    return result
