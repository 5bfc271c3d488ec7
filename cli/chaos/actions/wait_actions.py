"""The steps that wait: for a time, for records of the metadata log, or for results of clients.

A wait with the key `within_ms` raises StepFailed if it takes longer. It also raises StepFailed if a
node dies that no step has killed or stopped."""

from __future__ import annotations

import asyncio
import time

from quorate.cli.chaos.actions.scenario_run import ScenarioRun, StepFailed, Values
from quorate.cli.chaos.checks.faults import ACTIVES
from quorate.cli.chaos.checks.observations import Expiry
from quorate.cli.chaos.timeline.timeline import CUT, FENCED, MUTED


async def wait(run: ScenarioRun, values: Values) -> None:
    """Wait for the time `ms`."""
    await asyncio.sleep(values["ms"] / 1000)


async def wait_lasted(run: ScenarioRun, values: Values) -> None:
    """Wait until the fault of the node has lasted for the time `ms`.

    Raise StepFailed if the node has no fault."""
    node, ms = run.node_named(values["node"]), values["ms"]
    fault = run.faults.open.get(node)
    if fault is None:
        raise StepFailed(f"wait-lasted: node {node} has no fault")
    await asyncio.sleep(max(0, fault.start_ms + ms - run.clock.now_ms()) / 1000)
    run.note(f"its fault has lasted for {run.clock.now_ms() - fault.start_ms:,} ms", node)


async def wait_caught_up(run: ScenarioRun, values: Values) -> None:
    """Wait until the node's metadata log is longer than that of every other controller was when the
    step began.

    The wait needs no change of the cluster's metadata, because an idle active controller appends
    no-op records."""
    node = run.node_named(values["node"])
    others = [each for each in run.controllers if each != node]
    end = await asyncio.to_thread(lambda: max(map(run.facts.log_end, others), default=-1))
    took_ms = await run.until(
        lambda: run.facts.log_end(node) > end,
        values["within_ms"],
        f"node {node} has the metadata log of the other controllers",
    )
    run.note(f"has the metadata log of the other controllers after {took_ms:,} ms", node)


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
    fenced = next((event for event in reversed(states.fences) if event.node == node), None)
    if fenced is None:
        raise StepFailed(f"broker {node} was fenced before the run began")
    heard_ms = await asyncio.to_thread(run.local.sockets.last_heartbeat_ms, node)
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


async def wait_isr_shrunk(run: ScenarioRun, values: Values) -> None:
    """Wait until no ISR of a partition that another broker leads holds the broker.

    A fenced broker leaves all ISRs, but not because it lags. Then raise StepFailed."""
    node = run.node_named(values["node"])

    def shrunk() -> bool:
        if run.states.state(node) == FENCED:
            raise StepFailed(
                f"broker {node} is fenced: replica.lag.time.max.ms must be lower than "
                "broker.session.timeout.ms"
            )
        own = run.states.led_by(node)
        return not any(node in isr for each, isr in run.states.isr.items() if each not in own)

    took_ms = await run.until(
        shrunk, values["within_ms"], f"no other leader has broker {node} in its ISR"
    )
    run.note(f"is in no ISR of another leader after {took_ms:,} ms", node)


async def wait_controller(run: ScenarioRun, values: Values) -> None:
    """Wait until a controller without a fault is active.

    Its term must have begun after the last fault of an active controller."""
    faults = run.faults.all(run.clock.now_ms())
    since_ms = max((each.start_ms for each in faults if each.role in ACTIVES), default=0)

    def elected() -> bool:
        active = run.states.active
        if active is None or active in run.faults.open:
            return False
        term = run.states.controllers.now(active)
        return term is not None and term.start_ms >= since_ms

    took_ms = await run.until(
        elected, values["within_ms"], "a controller without a fault is active"
    )
    run.note(f"is the active controller after {took_ms:,} ms", run.states.active)


async def write_metadata(run: ScenarioRun, values: Values) -> None:
    """Wait until a change of metadata that was requested after the begin of the step is committed.

    The client of the run that changes metadata all the time requests it (`metadata_probe.py`)."""
    since_s = time.monotonic()
    took_ms = await run.until(
        lambda: run.probe.sent_s > since_s, values["within_ms"], "metadata can be written"
    )
    run.note(f"metadata could be written again after {took_ms:,} ms")
