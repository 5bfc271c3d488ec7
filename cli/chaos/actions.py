"""The actions of scenarios: one coroutine for each kind of step. `ACTIONS` is the table.

An action gets the state of the run and the values of its step. `STEPS` in `scenario.py` defines the
keys of these values. The key `node` holds an id or a role, which `ScenarioRun.node_named` resolves.
That node becomes the run's victim, so that a later step can name it as `victim`.

Only `wait` waits for a fixed time. The other actions wait for an event, if they wait at all: a
record in the metadata log, a result of the clients, a response, or the end of a process. An action
with the key `within_ms`, which has a default in `STEPS`, raises StepFailed if a wait takes longer.
A wait for records or results also raises StepFailed if a node dies that no step has killed or
stopped."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from quorate.cli.chaos.fault_sockets import HEARTBEAT
from quorate.cli.chaos.metadata_tail import MetadataTail, log_end
from quorate.cli.chaos.replicas import only_here
from quorate.cli.chaos.scenario import STEPS, Step
from quorate.cli.chaos.scenario_run import ScenarioRun, StepFailed
from quorate.cli.chaos.timeline import CUT, DEAD, FENCED, MUTED, partitions_text
from quorate.cli.chaos.verdict import Expiry, Pinned
from quorate.cli.chaos.writer import PinnedWriter

Values = Mapping[str, Any]
"""The values of a step by key, such as `node` and `within_ms`. Times are in ms."""
Action = Callable[[ScenarioRun, Values], Awaitable[None]]


async def kill(run: ScenarioRun, values: Values) -> None:
    """Send SIGKILL to the node, and do not wait for its end. Raise Refused if it does not run."""
    node = run.node_named(values["node"])
    led = run.states.led_by(node)
    run.cluster.kill(node)
    run.fault_states.begin(node, DEAD, run.clock.now_ms(), "kill -9")
    leads = f", the leader of {partitions_text(led)}" if led else ""
    run.note(f"kill -9{leads}", node, kind="fault")


async def start(run: ScenarioRun, values: Values) -> None:
    """Start the node's process if it does not run, and do not wait until it is ready."""
    node = run.node_named(values["node"])
    await asyncio.to_thread(run.cluster.restart, node)
    run.fault_states.end(node, run.clock.now_ms())
    run.note("is started", node)


async def stop(run: ScenarioRun, values: Values) -> None:
    """Send SIGTERM to the node and wait until its process has ended.

    Raise Refused if the node does not run."""
    node, within_ms = run.node_named(values["node"]), values["within_ms"]
    run.note("gets SIGTERM", node, kind="fault")
    if not await asyncio.to_thread(run.cluster.terminate, node, within_ms / 1000):
        raise StepFailed(f"not within {within_ms:,} ms: node {node} stops after SIGTERM")
    run.fault_states.begin(node, DEAD, run.clock.now_ms(), "stopped by SIGTERM")
    run.note("is down", node)


async def wait_caught_up(run: ScenarioRun, values: Values) -> None:
    """Wait until the node's metadata log is longer than that of every other controller was when the
    step began.

    The wait needs no change of the cluster's metadata, because an idle active controller appends
    no-op records."""
    node = run.node_named(values["node"])
    others = [each for each in run.controllers if each != node]
    end = await asyncio.to_thread(
        lambda: max((log_end(run.log_dir(each))[1] for each in others), default=-1)
    )
    tail = MetadataTail(run.log_dir(node))

    def caught_up() -> bool:
        tail.skip_to_end()
        return tail.offset > end

    took_ms = await run.until(
        caught_up, values["within_ms"], f"node {node} has the metadata log of the other controllers"
    )
    run.note(f"has the metadata log of the other controllers after {took_ms:,} ms", node)


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


async def mute_heartbeats(run: ScenarioRun, values: Values) -> None:
    """Drop the broker's heartbeats, and no other message, until `heal`."""
    node = run.node_named(values["node"])
    run.faults.drop(node, HEARTBEAT)
    run.fault_states.begin(node, MUTED, run.clock.now_ms(), "its heartbeats are dropped")
    run.note("its heartbeats are dropped from now on, and nothing else", node, kind="fault")


async def cut_controllers(run: ScenarioRun, values: Values) -> None:
    """Hold all traffic between the node and the controllers until `heal`. No connection closes."""
    node = run.node_named(values["node"])
    run.faults.hold(node, run.controllers)
    run.fault_states.begin(
        node, CUT, run.clock.now_ms(), "all traffic with the controllers is held"
    )
    run.note(
        "all its traffic with the controllers is held; no connection closes", node, kind="fault"
    )


async def heal(run: ScenarioRun, values: Values) -> None:
    """End every fault of `mute_heartbeats` and `cut_controllers`. Nodes that are down stay down.

    If `pin_writer` has run, first count the records that the broker of its producer has and that
    the leaders of their partitions lack. Store the count in the last entry of `run.pinned`. If
    there is no fault to end, count nothing."""
    for node, was in run.fault_states.open().items():
        if was not in (MUTED, CUT):
            continue
        for pinned in run.pinned[-1:]:
            pinned.diverged = await asyncio.to_thread(_diverged, run, pinned.node)
            what = f"holds {pinned.diverged:,} records that the new leaders do not have"
            run.note(what, pinned.node)
        run.faults.heal(node)
        run.fault_states.end(node, run.clock.now_ms())
        run.note("the fault ends", node)


def _diverged(run: ScenarioRun, node: int) -> int:
    """Return the number of records in a broker's log that its partitions' leaders do not have."""
    topic = run.brokers.topic
    return sum(
        only_here(run.log_dir(node), run.log_dir(now.leader), topic, partition)
        for partition, now in run.states.leadership.current_states().items()
        if now.leader not in (node, -1)
    )


