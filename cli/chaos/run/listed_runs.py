"""Runs of a scenario on the cluster of a nodes.toml, such as one of Apache Kafka."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from quorate.cli.chaos.control.listed_cluster import ListedCluster
from quorate.cli.chaos.loading.node_file import NodeList, load_nodes
from quorate.cli.chaos.loading.reading import ScenarioError
from quorate.cli.chaos.results.result import Result
from quorate.cli.chaos.results.view import View
from quorate.cli.chaos.run.existing_runs import refuse_unknown_nodes
from quorate.cli.chaos.run.interruptible import interruptible, without_leftovers
from quorate.cli.chaos.run.setup import Plan
from quorate.cli.chaos.scenario.scenario import Scenario, Variant
from quorate.cli.chaos.scenario.steps import ASKS_CONTROLLERS, DISK, RULES, STEPS
from quorate.cli.client.client_file import ClientFile
from quorate.cli.client.connection import ConnectionLost
from quorate.cli.client.errors import Refused
from quorate.config.key import ConfigError
from quorate.config.listeners import parse_servers


def run_on_listed_cluster(
    scenario: Scenario,
    variants: tuple[Variant, ...],
    seed: int,
    bootstrap: str,
    node_file: Path,
    keep_config: bool,
    view: View,
    client_file: ClientFile,
) -> Result:
    """Run the scenario on the nodes of a file, with a topic that is deleted afterwards.

    Raise Refused, before anything is changed, if the file is not valid or lists other nodes than
    those that run, or if the scenario needs something that these nodes do not have."""
    listed = nodes_of(node_file)
    try:
        servers = parse_servers("--bootstrap-server", bootstrap.split(","))
    except ConfigError as error:
        raise Refused(str(error)) from None
    cluster = ListedCluster(listed, servers, client_file)
    refuse_steps_of_sockets(scenario)
    refuse_unknown_nodes(scenario, cluster.controllers, cluster.brokers)
    cluster.refuse_other_nodes()
    if not keep_config:
        refuse_other_configs(scenario, cluster)
    topic = f"chaos-{scenario.name}-{time.time_ns() // 1_000_000}"
    plan = Plan(scenario.with_bounds(listed.expect), variants, topic, seed)
    result = asyncio.run(interruptible(plan, cluster, view))
    return without_leftovers(result, f"topic {topic}", lambda: cluster.delete_topic(topic))


def nodes_of(file: Path) -> NodeList:
    """Return the nodes of a file. Raise Refused, with file and line, if it is not valid."""
    try:
        return load_nodes(file)
    except ScenarioError as error:
        raise Refused(str(error)) from None


def refuse_steps_of_sockets(scenario: Scenario) -> None:
    """Raise Refused, with file and line, for a step that commands cannot carry out.

    Such steps need the fault sockets of Quorate's nodes, or the listeners of its controllers."""
    for step in (step for variant in scenario.variants for step in variant.steps):
        needs = "the fault sockets" if STEPS[step.do].causes in (RULES, DISK) else ""
        if step.do in ASKS_CONTROLLERS:
            needs = "the listeners of controllers"
        if needs:
            raise Refused(
                f"{scenario.origin}:{step.line}: step {step.do} needs {needs} of "
                "`quorate up --faults`; nodes of --nodes have commands only"
            )


def refuse_other_configs(scenario: Scenario, cluster: ListedCluster) -> None:
    """Raise Refused if a broker describes another value of a config that the scenario sets.

    Nodes that are controllers only are not asked, because they have no listener for clients."""
    wanted = dict(scenario.cluster.config)
    for broker in cluster.brokers if wanted else ():
        try:
            found = cluster.configs_of(broker, list(wanted))
        except ConnectionLost as error:
            raise Refused(f"broker {broker}: {error}") from None
        for name, value in wanted.items():
            if found.get(name) != value:
                raise Refused(
                    f"{scenario.name} needs {name}={value}, and broker {broker} has "
                    f"{found.get(name, 'no such config')}. Set it on every node, or give "
                    "--keep-config"
                )
