"""The steps that cut the links of a node through its fault socket, and the step that heals."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from quorate.cli.chaos.actions.node_actions import end_fault, ended_by_disk, resume_node
from quorate.cli.chaos.actions.scenario_run import ScenarioRun, StepFailed, Values
from quorate.cli.chaos.checks.faults import (
    BAD_FLUSH,
    CUT_CLIENTS,
    DISK_FAULTS,
    FULL_DISK,
    ISOLATE,
    LOSS,
    MUTE,
    ONE_WAY,
    SLOW_CLIENTS,
    SLOW_DISK,
    SLOW_LINK,
    WRONG_CLOCK,
)
from quorate.cli.chaos.control.fault_sockets import HEARTBEAT
from quorate.cli.chaos.timeline.metadata_tail import MetadataTail
from quorate.cli.chaos.timeline.timeline import BAD_DISK, CUT, MUTED, SKEWED, SLOW
from quorate.cli.chaos.workload.replicas import only_here
from quorate.quorum.metadata.records import RegisterBrokerRecord
from quorate.quorum.seams import Address

STATES = {
    MUTE: MUTED,
    LOSS: MUTED,
    ISOLATE: CUT,
    ONE_WAY: CUT,
    CUT_CLIENTS: CUT,
    SLOW_LINK: SLOW,
    SLOW_CLIENTS: SLOW,
    SLOW_DISK: SLOW,
    FULL_DISK: BAD_DISK,
    BAD_FLUSH: BAD_DISK,
    WRONG_CLOCK: SKEWED,
}
"""The state of a node in the timeline, by the kind of its fault."""
UNITS = {
    SLOW_DISK: "flushes",
    FULL_DISK: "writes",
    BAD_FLUSH: "flushes",
    WRONG_CLOCK: "readings of the clock",
}
"""The calls that a fault affects, by its kind."""


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

    No connection closes."""
    node = run.node_named(values["node"])
    await inject(run, node, ISOLATE, {"hold": await all_peers(run, node)})
    run.note("all its traffic with other nodes is held; no connection closes", node, kind="fault")


async def cut_one_way(run: ScenarioRun, values: Values) -> None:
    """Hold what the node sends to other nodes, or what it receives from them, until `heal`.

    No connection closes, and clients still reach the node."""
    node, lost = run.node_named(values["node"]), values["lost"]
    rule = "hold_to" if lost == "sent" else "hold_from"
    await inject(run, node, ONE_WAY, {rule: await all_peers(run, node)})
    what = "what it sends to" if lost == "sent" else "what it should receive from"
    run.note(f"{what} other nodes is held; no connection closes", node, kind="fault")


async def all_peers(run: ScenarioRun, node: int) -> list[int | str]:
    """Return all other nodes by id, and the addresses from which the node fetches replicas."""
    fetched = await asyncio.to_thread(fetch_addresses, run.log_dir(node), run.broker_ids)
    peers = others(run.node_ids, node)
    return [*peers, *(fetched[each] for each in others(run.broker_ids, node))]


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
    """Apply rules to the node, and record the begin of the fault."""
    fault = run.new_fault(kind, node)
    log, sockets = run.local.directory.node_log(node), run.local.sockets
    fault.log_bytes = log.stat().st_size if log.exists() else 0
    fault.before = await asyncio.to_thread(sockets.affected, node, rules)
    await asyncio.to_thread(sockets.inject, node, rules)
    fault.rules = rules
    run.begin_fault(fault, STATES[kind], f"rules {rules}")


async def heal(run: ScenarioRun, values: Values) -> None:
    """End every pause and every fault of links, clocks and disks. Nodes that are down stay down.

    If `pin_writer` has run, first count the records that the broker of its producer has and that
    the leaders of their partitions lack. Store the count in the last entry of `run.pinned`. If
    there is no fault to end, count nothing."""
    for node in run.control.paused:
        await resume_node(run, node)
    ruled = run.faults.by_rules()
    # The first node whose rules end may truncate its log, so the records are counted before.
    for pinned in run.pinned[-1:] if ruled else ():
        pinned.diverged = await asyncio.to_thread(_diverged, run, pinned.node)
        what = f"holds {pinned.diverged:,} records that the new leaders do not have"
        run.note(what, pinned.node)
    for node in ruled:
        await heal_links(run, node)


async def heal_links(run: ScenarioRun, node: int) -> None:
    """End the rules of the node, and record the number of calls that they affected.

    Rules that ended before, by `chaos heal` or because their lease expired, had no complete effect.
    If the node has ended because of its disk, record that instead."""
    fault = run.faults.open[node]
    if fault.kind in DISK_FAULTS and not run.control.runs(node):
        await asyncio.to_thread(ended_by_disk, run, node)
        return
    counted = await asyncio.to_thread(run.local.sockets.affected, node, fault.rules)
    fault.affected = max(0, counted - fault.before)
    fault.effect = f"{fault.affected:,} {UNITS.get(fault.kind, 'frames and connects')} affected"
    lasted = await asyncio.to_thread(run.local.sockets.in_force, node) == fault.rules
    await asyncio.to_thread(run.local.sockets.heal, node)
    end_fault(run, node, lasted, "its rules ended before the step that ends them")
    run.note("the fault ends", node)


def _diverged(run: ScenarioRun, node: int) -> int:
    """Return the number of records in a broker's log that its partitions' leaders do not have."""
    topic = run.brokers.topic
    return sum(
        only_here(run.log_dir(node), run.log_dir(now.leader), topic, partition)
        for partition, now in run.states.leadership.current_states().items()
        if now.leader not in (node, -1)
    )
