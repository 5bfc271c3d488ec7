"""The steps that kill, stop, pause and start the processes of nodes."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Sequence

from quorate.cli.chaos.actions.scenario_run import ScenarioRun, StepFailed, Values
from quorate.cli.chaos.actions.wait_actions import wait_caught_up, wait_in_sync
from quorate.cli.chaos.checks.faults import DISK_FAULTS, FULL_DISK, KILL, PAUSE, STOP
from quorate.cli.chaos.scenario.keys import LEADER
from quorate.cli.chaos.timeline.timeline import DEAD, PAUSED, partitions_text

MAX_LOG_BYTES = 1 << 20
STOPS, AGAIN = "the node stops: ", "start the node again"
"""Parts of the line in the log of a node that stops because of its disk."""


async def kill(run: ScenarioRun, values: Values) -> None:
    """Send SIGKILL to the node, and wait until its process has ended.

    Raise Refused if it does not run."""
    node = run.node_named(values["node"])
    fault = run.new_fault(KILL, node)
    ending = await run.control.kill(node)
    run.begin_fault(fault, DEAD, "kill -9")
    leads = f", the leader of {partitions_text(fault.led)}" if fault.led else ""
    run.note(f"kill -9{leads}", node, kind="fault")
    fault.affected, fault.effect = await ending()


async def kill_rack(run: ScenarioRun, values: Values) -> None:
    """Send SIGKILL to every broker of a rack. Raise StepFailed if no broker has this rack.

    The rack `leader` is that of the broker that leads the most partitions."""
    rack = values["rack"]
    if rack == LEADER:
        rack = run.racks.get(run.node_named(LEADER), "")
    brokers = [each for each in run.broker_ids if run.racks.get(each) == rack and rack]
    if not brokers:
        raise StepFailed(f"kill-rack: no broker has the rack {rack or values['rack']!r}")
    await kill_nodes(run, brokers, f"kill -9 of rack {rack}")


async def kill_all(run: ScenarioRun, values: Values) -> None:
    """Send SIGKILL to all nodes that run, as a power failure does."""
    nodes = [node for node in run.node_ids if node not in run.faults.open]
    await kill_nodes(run, nodes, "kill -9 of every node")


async def kill_nodes(run: ScenarioRun, nodes: Sequence[int], what: str) -> None:
    """Send SIGKILL to some nodes, and wait until their processes have ended."""
    faults = [run.new_fault(KILL, node) for node in nodes]
    endings = []
    for fault in faults:
        endings.append(await run.control.kill(fault.node))
        run.begin_fault(fault, DEAD, what)
    run.note(what, kind="fault")
    for fault, ending in zip(faults, endings, strict=True):
        fault.affected, fault.effect = await ending()


async def start(run: ScenarioRun, values: Values) -> None:
    """Start the node's process if it does not run, and do not wait until it is ready."""
    await start_node(run, run.node_named(values["node"]))


async def start_all(run: ScenarioRun, values: Values) -> None:
    """Start every node that a step has killed or stopped."""
    for node in run.down():
        await start_node(run, node)


async def start_node(run: ScenarioRun, node: int) -> None:
    """Start a node, and record the end of its fault.

    A node that something else has started before was not down as long as the steps say."""
    was_down = await run.control.start(node)
    end_fault(run, node, was_down, "it ran again before the step that starts it")
    run.note("is started", node)


def end_fault(run: ScenarioRun, node: int, lasted: bool, early: str) -> None:
    """Record the end of the node's fault. One that ended before had no complete effect."""
    fault = run.faults.open.get(node)
    if fault is not None and not lasted:
        fault.affected = 0
        fault.effect += f", and {early}"
    run.end_fault(node)


async def stop(run: ScenarioRun, values: Values) -> None:
    """Send SIGTERM to the node and wait until its process has ended.

    Raise Refused if the node does not run."""
    node, within_ms = run.node_named(values["node"]), values["within_ms"]
    fault = run.new_fault(STOP, node)
    run.note("gets SIGTERM", node, kind="fault")
    fault.affected, fault.effect = await run.control.stop(node, within_ms)
    if not fault.affected:
        raise StepFailed(f"not within {within_ms:,} ms: node {node} stops ({fault.effect})")
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


async def wait_stopped(run: ScenarioRun, values: Values) -> None:
    """Wait until a node on a bad disk has ended by itself.

    The effect of its fault is the line of its log that names the file and a remedy. Raise
    StepFailed if the node has no such fault, or does not end in time."""
    node = run.node_named(values["node"])
    fault = run.faults.open.get(node)
    if fault is None or fault.kind not in DISK_FAULTS:
        raise StepFailed(f"wait-stopped: node {node} is not on a bad disk")
    took_ms = await run.until(
        lambda: not run.control.runs(node), values["within_ms"], f"node {node} ends by itself"
    )
    await asyncio.to_thread(ended_by_disk, run, node)
    run.note(f"has ended by itself after {took_ms:,} ms", node, fault.effect)


def ended_by_disk(run: ScenarioRun, node: int) -> None:
    """Record that a node on a bad disk has ended. It is down from now on. Block."""
    fault = run.faults.open[node]
    with open(run.control.log_of(node), "rb") as log:
        log.seek(fault.log_bytes)
        said = disk_line(log.read(MAX_LOG_BYTES).decode("utf-8", "replace"), fault.kind)
    fault.rules = {}
    fault.affected = int(bool(said))
    fault.effect = said or "it ended, and its log names no file and remedy"
    run.fault_states.begin(node, DEAD, run.clock.now_ms(), "its disk")


def disk_line(log: str, kind: str) -> str:
    """Return the message with which a node says that a disk fault of this kind stops it, or ""."""
    error = os.strerror(errno.ENOSPC if kind == FULL_DISK else errno.EIO)
    for line in log.splitlines():
        _, stops, message = line.partition(STOPS)
        if stops and error in message and AGAIN in message:
            return message
    return ""


async def pause(run: ScenarioRun, values: Values) -> None:
    """Stop the node's process with SIGSTOP until `resume` or `heal`.

    A guard process lets it continue if this run ends (`pause_guard.py`, `command_guard.py`)."""
    node = run.node_named(values["node"])
    fault = run.new_fault(PAUSE, node)
    fault.affected, fault.effect = await run.control.pause(node)
    fault.start_ms = run.clock.now_ms()  # the guard process takes a moment to start
    run.begin_fault(fault, PAUSED, "SIGSTOP")
    run.note("is paused (SIGSTOP)", node, kind="fault")


async def resume(run: ScenarioRun, values: Values) -> None:
    """Let the paused process of the node continue (SIGCONT)."""
    await resume_node(run, run.node_named(values["node"]))


async def resume_node(run: ScenarioRun, node: int) -> None:
    """Let the process of the node continue. A pause that ended before had no complete effect."""
    lasted = await run.control.resume(node)
    end_fault(run, node, lasted, "continued before the step that ends the pause")
    run.note("continues (SIGCONT)", node)
