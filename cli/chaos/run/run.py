"""A scenario run from start to verdict: workload, steps, healing, and comparison.

`run_scenario` always returns a result, in bounded time. Even if the cluster does not answer any
more, all faults end, the clients stop, and everything that can be read is compared."""

from __future__ import annotations

import asyncio
import contextlib
import time
from pathlib import Path

from quorate.cli.chaos.actions.client_actions import unpin_writer
from quorate.cli.chaos.actions.link_actions import heal_links
from quorate.cli.chaos.actions.node_actions import resume_node, start_node
from quorate.cli.chaos.actions.scenario_run import ScenarioRun
from quorate.cli.chaos.actions.table import carry_out
from quorate.cli.chaos.checks.record_checks import REPLICAS
from quorate.cli.chaos.control.cluster import Cluster
from quorate.cli.chaos.results.result import Result
from quorate.cli.chaos.results.view import View
from quorate.cli.chaos.run.ending import Interrupted, Interruption, reason, stage
from quorate.cli.chaos.run.evidence import Examined, failed_result, result_of
from quorate.cli.chaos.run.setup import Plan, started_run
from quorate.cli.chaos.scenario.scenario import Variant
from quorate.cli.chaos.workload.group import Group
from quorate.cli.chaos.workload.read_back import ReadBack, read_back
from quorate.cli.chaos.workload.replicas import differing
from quorate.cli.client.consumer import Consumer

SETUP_S = 240.0
"""The time, in s, in which the topic and the clients must work."""
HEAL_S = 60.0
"""The time, in s, that the ISRs have to become full after the faults."""
FLUSH_S = 15.0
"""The time that the writer's batches in flight have to be acknowledged."""
CATCH_UP_S = 15.0
"""The time that the consumer has to read the last records."""
GROUP_S = 45.0
"""The time that the group has to read the last records, and to end."""
ADMIN_END_S = 40.0
"""The time in which the last request of the admin client must end."""
SETTLE_S = 30.0
"""The time that followers have to fetch the last records."""
FAULT_S = 30.0
"""The time in which the fault of one node must end, in addition to a command of a nodes.toml."""
EXAMINE_S = 180.0
"""The time for the reading of all records at the end."""
ADMIN_S = 10.0
"""The timeout of one request of that reading."""
POLL_S = 0.1


async def run_scenario(
    plan: Plan, cluster: Cluster, view: View, interruption: Interruption | None = None
) -> Result:
    """Run the plan's variants one after another and return the result. Raise nothing.

    `interruption` handles the signals of the process, if it is given."""
    handled = interruption or Interruption()
    view.begin(plan.scenario.name, plan.scenario.title)
    started_wall_ms, begin_s = time.time_ns() // 1_000_000, time.monotonic()
    async with contextlib.AsyncExitStack() as stack:
        try:
            async with asyncio.timeout(SETUP_S):
                setup = started_run(plan, cluster, view)
                run = await handled.guard(stack.enter_async_context(setup))
        except TimeoutError:
            why = f"the clients did not start within {SETUP_S:.0f} s"
            return failed_result(plan, why, started_wall_ms, ms_since(begin_s))
        except Exception as error:  # a cluster that cannot serve the clients is a verdict, too
            why = f"the run could not start: {reason(error)}"
            return failed_result(plan, why, started_wall_ms, ms_since(begin_s))
        try:
            await handled.guard(carry_out_variants(run, plan, view))
        except Interrupted as interrupted:
            run.failed_steps.append(str(interrupted))
            run.note(str(interrupted), kind="fault")
        view.step("all faults end, and every record is read back")
        await end_all_faults(run)
        return await examined(run, plan)


def ms_since(begin_s: float) -> int:
    """Return the time in ms since a time of the monotonic clock."""
    return round((time.monotonic() - begin_s) * 1000)


async def carry_out_variants(run: ScenarioRun, plan: Plan, view: View) -> None:
    """Let the clients write for the warm-up time, then carry out all variants.

    The first step that fails is recorded and ends the variants. Between two variants all faults
    end and the cluster recovers. The clients then write for the cool-down time."""
    workload = plan.scenario.workload
    run.note(
        f"clients write into {workload.partitions} partitions x {workload.replication_factor}, "
        f"acks={workload.acks}, and read"
    )
    await asyncio.sleep(workload.warm_up_ms / 1000)
    for number, variant in enumerate(plan.variants):
        if number:
            await end_all_faults(run)
            await stage(run, "between two variants", HEAL_S + 1, full_isrs(run))
        title = "" if variant.title == "-" else f": {variant.title}"
        view.line(f"{'':>10}  {variant.name}{title}")
        if run.problems or not await carried_out(run, variant, view):
            return
    await end_all_faults(run)
    await asyncio.sleep(workload.cool_down_ms / 1000)


