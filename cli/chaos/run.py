"""A scenario run from start to verdict: workload, steps, healing, and comparison.

Whatever fails in the steps, all faults end, the clients stop, and the acknowledged records are
compared."""

from __future__ import annotations

import asyncio
import time
from array import array

from quorate.cli.chaos.actions import carry_out, heal, unpin_writer
from quorate.cli.chaos.cluster import LocalCluster
from quorate.cli.chaos.comparison import Comparison, Verdict
from quorate.cli.chaos.ledger import CLIENTS
from quorate.cli.chaos.reader import number_of, taken_back
from quorate.cli.chaos.replicas import differing
from quorate.cli.chaos.stage import Stage, Unmet
from quorate.cli.chaos.staging import Plan, staged
from quorate.cli.chaos.verdict import Evidence, Outage, Result, checks
from quorate.cli.chaos.view import View
from quorate.cli.client.consumer import EARLIEST, LATEST, Consumer
from quorate.cli.client.errors import NotReachable, Refused

HEAL_MS = 60_000
FLUSH_S = 15.0
SETTLE_S = 30.0
POLL_S = 0.1


async def rehearse(plan: Plan, cluster: LocalCluster, view: View) -> Result:
    """Run the plan's variants one after another and return the result."""
    async with staged(plan, cluster, view) as stage:
        try:
            await play(stage, plan, view)
            await settle(stage)
        finally:
            await unhurt(stage)
        await stage.writer.stop(FLUSH_S)
        await in_sync_again(stage)
        await stage.reader.stop()
        return await judged(stage, plan)


async def play(stage: Stage, plan: Plan, view: View) -> None:
    """Carry out the steps of all variants.

    The first step that fails is recorded and ends the steps."""
    workload = plan.scenario.workload
    stage.note(
        f"clients write into {workload.partitions} partitions x {workload.replication_factor}, "
        "acks=all, and read along"
    )
    await asyncio.sleep(workload.warm_up_ms / 1000)
    for variant in plan.variants:
        view.line(f"{'':>10}  {variant.name}: {variant.title}")
        for step in variant.steps:
            try:
                await carry_out(stage, step)
            except (Unmet, Refused, NotReachable) as unmet:
                stage.unmet.append(f"{variant.name}, step {step.do} (line {step.line}): {unmet}")
                stage.note(f"step {step.do}: {unmet}", kind="fault")
                return


async def settle(stage: Stage) -> None:
    """Let the clients write for the workload's cool-down time."""
    await asyncio.sleep(stage.scenario.workload.cool_down_ms / 1000)


async def unhurt(stage: Stage) -> None:
    """End all faults and start all nodes that a step stopped or killed.

    It runs even after a failed step or Ctrl-C. Nodes that died without a step are recorded
    first."""
    stage.unmet += [
        f"node {node} died by itself, see {stage.cluster.directory.node_log(node)}"
        for node in stage.died()
    ]
    try:
        await heal(stage, {})
    except Refused as refused:
        stage.unmet.append(str(refused))
    if stage.pinned_writer is not None:
        await unpin_writer(stage, {})
    for node in stage.hurt.open():
        await asyncio.to_thread(stage.cluster.restart, node)
        stage.hurt.end(node, stage.watch.now_ms())


async def in_sync_again(stage: Stage) -> None:
    """Wait until every ISR holds all replicas. Record it if that takes too long."""
    try:
        await stage.until(stage.in_sync, HEAL_MS, "every ISR is whole in the end")
    except Unmet as unmet:
        stage.unmet.append(str(unmet))


async def judged(stage: Stage, plan: Plan) -> Result:
    """Return the result: read everything back, compare it, and read the final timeline."""
    end_ms = stage.watch.now_ms()
    compared, final = await asyncio.to_thread(read_back, stage)
    different = await different_replicas(stage)
    events, story = stage.final_story()
    deeds = [event for event in stage.timeline if event.kind in ("step", "fault")]
    timeline = sorted(
        [*(event for event in deeds if event.what != "registers"), *events],
        key=lambda event: event.ms,
    )
    back = taken_back(stage.reader.read, final)
    evidence = Evidence(
        compared=compared,
        sent=stage.ledger.sent,
        read_along=stage.reader.records,
        taken_back=len(back),
        different_replicas=different,
        failures=stage.ledger.failures,
        unmet=stage.unmet,
        expiries=stage.expiries,
        pinned=stage.pinned,
        outages=[
            Outage(gap.partition, stage.watch.ms(gap.start_s), stage.watch.ms(gap.end_s))
            for gap in stage.ledger.outages
        ],
        leadership=story.leadership.close(end_ms),
    )
    return Result(
        scenario=plan.scenario.name,
        title=plan.scenario.title,
        about=plan.scenario.about,
        variants=[variant.name for variant in plan.variants],
        partitions=stage.ledger.partitions,
        evidence=evidence,
        checks=list(checks(evidence, plan.scenario.expect)),
        timeline=timeline,
        nodes=stage.spells(story, end_ms),
        started_wall_ms=stage.watch.start_wall_ms,
        duration_ms=end_ms,
    )


def read_back(stage: Stage) -> tuple[Verdict, dict[int, array[int]]]:
    """Read all records from the leaders.

    Return the comparison, and the record numbers by offset."""
    partitions = stage.ledger.partitions
    comparison = Comparison(
        stage.ledger.lines(), stage.ledger.acknowledged, partitions, clients=CLIENTS
    )
    final = {partition: array("q") for partition in range(partitions)}
    admin = stage.cluster.admin()
    try:
        consumer = Consumer(admin, stage.brokers.topic)
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


async def different_replicas(stage: Stage) -> list[int]:
    """Return the partitions whose replicas differ.

    Followers have SETTLE_S to fetch the last records, unless a step of the run failed."""
    log_dirs = {node: stage.log_dir(node) for node in stage.broker_ids}
    deadline_s = time.monotonic() + SETTLE_S
    while True:
        found = await asyncio.to_thread(differing, log_dirs, stage.brokers.topic, stage.story.isr)
        if not found or time.monotonic() > deadline_s or stage.unmet:
            return sorted(found)
        await asyncio.sleep(POLL_S)
