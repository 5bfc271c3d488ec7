"""Runs of a scenario on the cluster of `quorate up` in a directory."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from quorate.cli.chaos.control.cluster_requests import PROTOCOL_IN_FILE
from quorate.cli.chaos.control.local_cluster import LocalCluster
from quorate.cli.chaos.loading.loader import require_nodes
from quorate.cli.chaos.loading.reading import ScenarioError
from quorate.cli.chaos.results.result import Result
from quorate.cli.chaos.results.view import View
from quorate.cli.chaos.run.interruptible import interruptible, without_leftovers
from quorate.cli.chaos.run.setup import Plan
from quorate.cli.chaos.scenario.scenario import Scenario, Variant
from quorate.cli.client.client_file import ClientFile
from quorate.cli.client.errors import NotReachable, Refused
from quorate.cli.nodes.client_protocol import refuse_other_protocol
from quorate.cli.nodes.cluster_dir import alive
from quorate.cli.nodes.secured_up import client_file_of, is_secured
from quorate.cli.nodes.server import load_config
from quorate.config.listeners import PLAINTEXT
from quorate.config.node_keys import NODE_KEYS

NO_FILE = ClientFile()
LOGIN_S = 5.0
"""The time, in s, for the first login of a run."""


def file_of_clients(directory: Path, command_config: str | None = None) -> ClientFile:
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
