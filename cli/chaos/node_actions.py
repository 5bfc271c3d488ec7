"""The steps that kill, stop, pause and start the processes of nodes."""

from __future__ import annotations

import asyncio
import time

from quorate.cli.chaos.fault_log import OpenFault
from quorate.cli.chaos.observations import KILL, PAUSE, STOP
from quorate.cli.chaos.scenario_run import ScenarioRun, StepFailed, Values
from quorate.cli.chaos.timeline import DEAD, PAUSED, partitions_text
from quorate.cli.chaos.wait_actions import wait_caught_up, wait_in_sync
from quorate.cli.cluster_dir import alive

ENDED_S = 10.0
"""Time, in s, within which a process must have ended after SIGKILL."""
POLL_S = 0.005


async def kill(run: ScenarioRun, values: Values) -> None:
    """Send SIGKILL to the node, and wait until its process has ended.

    Raise Refused if it does not run."""
    node = run.node_named(values["node"])
    fault = run.new_fault(KILL, node)
    pid = run.cluster.pid(node)
    run.cluster.kill(node)
    run.begin_fault(fault, DEAD, "kill -9")
    leads = f", the leader of {partitions_text(fault.led)}" if fault.led else ""
    run.note(f"kill -9{leads}", node, kind="fault")
    await ended(fault, pid)


async def ended(fault: OpenFault, pid: int) -> None:
    """Wait for ENDED_S until the process has ended, and record that in the fault."""
    deadline_s = time.monotonic() + ENDED_S
    while not (gone := not alive(pid)):
        if time.monotonic() > deadline_s:
            break
        await asyncio.sleep(POLL_S)
    fault.affected = int(gone)
    fault.effect = f"process {pid} {'ended' if gone else 'still runs'}"


async def kill_all(run: ScenarioRun, values: Values) -> None:
    """Send SIGKILL to all nodes that run, as a power failure does."""
    running = [node for node in (*run.controllers, *run.broker_ids) if node not in run.faults.open]
    faults = [(run.new_fault(KILL, node), run.cluster.pid(node)) for node in running]
    for fault, _ in faults:
        run.cluster.kill(fault.node)
        run.begin_fault(fault, DEAD, "kill -9 of every node")
    run.note("kill -9 of every node", kind="fault")
    for fault, pid in faults:
        await ended(fault, pid)


async def start(run: ScenarioRun, values: Values) -> None:
    """Start the node's process if it does not run, and do not wait until it is ready."""
    await start_node(run, run.node_named(values["node"]))


async def start_all(run: ScenarioRun, values: Values) -> None:
    """Start every node that a step has killed or stopped."""
    for node in run.down():
        await start_node(run, node)


async def start_node(run: ScenarioRun, node: int) -> None:
    """Start a node, and record the end of its fault."""
    await asyncio.to_thread(run.cluster.restart, node)
    run.end_fault(node)
    run.note("is started", node)


async def stop(run: ScenarioRun, values: Values) -> None:
    """Send SIGTERM to the node and wait until its process has ended.

    Raise Refused if the node does not run."""
    node, within_ms = run.node_named(values["node"]), values["within_ms"]
    fault, pid = run.new_fault(STOP, node), run.cluster.pid(node)
    run.note("gets SIGTERM", node, kind="fault")
    if not await asyncio.to_thread(run.cluster.terminate, node, within_ms / 1000):
        raise StepFailed(f"not within {within_ms:,} ms: node {node} stops after SIGTERM")
    fault.affected, fault.effect = 1, f"process {pid} ended"
    run.begin_fault(fault, DEAD, "stopped by SIGTERM")
    run.note("is down", node)


async def roll(run: ScenarioRun, values: Values) -> None:
    """Restart all brokers or all controllers one after another, the active controller last.

    Each node is stopped with SIGTERM and started again. The next node follows when this node has
    caught up with the metadata log and every ISR is full. `within_ms` bounds each of these waits,
    not their sum."""
    brokers = values["nodes"] == "brokers"
    nodes = run.broker_ids if brokers else run.controllers
    for node in sorted(nodes, key=lambda node: (node == run.states.active, node)):
        one = {"node": node, "within_ms": values["within_ms"]}
        for action in (stop, start, wait_caught_up, wait_in_sync):
            await action(run, one)


async def pause(run: ScenarioRun, values: Values) -> None:
    """Stop the node's process with SIGSTOP until `resume` or `heal`.

    A guard process lets it continue if this run ends (`pause_guard.py`)."""
    node = run.node_named(values["node"])
    fault, pid = run.new_fault(PAUSE, node), run.cluster.pid(node)
    stopped = await asyncio.to_thread(run.pauses.pause, node, pid)
    fault.affected = int(stopped)
    fault.effect = f"process {pid} {'is stopped' if stopped else 'is not stopped'} by SIGSTOP"
    run.begin_fault(fault, PAUSED, "SIGSTOP")
    run.note("is paused (SIGSTOP)", node, kind="fault")


async def resume(run: ScenarioRun, values: Values) -> None:
    """Let the paused process of the node continue (SIGCONT)."""
    await resume_node(run, run.node_named(values["node"]))


async def resume_node(run: ScenarioRun, node: int) -> None:
    """Let the process of the node continue. A pause that ended before had no complete effect."""
    lasted = await asyncio.to_thread(run.pauses.resume, node)
    fault = run.faults.open.get(node)
    if fault is not None and not lasted:
        fault.affected = 0
        fault.effect += ", and continued before the step that ends the pause"
    run.end_fault(node)
    run.note("continues (SIGCONT)", node)
