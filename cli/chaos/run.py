"""A rehearsal from start to verdict: load, steps, healing, and the count of what is left.

Whatever happens in the steps, faults end, clients stop, and what was acknowledged is looked for.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from array import array
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from quorate.cli.chaos.actions import carry_out, heal, unpin_writer
from quorate.cli.chaos.brokers import Brokers
from quorate.cli.chaos.cluster import LocalCluster
from quorate.cli.chaos.comparison import Comparison, Verdict
from quorate.cli.chaos.fault_sockets import FaultSockets
from quorate.cli.chaos.ledger import CLIENTS, Ledger
from quorate.cli.chaos.metadata_tail import MetadataTail
from quorate.cli.chaos.reader import Reader, number_of, taken_back
from quorate.cli.chaos.replicas import differing
from quorate.cli.chaos.scenario import Scenario, Variant, Workload
from quorate.cli.chaos.stage import Stage, Unmet, Watch
from quorate.cli.chaos.timeline import Story
from quorate.cli.chaos.verdict import Evidence, Outage, Result, checks
from quorate.cli.chaos.view import STATUS_PERIOD_S, View
from quorate.cli.chaos.writer import Pace, Writer
from quorate.cli.client.consumer import EARLIEST, LATEST, Consumer
from quorate.cli.errors import NotReachable, Refused
from quorate.config.listeners import parse_servers
from quorate.config.loader import load
from quorate.quorum.clock import AsyncioClock
from quorate.quorum.rpc.kafka.client import ClientSettings
from quorate.quorum.rpc.transport import AioTransport
from quorate.quorum.seams import Address

CLIENT_ID = "quorate-chaos"
HEAL_MS = 60_000
FLUSH_S = 15.0
FIRST_WRITES_S = 60.0
SETTLE_S = 30.0
POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Plan:
    scenario: Scenario
    variants: Sequence[Variant]
    topic: str


async def rehearse(plan: Plan, cluster: LocalCluster, view: View) -> Result:
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


@contextlib.asynccontextmanager
async def staged(plan: Plan, cluster: LocalCluster, view: View) -> AsyncIterator[Stage]:
    """The topic is there, clients write and read, the metadata log is followed."""
    workload = plan.scenario.workload
    transport, clock = AioTransport(), AsyncioClock()
    servers = parse_servers("bootstrap", cluster.entry["bootstrap"].split(","))
    settings = ClientSettings(
        client_id=CLIENT_ID, connect_timeout_ms=workload.request_timeout_ms * 2
    )

    def make_brokers() -> Brokers:
        bootstrap = [Address(*server) for server in servers]
        return Brokers(transport, clock, bootstrap, plan.topic, settings)

    active = await asyncio.to_thread(cluster.active_controller)
    tails = [MetadataTail(Path(node["log_dir"])) for node in cluster.entry["brokers"]]
    for tail in tails:
        tail.skip_to_end()
    since = min(tail.offset for tail in tails)
    await asyncio.to_thread(create_topic, cluster, plan.topic, workload)
    brokers = make_brokers()
    await brokers.refresh()
    if len(brokers.leaders) != workload.partitions:
        raise Refused(f"topic {plan.topic}: no broker tells its leaders")
    ledger = Ledger(workload.partitions, workload.record_bytes)
    writer = Writer(
        brokers=brokers,
        ledger=ledger,
        pace=Pace.of(workload.records_per_s, workload.partitions),
        timeout_ms=workload.request_timeout_ms,
    )
    reader = Reader(brokers)
    watching: list[asyncio.Task[None]] = []
    try:
        await writer.start(range(workload.partitions))
        reader.start(brokers.known, workload.partitions)
        await first_writes(ledger)
        watch = Watch()
        stage = Stage(
            scenario=plan.scenario,
            cluster=cluster,
            faults=FaultSockets(cluster.directory),
            watch=watch,
            brokers=brokers,
            make_brokers=make_brokers,
            ledger=ledger,
            writer=writer,
            reader=reader,
            tails=tails,
            story=Story(brokers.topic_id, watch.start_wall_ms),
            session_timeout_ms=session_timeout_ms(cluster),
            say=view.say,
            since=since,
            serving=frozenset(brokers.known),
            first_active=active,
        )
        stage.story.begin(stage.serving, active)
        stage.poll_log()
        watching = [
            asyncio.create_task(stage.watch_log()),
            asyncio.create_task(show_status(stage, view)),
        ]
        yield stage
    finally:
        view.clear()
        for task in watching:
            task.cancel()
        results = await asyncio.gather(*watching, return_exceptions=True)
        await writer.stop(0)
        await reader.stop()
        brokers.close()
        for result in results:
            if isinstance(result, Exception):
                raise result


async def first_writes(ledger: Ledger) -> None:
    """What a partition takes longer the first time is no outage: the rehearsal begins now."""
    deadline_s = time.monotonic() + FIRST_WRITES_S
    while not ledger.first_writes():
        if time.monotonic() > deadline_s or ledger.failures:
            said = "; ".join(ledger.failures[:1]) or f"none within {FIRST_WRITES_S:.0f} s"
            raise Refused(f"not every partition takes a write: {said}")
        await asyncio.sleep(POLL_S)
    ledger.outages.clear()


def create_topic(cluster: LocalCluster, topic: str, workload: Workload) -> None:
    cluster.create_topic(
        topic,
        workload.partitions,
        workload.replication_factor,
        min_isr=workload.min_insync_replicas,
    )
    if not cluster.wait_healed(topic, workload.replication_factor):
        raise Refused(f"topic {topic}: not every replica is in sync")


def session_timeout_ms(cluster: LocalCluster) -> int:
    """The active controller's; all controllers of a local cluster have the same."""
    controller = cluster.entry["controllers"][0]["id"]
    timeout: int = load(str(cluster.directory.node_file(controller)))["broker.session.timeout.ms"]
    return timeout


async def show_status(stage: Stage, view: View) -> None:
    while True:
        view.status(stage.watch.now_ms(), stage.ledger)
        await asyncio.sleep(STATUS_PERIOD_S)


async def play(stage: Stage, plan: Plan, view: View) -> None:
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
    await asyncio.sleep(stage.scenario.workload.cool_down_ms / 1000)


async def unhurt(stage: Stage) -> None:
    """Also when a step failed or somebody pressed Ctrl-C: no fault stays, every node runs."""
    await heal(stage, {})
    if stage.pinned_writer is not None:
        await unpin_writer(stage, {})
    for node in stage.hurt.open():
        await asyncio.to_thread(stage.cluster.restart, node)
        stage.hurt.end(node, stage.watch.now_ms())


async def in_sync_again(stage: Stage) -> None:
    try:
        await stage.until(stage.in_sync, HEAL_MS, "every ISR is whole in the end")
    except Unmet as unmet:
        stage.unmet.append(str(unmet))


async def judged(stage: Stage, plan: Plan) -> Result:
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
    """Everything that the leaders have, compared; and which record stands at which offset."""
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
    """Followers are given a moment to have the last records."""
    log_dirs = {node: stage.log_dir(node) for node in stage.broker_ids}
    deadline_s = time.monotonic() + SETTLE_S
    while True:
        found = await asyncio.to_thread(differing, log_dirs, stage.brokers.topic, stage.story.isr)
        if not found or time.monotonic() > deadline_s or stage.unmet:
            return sorted(found)
        await asyncio.sleep(POLL_S)
