"""The steps of scenarios, each a coroutine on the state of the run; `ACTIONS` is the table.

An action raises Unmet when its condition does not become true in time. It never sleeps and hopes:
it waits for a fact in the metadata log or in the clients' records."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from quorate.cli.chaos.fault_sockets import HEARTBEAT
from quorate.cli.chaos.metadata_tail import MetadataTail, log_end
from quorate.cli.chaos.replicas import only_here
from quorate.cli.chaos.scenario import STEPS, Step
from quorate.cli.chaos.stage import Stage, Unmet
from quorate.cli.chaos.timeline import CUT, DEAD, FENCED, MUTED, partitions_text
from quorate.cli.chaos.verdict import Expiry, Pinned
from quorate.cli.chaos.writer import PinnedWriter

Values = Mapping[str, Any]
Action = Callable[[Stage, Values], Awaitable[None]]


async def kill(stage: Stage, values: Values) -> None:
    """Send SIGKILL to the node."""
    node = stage.node_named(values["node"])
    led = stage.story.led_by(node)
    stage.cluster.kill(node)
    stage.hurt.begin(node, DEAD, stage.watch.now_ms(), "kill -9")
    leads = f", the leader of {partitions_text(led)}" if led else ""
    stage.note(f"kill -9{leads}", node, kind="fault")


async def start(stage: Stage, values: Values) -> None:
    """Start a node that does not run."""
    node = stage.node_named(values["node"])
    await asyncio.to_thread(stage.cluster.restart, node)
    stage.hurt.end(node, stage.watch.now_ms())
    stage.note("is started", node)


async def stop(stage: Stage, values: Values) -> None:
    """Send SIGTERM to the node and wait until its process has ended. Raise Unmet on a timeout."""
    node, within_ms = stage.node_named(values["node"]), values["within_ms"]
    stage.note("is told to stop", node, "SIGTERM", "fault")
    if not await asyncio.to_thread(stage.cluster.terminate, node, within_ms / 1000):
        raise Unmet(f"not within {within_ms:,} ms: node {node} stops in order")
    stage.hurt.begin(node, DEAD, stage.watch.now_ms(), "stopped in order")
    stage.note("is down", node)


async def wait_caught_up(stage: Stage, values: Values) -> None:
    """Wait until the node's metadata log reaches the present end of the other controllers' logs."""
    node = stage.node_named(values["node"])
    others = [each for each in stage.controllers if each != node]
    end = await asyncio.to_thread(
        lambda: max((log_end(stage.log_dir(each))[1] for each in others), default=-1)
    )
    tail = MetadataTail(stage.log_dir(node))

    def caught_up() -> bool:
        tail.skip_to_end()
        return tail.offset > end

    took_ms = await stage.until(
        caught_up, values["within_ms"], f"node {node} has the metadata log that others have"
    )
    stage.note(f"has the metadata log of the others after {took_ms:,} ms", node)


async def roll(stage: Stage, values: Values) -> None:
    """Restart all nodes of a role one after another, the active controller last."""
    brokers = values["nodes"] == "brokers"
    nodes = stage.broker_ids if brokers else stage.controllers
    for node in sorted(nodes, key=lambda node: (node == stage.story.active, node)):
        one = {"node": node, "within_ms": values["within_ms"]}
        for action in (stop, start, wait_caught_up, wait_in_sync):
            await action(stage, one)


async def mute_heartbeats(stage: Stage, values: Values) -> None:
    """Drop the node's heartbeats and nothing else."""
    node = stage.node_named(values["node"])
    stage.faults.drop(node, HEARTBEAT)
    stage.hurt.begin(node, MUTED, stage.watch.now_ms(), "its heartbeats are lost")
    stage.note("its heartbeats are lost from now on, and nothing else", node, kind="fault")


async def cut_controllers(stage: Stage, values: Values) -> None:
    """Hold all traffic between the node and the controllers. No connection closes."""
    node = stage.node_named(values["node"])
    stage.faults.hold(node, stage.controllers)
    stage.hurt.begin(node, CUT, stage.watch.now_ms(), "nothing passes between it and controllers")
    stage.note("nothing passes between it and the controllers; no link closes", node, kind="fault")


async def heal(stage: Stage, values: Values) -> None:
    """End all faults, after counting the records that only the broker with a pinned client has.

    Nodes that are down stay down."""
    for node, was in stage.hurt.open().items():
        if was not in (MUTED, CUT):
            continue
        for pinned in stage.pinned[-1:]:
            pinned.diverged = await asyncio.to_thread(_diverged, stage, pinned.node)
            what = f"holds {pinned.diverged:,} records that the new leaders do not have"
            stage.note(what, pinned.node)
        stage.faults.heal(node)
        stage.hurt.end(node, stage.watch.now_ms())
        stage.note("the fault ends", node)


