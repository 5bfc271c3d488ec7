"""A scenario run from start to verdict: workload, steps, healing, and comparison.

Even if a step fails, all faults end, the clients stop, and the acknowledged records are
compared."""

from __future__ import annotations

import asyncio
import time
from array import array

from quorate.cli.chaos.actions import carry_out, heal, unpin_writer
from quorate.cli.chaos.comparison import Comparison, Verdict
from quorate.cli.chaos.ledger import CLIENTS
from quorate.cli.chaos.process_cluster import ProcessCluster
from quorate.cli.chaos.reader import number_of, taken_back
from quorate.cli.chaos.replicas import differing
from quorate.cli.chaos.run_setup import Plan, started_run
from quorate.cli.chaos.scenario_run import ScenarioRun, StepFailed
from quorate.cli.chaos.verdict import Evidence, Outage, Result, checks
from quorate.cli.chaos.view import View
from quorate.cli.client.consumer import EARLIEST, LATEST, Consumer
from quorate.cli.client.errors import NotReachable, Refused

HEAL_MS = 60_000
"""The time that the ISRs have to become full at the end."""
FLUSH_S = 15.0
"""The time that the writer's batches in flight have to be acknowledged."""
SETTLE_S = 30.0
"""The time that followers have to fetch the last records."""
POLL_S = 0.1


async def run_scenario(plan: Plan, cluster: ProcessCluster, view: View) -> Result:
    """Run the plan's variants one after another and return the result."""
    async with started_run(plan, cluster, view) as run:
        try:
            await carry_out_steps(run, plan, view)
            await cool_down(run)
        finally:
            await end_all_faults(run)
        await run.writer.stop(FLUSH_S)
        await wait_for_full_isrs(run)
        await run.reader.stop()
        return await result_of(run, plan)


async def carry_out_steps(run: ScenarioRun, plan: Plan, view: View) -> None:
    """Let the clients write for the warm-up time, then carry out the steps of all variants.

    The first step that fails is recorded and ends the steps."""
    workload = plan.scenario.workload
    run.note(
        f"clients write into {workload.partitions} partitions x {workload.replication_factor}, "
        "acks=all, and read"
    )
    await asyncio.sleep(workload.warm_up_ms / 1000)
    for variant in plan.variants:
        view.line(f"{'':>10}  {variant.name}: {variant.title}")
        for step in variant.steps:
            try:
                await carry_out(run, step)
            except (StepFailed, Refused, NotReachable) as failed:
                run.failed_steps.append(
                    f"{variant.name}, step {step.do} (line {step.line}): {failed}"
                )
                run.note(f"step {step.do}: {failed}", kind="fault")
                return


async def cool_down(run: ScenarioRun) -> None:
    """Let the clients write for the workload's cool-down time."""
    await asyncio.sleep(run.scenario.workload.cool_down_ms / 1000)


async def end_all_faults(run: ScenarioRun) -> None:
    """End all faults and start all nodes that a step stopped or killed.

    It runs even after a failed step or Ctrl-C. Nodes that died without a step are recorded as a
    failed step and not started."""
    run.failed_steps += [
        f"node {node} ended although no step stopped it: see {run.cluster.directory.node_log(node)}"
        for node in run.died()
    ]
    try:
        await heal(run, {})
    except Refused as refused:
        run.failed_steps.append(str(refused))
    if run.pinned_writer is not None:
        await unpin_writer(run, {})
    for node in run.fault_states.open():
        await asyncio.to_thread(run.cluster.restart, node)
        run.fault_states.end(node, run.clock.now_ms())


async def wait_for_full_isrs(run: ScenarioRun) -> None:
    """Wait until every ISR is full. If that takes longer than HEAL_MS, record a failed step."""
    try:
        await run.until(run.in_sync, HEAL_MS, "every ISR is full at the end")
    except StepFailed as failed:
        run.failed_steps.append(str(failed))


async def result_of(run: ScenarioRun, plan: Plan) -> Result:
    """Return the result: read everything back, compare it, and read the final timeline."""
    end_ms = run.clock.now_ms()
    compared, final = await asyncio.to_thread(read_back, run)
    different = await different_replicas(run)
    events, states = run.final_states()
    own_events = [event for event in run.timeline if event.kind in ("step", "fault")]
    timeline = sorted(
        [*(event for event in own_events if event.what != "registers"), *events],
        key=lambda event: event.ms,
    )
    back = taken_back(run.reader.read, final)
    evidence = Evidence(
        compared=compared,
        sent=run.ledger.sent,
        read_along=run.reader.records,
        taken_back=len(back),
        different_replicas=different,
        failures=run.ledger.failures,
        failed_steps=run.failed_steps,
        expiries=run.expiries,
        pinned=run.pinned,
        outages=[
            Outage(gap.partition, run.clock.ms(gap.start_s), run.clock.ms(gap.end_s))
            for gap in run.ledger.outages
        ],
        leadership=states.leadership.close(end_ms),
    )
    return Result(
        scenario=plan.scenario.name,
        title=plan.scenario.title,
        about=plan.scenario.about,
        variants=[variant.name for variant in plan.variants],
        partitions=run.ledger.partitions,
        evidence=evidence,
        checks=list(checks(evidence, plan.scenario.expect)),
        timeline=timeline,
        nodes=run.intervals(states, end_ms),
        started_wall_ms=run.clock.start_wall_ms,
        duration_ms=end_ms,
    )


def read_back(run: ScenarioRun) -> tuple[Verdict, dict[int, array[int]]]:
    """Read all records from the leaders, up to the ends that their logs have at the start.

    Return the comparison, and the record numbers by offset of each partition. Raise Refused or
    NotReachable if a partition cannot be read."""
    partitions = run.ledger.partitions
    comparison = Comparison(
        run.ledger.lines(), run.ledger.acknowledged, partitions, clients=CLIENTS
    )
    final = {partition: array("q") for partition in range(partitions)}
    admin = run.cluster.admin()
    try:
        consumer = Consumer(admin, run.brokers.topic)
        consumer.seek(EARLIEST)
        ends = {number: consumer.offset_of(number, LATEST) for number in consumer.numbers}
        while any(consumer.positions[number] < end for number, end in ends.items()):
            for each in consumer.poll():
                key, value = bytes(each.record.key or b""), bytes(each.record.value or b"")
                comparison.read(each.partition, each.record.offset, key, value)
                final[each.partition].append(number_of(key))
    finally:
        admin.close()
    return comparison.verdict(), final


async def different_replicas(run: ScenarioRun) -> list[int]:
    """Return the partitions whose in-sync replicas differ.

    Followers have SETTLE_S to fetch the last records, unless a step of the run failed."""
    log_dirs = {node: run.log_dir(node) for node in run.broker_ids}
    deadline_s = time.monotonic() + SETTLE_S
    while True:
        found = await asyncio.to_thread(differing, log_dirs, run.brokers.topic, run.states.isr)
        if not found or time.monotonic() > deadline_s or run.failed_steps:
            return sorted(found)
        await asyncio.sleep(POLL_S)
