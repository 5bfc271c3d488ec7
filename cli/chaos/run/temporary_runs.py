"""Runs of a scenario on a new cluster in a temporary directory."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from quorate.cli.chaos.control.local_cluster import LocalCluster
from quorate.cli.chaos.results.result import Result
from quorate.cli.chaos.results.view import View
from quorate.cli.chaos.run.ending import reason
from quorate.cli.chaos.run.evidence import failed_result
from quorate.cli.chaos.run.existing_runs import file_of_clients, refuse_unknown_nodes
from quorate.cli.chaos.run.interruptible import (
    ended_by,
    interruptible,
    signals_as_interrupt,
    without_leftovers,
)
from quorate.cli.chaos.run.setup import Plan
from quorate.cli.chaos.scenario.scenario import Scenario, Variant
from quorate.cli.client.errors import Refused
from quorate.cli.nodes.cluster_dir import CLIENT_LISTENER
from quorate.cli.nodes.server import pair_of
from quorate.config.listener_keys import listener_key
from quorate.config.listeners import PLAINTEXT, PROTOCOL_MAP, split_protocol_map
from quorate.config.node_keys import ALIASES, NODE_KEYS
from quorate.config.not_in_effect import unknown, why_not_in_effect
from quorate.config.refused_keys import may_be_refused


class NewCluster(NamedTuple):
    """The options of a temporary cluster."""

    overrides: tuple[str, ...] = ()
    """Configs of all nodes, as KEY=VALUE, in place of those of the scenario."""
    secure: bool = False
    """True for TLS, SASL and ACLs, as `quorate up --secure` sets them up."""
    keep: bool = False
    """True if the directory stays after the run."""


def refuse_overrides_without_effect(names: Iterable[str]) -> None:
    """Raise Refused if one of the names is no configuration key that changes a node."""
    for name in names:
        key = ALIASES.get(name, name)
        reason = why_not_in_effect(key)
        is_known = key in NODE_KEYS or listener_key(key) is not None or may_be_refused(key)
        if reason is None and not is_known:
            reason = unknown(key, NODE_KEYS)
        if reason is not None:
            raise Refused(f"--override: {name} would change nothing on a node: {reason}")


def refuse_tls_and_sasl(config: Mapping[str, str]) -> None:
    """Raise Refused if the brokers of a new cluster with these configs would demand TLS or SASL."""
    protocols = split_protocol_map(config.get(PROTOCOL_MAP, ""))
    found = protocols.get(CLIENT_LISTENER, PLAINTEXT)
    if found != PLAINTEXT:
        raise Refused(
            f"{PROTOCOL_MAP}: {CLIENT_LISTENER} has {found}, and the clients of a temporary "
            "cluster use neither TLS nor SASL. `--secure` starts one whose clients use both"
        )


def run_on_temporary_cluster(
    scenario: Scenario,
    variants: tuple[Variant, ...],
    seed: int,
    new: NewCluster,
    view: View,
) -> Result:
    """Run the scenario on a new cluster in a temporary directory.

    Raise UsageError or Refused for a wrong override, an unknown node, or brokers that demand TLS or
    SASL although the cluster is not `secure`. A cluster that does not start is a bad result."""
    shape = scenario.cluster
    overrides = dict(pair_of(each) for each in new.overrides)
    refuse_overrides_without_effect(overrides)
    config = {**shape.config, **overrides}
    count = shape.controllers
    brokers = range(count + 1, count + shape.brokers + 1)
    refuse_unknown_nodes(scenario, range(1, count + 1), brokers)
    if not new.secure:
        refuse_tls_and_sasl(config)
    root = Path(tempfile.mkdtemp(prefix="quorate-chaos-"))
    cluster = LocalCluster(root / "cluster", faults=scenario.needs_faults)
    options = [f"--controllers={shape.controllers}", f"--brokers={shape.brokers}"]
    options += [f"--racks={shape.racks}", *(["--secure"] if new.secure else [])]
    options += [f"--override={name}={value}" for name, value in config.items()]
    plan = Plan(scenario, variants, "chaos", seed)
    begin_s = time.monotonic()
    try:
        with signals_as_interrupt():
            took_s = cluster.start(*options)
        cluster.client_file = file_of_clients(cluster.directory.root)
        shown = f"{shape.controllers} controllers and {shape.brokers} brokers"
        view.line(f"{'':>10}  {shown}, ready after {took_s:.1f} s")
        result = asyncio.run(interruptible(plan, cluster, view))
    except (Exception, KeyboardInterrupt) as error:  # the verdict must not be lost
        duration_ms = round((time.monotonic() - begin_s) * 1000)
        why = f"the cluster could not be used: {reason(error)}"
        result = failed_result(plan, why, time.time_ns() // 1_000_000 - duration_ms, duration_ms)
        result = ended_by(result, error)

    def remove() -> None:
        cluster.stop()
        if not new.keep:
            shutil.rmtree(root, ignore_errors=True)

    result = without_leftovers(result, f"cluster in {root}", remove)
    return (
        replace(result, left_behind=(*result.left_behind, f"kept: {root}")) if new.keep else result
    )