async def pin_writer(run: ScenarioRun, values: Values) -> None:
    """Start a producer that writes only to this broker, to the partitions that it leads now.

    The producer runs until `unpin_writer`. Raise NoProducerId if no broker assigns a producer id
    within ten request timeouts of the clients."""
    node = run.node_named(values["node"])
    led = run.states.led_by(node)
    brokers = run.make_brokers()
    await brokers.refresh()
    run.pinned_writer = PinnedWriter(
        brokers=brokers,
        ledger=run.ledger,
        pace=run.writer.pace,
        timeout_ms=run.writer.timeout_ms,
        node_id=node,
    )
    await run.pinned_writer.start(led)
    run.pinned.append(Pinned(node=node, from_ms=run.clock.now_ms()))
    run.note(f"a client writes only to it, for {partitions_text(led)}", node)


async def unpin_writer(run: ScenarioRun, values: Values) -> None:
    """Stop the producer of `pin_writer`, and record its results in the last entry of `run.pinned`.

    Raise StepFailed if no such producer runs."""
    writer, run.pinned_writer = run.pinned_writer, None
    if writer is None:
        raise StepFailed("unpin-writer: no pinned writer runs; use pin-writer first")
    await writer.stop(writer.timeout_ms * 2 / 1000)
    writer.brokers.close()
    pinned = run.pinned[-1]
    pinned.until_ms = run.clock.now_ms()
    pinned.refused = writer.refused
    pinned.successes = [(each.partition, run.clock.ms(each.sent_s)) for each in writer.successes]
    pinned.acknowledged = len(writer.successes) * writer.pace.records
    errors = ", ".join(f"{count:,} x {name}" for name, count in sorted(writer.refused.items()))
    run.note(f"the client that wrote only to it ends; errors: {errors or 'nothing'}", pinned.node)


async def wait(run: ScenarioRun, values: Values) -> None:
    """Wait for the time `ms`."""
    await asyncio.sleep(values["ms"] / 1000)


async def wait_fenced(run: ScenarioRun, values: Values) -> None:
    """Wait until the broker is fenced and leads no partition.

    If its heartbeats are muted or it is cut off from the controllers, also record the time from its
    last heartbeat to the fencing, in `run.expiries`."""
    node = run.node_named(values["node"])
    states = run.states
    await run.until(
        lambda: states.state(node) == FENCED and not states.led_by(node),
        values["within_ms"],
        f"broker {node} is fenced and leads nothing",
    )
    if run.fault_states.open().get(node) not in (MUTED, CUT):
        return
    fenced = next(event for event in reversed(states.fences) if event.node == node)
    heard_ms = await asyncio.to_thread(run.faults.last_heartbeat_ms, node)
    expiry = Expiry(
        node=node,
        timeout_ms=run.session_timeout_ms,
        last_heartbeat_ms=run.clock.of_wall(heard_ms),
        fenced_ms=fenced.ms,
        cause=fenced.cause,
    )
    run.expiries.append(expiry)
    what = f"its session lasted {expiry.after_ms:,} ms after its last heartbeat"
    run.note(what, node, f"broker.session.timeout.ms is {expiry.timeout_ms:,}")


async def wait_written(run: ScenarioRun, values: Values) -> None:
    """Wait until every partition has acknowledged a write since the step began."""
    since_s = time.monotonic()
    partitions = range(run.ledger.partitions)

    def written() -> bool:
        return all(run.ledger.confirmed_s.get(each, 0.0) > since_s for each in partitions)

    took_ms = await run.until(written, values["within_ms"], "every partition acknowledges a write")
    run.note(f"every partition acknowledged a write within {took_ms:,} ms")


async def wait_in_sync(run: ScenarioRun, values: Values) -> None:
    """Wait until every ISR holds all replicas, and all brokers that were unfenced at the start of
    the run are unfenced again."""
    took_ms = await run.until(run.in_sync, values["within_ms"], "every ISR is full")
    run.note(f"every ISR is full after {took_ms:,} ms")


async def write_metadata(run: ScenarioRun, values: Values) -> None:
    """Set retention.ms of the run's topic to a new value, and wait until the change is committed.

    Raise Refused if the cluster refuses the change."""
    begin_s = time.monotonic()
    topic, value = run.brokers.topic, str(604_800_000 + len(run.timeline))
    try:
        async with asyncio.timeout(values["within_ms"] / 1000):
            await asyncio.to_thread(run.cluster.change_a_config, topic, value)
    except TimeoutError:
        raise StepFailed(
            f"not within {values['within_ms']:,} ms: metadata can be written"
        ) from None
    took_ms = round((time.monotonic() - begin_s) * 1000)
    run.note(f"metadata could be written again after {took_ms:,} ms")


ACTIONS: dict[str, Action] = {
    "kill": kill,
    "start": start,
    "stop": stop,
    "roll": roll,
    "mute-heartbeats": mute_heartbeats,
    "cut-controllers": cut_controllers,
    "heal": heal,
    "pin-writer": pin_writer,
    "unpin-writer": unpin_writer,
    "wait": wait,
    "wait-fenced": wait_fenced,
    "wait-caught-up": wait_caught_up,
    "wait-written": wait_written,
    "wait-in-sync": wait_in_sync,
    "write-metadata": write_metadata,
}
assert ACTIONS.keys() == STEPS.keys()


async def carry_out(run: ScenarioRun, step: Step) -> None:
    """Carry out one step.

    Raise StepFailed, Refused or NotReachable if it fails. `pin_writer` may also raise NoProducerId.
    """
    await ACTIONS[step.do](run, step.values)
