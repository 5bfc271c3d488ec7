"""Runs of a scenario on a temporary cluster, or on the cluster in a directory.

Both return a result in bounded time, also if the cluster does not start or is broken afterwards.
Only mistakes that are known before anything starts raise an error."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from quorate.cli.chaos.control.cluster import Cluster
from quorate.cli.chaos.control.cluster_requests import PROTOCOL_IN_FILE
from quorate.cli.chaos.control.local_cluster import LocalCluster
from quorate.cli.chaos.loading.loader import require_nodes
from quorate.cli.chaos.loading.reading import ScenarioError
from quorate.cli.chaos.results.result import Result
from quorate.cli.chaos.results.view import View
from quorate.cli.chaos.run.ending import Interruption, reason
from quorate.cli.chaos.run.evidence import failed_result
from quorate.cli.chaos.run.run import run_scenario
from quorate.cli.chaos.run.setup import Plan
from quorate.cli.chaos.scenario.scenario import Scenario, Variant
from quorate.cli.client.client_file import ClientFile
from quorate.cli.client.errors import NotReachable, Refused
from quorate.cli.nodes.client_protocol import refuse_other_protocol
from quorate.cli.nodes.cluster_dir import CLIENT_LISTENER, alive
from quorate.cli.nodes.secured_up import client_file_of, is_secured
from quorate.cli.nodes.server import load_config, pair_of
from quorate.config.listeners import PLAINTEXT, PROTOCOL_MAP, split_protocol_map
from quorate.config.node_keys import NODE_KEYS

NO_FILE = ClientFile()
LOGIN_S = 5.0
"""The time, in s, for the first login of a run."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def signals_as_interrupt() -> Iterator[None]:
    """Let SIGINT, SIGTERM and SIGHUP raise KeyboardInterrupt, outside of a run's event loop."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt(signal.Signals(number).name)

    before = {number: signal.signal(number, interrupt) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def interruptible(plan: Plan, cluster: Cluster, view: View) -> Result:
    """Run the plan, and let signals end it early. Raise nothing."""
    interruption = Interruption()
    interruption.install(asyncio.get_running_loop())
    return await run_scenario(plan, cluster, view, interruption)


def file_of_clients(directory: Path, command_config: str | None) -> ClientFile:
    """Return the settings in --command-config, or in the file that `quorate up --secure` has
    written into its directory. Raise Refused if they are not valid."""
    if command_config is None and is_secured(directory):
        command_config = str(client_file_of(directory))
    return ClientFile.read(command_config)


def existing_cluster(
    scenario: Scenario,
    directory: Path,
    keep_config: bool = False,
    client_file: ClientFile = NO_FILE,
) -> LocalCluster:
    """Return the cluster in `directory`.

    Raise Refused if there is no cluster, if a node does not run, if one lacks the fault socket that
    the scenario needs, if the scenario names a node that the cluster does not have, or if brokers
    have another protocol than the file. Unless `keep_config`, also raise it if a node lacks a
    config of the scenario."""
    cluster = LocalCluster(directory, client_file=client_file)
    if not cluster.directory.file.exists():
        raise Refused(f"{directory}: there is no cluster in this directory (no cluster.json)")
    entry = cluster.entry
    nodes = (*entry["controllers"], *entry["brokers"])
    down = [str(node["id"]) for node in nodes if not alive(node["pid"])]
    if down:
        raise Refused(
            f"{directory}: every node must run before a scenario; down: {', '.join(down)}; "
            f"`quorate chaos heal --dir {directory}` starts them"
        )
    faults = all(cluster.directory.faults_socket(node["id"]).exists() for node in nodes)
    if scenario.needs_faults and not faults:
        raise Refused(
            f"{directory}: {scenario.name} needs nodes with a fault socket: start them with "
            f"`quorate up --faults --dir {directory}`"
        )
    refuse_unknown_nodes(
        scenario,
        [node["id"] for node in entry["controllers"]],
        [node["id"] for node in entry["brokers"]],
    )
    broker_files = [cluster.directory.node_file(node["id"]) for node in entry["brokers"]]
    configs = (load_config(str(file)) for file in broker_files)
    refuse_other_protocol(configs, client_file.security.protocol, PROTOCOL_IN_FILE)
    if not keep_config:
        files = {node["id"]: cluster.directory.node_file(node["id"]) for node in nodes}
        refuse_other_configs(scenario, directory, files)
    return LocalCluster(directory, faults=faults, client_file=client_file)


def refuse_other_configs(
    scenario: Scenario, directory: Path, node_files: Mapping[int, Path]
) -> None:
    """Raise Refused if a node has another value of a config that the scenario sets.

    `node_files` are the server.properties of the nodes. They are read only if there are such
    configs."""
    for node, file in node_files.items() if scenario.cluster.config else ():
        config = load_config(str(file))
        for name, value in scenario.cluster.config.items():
            if config[name] != NODE_KEYS[name].parse(value):
                wanted = " ".join(
                    f"--override {each}={text}" for each, text in scenario.cluster.config.items()
                )
                raise Refused(
                    f"{directory}: {scenario.name} needs {name}={value}, and node {node} has "
                    f"{config[name]}. Restart the cluster with `quorate up --faults --dir "
                    f"{directory} {wanted}`, or give --keep-config"
                )


def refuse_unknown_nodes(
    scenario: Scenario, controllers: Sequence[int], brokers: Sequence[int]
) -> None:
    """Raise Refused, with file and line, if a step names a node that does not exist."""
    try:
        require_nodes(scenario, controllers, brokers)
    except ScenarioError as error:
        raise Refused(str(error)) from None


def run_on_existing_cluster(
    scenario: Scenario,
    variants: tuple[Variant, ...],
    seed: int,
    directory: Path,
    keep_config: bool,
    view: View,
    client_file: ClientFile = NO_FILE,
) -> Result:
    """Run the scenario on the cluster in `directory`, with a topic that is deleted afterwards.

    Raise Refused as `existing_cluster` does, and for a wrong login, before anything is changed."""
    cluster = existing_cluster(scenario, directory, keep_config, client_file)
    refuse_wrong_login(cluster)
    topic = f"chaos-{scenario.name}-{time.time_ns() // 1_000_000}"
    result = asyncio.run(interruptible(Plan(scenario, variants, topic, seed), cluster, view))
    return without_leftovers(result, f"topic {topic}", lambda: cluster.delete_topic(topic))


def refuse_wrong_login(cluster: LocalCluster) -> None:
    """Raise Refused if the cluster does not accept the certificate or the login of the file.

    A cluster that does not answer is no reason, because the verdict says so."""
    if cluster.client_file.security.protocol == PLAINTEXT:
        return
    admin = cluster.admin(LOGIN_S)
    try:
        admin.metadata(())
    except NotReachable:
        return
    finally:
        admin.close()


def without_leftovers(result: Result, what: str, remove: Callable[[], None]) -> Result:
    """Return the result after `remove`. If it fails, the result says what is left behind.

    A failure never replaces the verdict."""
    try:
        with signals_as_interrupt():
            remove()
    except (Exception, KeyboardInterrupt) as error:  # the verdict must not be lost
        return replace(result, left_behind=(*result.left_behind, f"{what}: {reason(error)}"))
    return result


def refuse_tls_and_sasl(config: Mapping[str, str]) -> None:
    """Raise Refused if the brokers of a new cluster with these configs would demand TLS or SASL."""
    protocols = split_protocol_map(config.get(PROTOCOL_MAP, ""))
    found = protocols.get(CLIENT_LISTENER, PLAINTEXT)
    if found != PLAINTEXT:
        raise Refused(
            f"{PROTOCOL_MAP}: {CLIENT_LISTENER} has {found}, and the clients of a temporary "
            "cluster use neither TLS nor SASL. Start a cluster with `quorate up`, and give its "
            "--dir and --command-config"
        )


def run_on_temporary_cluster(
    scenario: Scenario,
    variants: tuple[Variant, ...],
    seed: int,
    overrides: tuple[str, ...],
    keep: bool,
    view: View,
) -> Result:
    """Run the scenario on a new cluster in a temporary directory, removed unless `keep`.

    `overrides` (KEY=VALUE) replace configs of the scenario. Raise UsageError or Refused for a wrong
    override, an unknown node, or brokers that demand TLS or SASL. A cluster that does not start is
    a bad result."""
    shape = scenario.cluster
    config = {**shape.config, **dict(pair_of(each) for each in overrides)}
    count = shape.controllers
    brokers = range(count + 1, count + shape.brokers + 1)
    refuse_unknown_nodes(scenario, range(1, count + 1), brokers)
    refuse_tls_and_sasl(config)
    root = Path(tempfile.mkdtemp(prefix="quorate-chaos-"))
    cluster = LocalCluster(root / "cluster", faults=scenario.needs_faults)
    options = [f"--controllers={shape.controllers}", f"--brokers={shape.brokers}"]
    options += [f"--racks={shape.racks}"]
    options += [f"--override={name}={value}" for name, value in config.items()]
    plan = Plan(scenario, variants, "chaos", seed)
    begin_s = time.monotonic()
    try:
        with signals_as_interrupt():
            took_s = cluster.start(*options)
        shown = f"{shape.controllers} controllers and {shape.brokers} brokers"
        view.line(f"{'':>10}  {shown}, ready after {took_s:.1f} s")
        result = asyncio.run(interruptible(plan, cluster, view))
    except (Exception, KeyboardInterrupt) as error:  # the verdict must not be lost
        duration_ms = round((time.monotonic() - begin_s) * 1000)
        why = f"the cluster could not be used: {reason(error)}"
        result = failed_result(plan, why, time.time_ns() // 1_000_000 - duration_ms, duration_ms)

    def remove() -> None:
        cluster.stop()
        if not keep:
            shutil.rmtree(root, ignore_errors=True)

    result = without_leftovers(result, f"cluster in {root}", remove)
    return replace(result, left_behind=(*result.left_behind, f"kept: {root}")) if keep else result
