"""The steps that disturb the links of a node through its fault socket, and the step that heals."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from quorate.cli.chaos.fault_sockets import HEARTBEAT
from quorate.cli.chaos.metadata_tail import MetadataTail
from quorate.cli.chaos.node_actions import resume_node
from quorate.cli.chaos.observations import ISOLATE, MUTE
from quorate.cli.chaos.replicas import only_here
from quorate.cli.chaos.scenario_run import ScenarioRun, StepFailed, Values
from quorate.cli.chaos.timeline import CUT, MUTED
from quorate.quorum.metadata.records import RegisterBrokerRecord
from quorate.quorum.seams import Address


async def mute_heartbeats(run: ScenarioRun, values: Values) -> None:
    """Drop the broker's heartbeats, and no other message, until `heal`."""
    node = run.node_named(values["node"])
    await inject(run, node, MUTE, {"drop": [HEARTBEAT]})
    run.note("its heartbeats are dropped from now on, and nothing else", node, kind="fault")


async def cut_controllers(run: ScenarioRun, values: Values) -> None:
    """Hold all traffic between the node and the controllers until `heal`. No connection closes."""
    node = run.node_named(values["node"])
    await inject(run, node, ISOLATE, {"hold": others(run.controllers, node)})
    run.note(
        "all its traffic with the controllers is held; no connection closes", node, kind="fault"
    )


async def isolate(run: ScenarioRun, values: Values) -> None:
    """Hold all traffic between the node and all other nodes until `heal`. Clients still reach it.

    No connection closes. Fetches of other brokers from this node are not held, because they do not
    name their sender (`quorum/faults/transport.py`)."""
    node = run.node_named(values["node"])
    peers = others((*run.controllers, *run.broker_ids), node)
    fetched = await asyncio.to_thread(fetch_addresses, run.log_dir(node), run.broker_ids)
    held = [*peers, *(fetched[each] for each in others(run.broker_ids, node))]
    await inject(run, node, ISOLATE, {"hold": held})
    run.note("all its traffic with other nodes is held; no connection closes", node, kind="fault")


async def hold_fetches(run: ScenarioRun, values: Values) -> None:
    """Hold the fetches of the broker from other brokers until `heal`. No connection closes.

    Its heartbeats and its clients are not affected, nor the fetches of other brokers from it."""
    node = run.node_named(values["node"])
    fetched = await asyncio.to_thread(fetch_addresses, run.log_dir(node), run.broker_ids)
    held = [fetched[each] for each in others(run.broker_ids, node)]
    await inject(run, node, ISOLATE, {"hold": held})
    run.note("its fetches from other brokers are held; no connection closes", node, kind="fault")


def fetch_addresses(log_dir: Path, brokers: Sequence[int]) -> dict[int, str]:
    """Return the HOST:PORT from which replicas are fetched, of each broker.

    It is the last endpoint of a broker's last registration. Raise StepFailed if the segments of the
    metadata log in `log_dir` do not contain the registration of each broker any more. Block."""
    found = {}
    for logged in MetadataTail(log_dir).read():
        if isinstance(logged.record, RegisterBrokerRecord):
            endpoint = logged.record.end_points[-1]
            found[logged.record.broker_id] = str(Address(endpoint.host, endpoint.port))
    for broker in brokers:
        if broker not in found:
            raise StepFailed(
                f"the registration of broker {broker} is in a snapshot only: restart the broker"
            )
    return found


def others(nodes: Sequence[int], node: int) -> list[int]:
    """Return the nodes without `node`."""
    return [each for each in nodes if each != node]


async def inject(run: ScenarioRun, node: int, kind: str, rules: dict[str, Any]) -> None:
    """Apply rules to the node's links, and record the begin of the fault."""
    fault = run.new_fault(kind, node)
    fault.before = await asyncio.to_thread(run.sockets.affected, node, rules)
    await asyncio.to_thread(run.sockets.inject, node, rules)
    fault.rules = rules
    run.begin_fault(fault, MUTED if kind == MUTE else CUT, f"rules {rules}")


async def heal(run: ScenarioRun, values: Values) -> None:
    """End every pause and every fault of links. Nodes that are down stay down.

    If `pin_writer` has run, first count the records that the broker of its producer has and that
    the leaders of their partitions lack. Store the count in the last entry of `run.pinned`. If
    there is no fault to end, count nothing."""
    for node in run.pauses.nodes:
        await resume_node(run, node)
    for node in run.faults.by_rules():
        for pinned in run.pinned[-1:]:
            pinned.diverged = await asyncio.to_thread(_diverged, run, pinned.node)
            what = f"holds {pinned.diverged:,} records that the new leaders do not have"
            run.note(what, pinned.node)
        await heal_links(run, node)


async def heal_links(run: ScenarioRun, node: int) -> None:
    """End the rules of the node, and record the number of messages that they affected."""
    fault = run.faults.open[node]
    counted = await asyncio.to_thread(run.sockets.affected, node, fault.rules)
    fault.affected = max(0, counted - fault.before)
    fault.effect = f"{fault.affected:,} frames and connects affected"
    await asyncio.to_thread(run.sockets.heal, node)
    run.end_fault(node)
    run.note("the fault ends", node)


def _diverged(run: ScenarioRun, node: int) -> int:
    """Return the number of records in a broker's log that its partitions' leaders do not have."""
    topic = run.brokers.topic
    return sum(
        only_here(run.log_dir(node), run.log_dir(now.leader), topic, partition)
        for partition, now in run.states.leadership.current_states().items()
        if now.leader not in (node, -1)
    )