async def carried_out(run: ScenarioRun, variant: Variant, view: View) -> bool:
    """Carry out the steps of a variant. Return False after the first step that fails.

    Its reason is recorded. An unexpected error of a step is a failure of this step, too."""
    for number, step in enumerate(variant.steps, 1):
        view.step(f"{variant.name}, step {number} of {len(variant.steps)}: {step.do}")
        try:
            await carry_out(run, step)
        except Exception as error:  # a verdict must not be lost, whatever fails
            said = f"{variant.name}, step {step.do} (line {step.line}): {reason(error)}"
            run.failed_steps.append(said)
            run.note(f"step {step.do}: {reason(error)}", kind="fault")
            return False
    return True


async def end_all_faults(run: ScenarioRun) -> None:
    """End all faults and start all nodes that a step stopped or killed.

    It runs even after a failed step or a signal. A node that died without a step is a problem, and
    is not started."""
    for node in run.died():
        log = run.control.log_of(node)
        run.problem(f"node {node} ended although no step stopped it: see {log}")
    fault_s = FAULT_S + run.control.command_ms / 1000
    for node in run.control.paused:
        await stage(run, f"the pause of node {node} ends", fault_s, resume_node(run, node))
    for node in run.faults.by_rules():
        await stage(run, f"the fault of node {node} ends", FAULT_S, heal_links(run, node))
    if run.pinned_writer is not None:
        await stage(run, "the pinned writer ends", FAULT_S, unpin_writer(run, {}))
    for node in run.down():
        await stage(run, f"node {node} starts", fault_s, start_node(run, node))


async def full_isrs(run: ScenarioRun) -> None:
    """Wait until every ISR is full. Raise StepFailed if that takes longer than HEAL_S."""
    await run.until(run.in_sync, round(HEAL_S * 1000), "every ISR is full at the end")


async def examined(run: ScenarioRun, plan: Plan) -> Result:
    """Stop the clients, and return the result: read everything back, and compare it."""
    await stage(run, "every ISR is full", HEAL_S + 5, full_isrs(run))
    await stage(run, "the producers end", FLUSH_S + 10, run.writer.stop(FLUSH_S))
    await stage(run, "the metadata client ends", FAULT_S, run.probe.stop())
    if run.admin is not None:
        await stage(run, "the admin client ends", ADMIN_END_S, run.admin.stop())
    await caught_up(run)
    if run.group is not None:
        await stage(run, "the group ends", GROUP_S, end_group(run, run.group))
    await stage(run, "the consumer ends", FAULT_S, run.reader.stop())
    run.ledger.delays.close(time.monotonic())
    end_ms = run.clock.now_ms()
    back = await stage(
        run, "reading everything back", EXAMINE_S, asyncio.to_thread(read_everything, run)
    )
    different = None
    if REPLICAS not in run.cluster.not_judged:
        different = await stage(
            run, "comparing the replicas", SETTLE_S + FAULT_S, different_replicas(run)
        )
    final = await stage(
        run, "reading the metadata of the whole run", FAULT_S, asyncio.to_thread(run.final_states)
    )
    for node in run.died():
        run.problem(f"node {node} ended although no step stopped it")
    return result_of(run, plan, Examined(back, different, final, end_ms))


async def end_group(run: ScenarioRun, group: Group) -> None:
    """Wait for CATCH_UP_S until the group has read everything, and stop it."""
    await group.end_kills()
    await group.catch_up(run.ledger.ends(), CATCH_UP_S)
    await group.stop()


async def caught_up(run: ScenarioRun) -> None:
    """Wait for CATCH_UP_S at most until the consumer has read every acknowledged record."""
    deadline_s = time.monotonic() + CATCH_UP_S
    while run.ledger.delays.unread():
        if time.monotonic() > deadline_s:
            return
        await asyncio.sleep(POLL_S)


def read_everything(run: ScenarioRun) -> ReadBack:
    """Read all records from the leaders. Raise Refused or NotReachable if no broker answers."""
    admin = run.cluster.admin(ADMIN_S)
    try:
        return read_back(run.ledger, Consumer(admin, run.brokers.topic))
    finally:
        admin.close()


async def different_replicas(run: ScenarioRun) -> list[int]:
    """Return the partitions whose in-sync replicas differ.

    Followers have SETTLE_S to fetch the last records, unless the run has failed before."""
    log_dirs: dict[int, Path] = {node: run.log_dir(node) for node in run.broker_ids}
    deadline_s = time.monotonic() + SETTLE_S
    while True:
        found = await asyncio.to_thread(differing, log_dirs, run.brokers.topic, run.states.isr)
        failed = run.failed_steps or run.problems
        if not found or time.monotonic() > deadline_s or failed:
            return sorted(found)
        await asyncio.sleep(POLL_S)