def _diverged(stage: Stage, node: int) -> int:
    """Return the number of records in a broker's log that its partitions' leaders do not have."""
    topic = stage.brokers.topic
    return sum(
        only_here(stage.log_dir(node), stage.log_dir(now.leader), topic, partition)
        for partition, now in stage.story.leadership.open_spells().items()
        if now.leader not in (node, -1)
    )


async def pin_writer(stage: Stage, values: Values) -> None:
    """Start a producer that writes only to this node, for the partitions that it leads now."""
    node = stage.node_named(values["node"])
    led = stage.story.led_by(node)
    brokers = stage.make_brokers()
    await brokers.refresh()
    stage.pinned_writer = PinnedWriter(
        brokers=brokers,
        ledger=stage.ledger,
        pace=stage.writer.pace,
        timeout_ms=stage.writer.timeout_ms,
        node_id=node,
    )
    await stage.pinned_writer.start(led)
    stage.pinned.append(Pinned(node=node, from_ms=stage.watch.now_ms()))
    stage.note(f"a client stays with it, for {partitions_text(led)}", node)


async def unpin_writer(stage: Stage, values: Values) -> None:
    """Stop that producer and record its results. Raise Unmet if there is none."""
    writer, stage.pinned_writer = stage.pinned_writer, None
    if writer is None:
        raise Unmet("unpin-writer: no writer is pinned")
    await writer.stop(writer.timeout_ms * 2 / 1000)
    writer.brokers.close()
    pinned = stage.pinned[-1]
    pinned.until_ms = stage.watch.now_ms()
    pinned.refused = writer.refused
    pinned.successes = [(each.partition, stage.watch.ms(each.sent_s)) for each in writer.successes]
    pinned.acknowledged = len(writer.successes) * writer.pace.records
    errors = ", ".join(f"{count:,} x {name}" for name, count in sorted(writer.refused.items()))
    stage.note(f"the client that stayed with it ends; refused: {errors or 'nothing'}", pinned.node)


async def wait(stage: Stage, values: Values) -> None:
    """Let time pass."""
    await asyncio.sleep(values["ms"] / 1000)


async def wait_fenced(stage: Stage, values: Values) -> None:
    """Wait until the broker is fenced and leads no partition.

    If the broker was isolated by a fault, also record when its session expired after its last
    heartbeat."""
    node = stage.node_named(values["node"])
    story = stage.story
    await stage.until(
        lambda: story.state(node) == FENCED and not story.led_by(node),
        values["within_ms"],
        f"broker {node} is fenced and leads nothing",
    )
    if stage.hurt.open().get(node) not in (MUTED, CUT):
        return
    fenced = next(event for event in reversed(story.fences) if event.node == node)
    heard_ms = await asyncio.to_thread(stage.faults.last_heartbeat_ms, node)
    expiry = Expiry(
        node=node,
        timeout_ms=stage.session_timeout_ms,
        last_heartbeat_ms=stage.watch.of_wall(heard_ms),
        fenced_ms=fenced.ms,
        cause=fenced.cause,
    )
    stage.expiries.append(expiry)
    what = f"its session lasted {expiry.after_ms:,} ms after its last heartbeat"
    stage.note(what, node, f"broker.session.timeout.ms is {expiry.timeout_ms:,}")


async def wait_written(stage: Stage, values: Values) -> None:
    """Wait until a write to every partition is acknowledged."""
    since_s = time.monotonic()
    partitions = range(stage.ledger.partitions)

    def written() -> bool:
        return all(stage.ledger.confirmed_s.get(each, 0.0) > since_s for each in partitions)

    took_ms = await stage.until(written, values["within_ms"], "every partition takes a write")
    stage.note(f"every partition took a write within {took_ms:,} ms")


async def wait_in_sync(stage: Stage, values: Values) -> None:
    """Wait until every ISR holds all replicas."""
    took_ms = await stage.until(stage.in_sync, values["within_ms"], "every ISR is whole")
    stage.note(f"every ISR is whole after {took_ms:,} ms")


async def write_metadata(stage: Stage, values: Values) -> None:
    """Change a config and wait until the change is committed."""
    begin_s = time.monotonic()
    topic, value = stage.brokers.topic, str(604_800_000 + len(stage.timeline))
    try:
        async with asyncio.timeout(values["within_ms"] / 1000):
            await asyncio.to_thread(stage.cluster.change_a_config, topic, value)
    except TimeoutError:
        raise Unmet(f"not within {values['within_ms']:,} ms: metadata can be written") from None
    took_ms = round((time.monotonic() - begin_s) * 1000)
    stage.note(f"metadata could be written again after {took_ms:,} ms")


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


async def carry_out(stage: Stage, step: Step) -> None:
    """Carry out one step. Raise Unmet, Refused or NotReachable if it fails."""
    await ACTIONS[step.do](stage, step.values)
