"""Set-up and tear-down of a run: the topic, the clients, and the source of facts."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from quorate.cli.chaos.actions.run_clock import RunClock
from quorate.cli.chaos.actions.scenario_run import ScenarioRun
from quorate.cli.chaos.control.cluster import Cluster
from quorate.cli.chaos.control.fault_sockets import LEASE_MS
from quorate.cli.chaos.results.view import STATUS_PERIOD_S, View
from quorate.cli.chaos.scenario.scenario import ACKS, Expected, Scenario, Variant, Workload
from quorate.cli.chaos.timeline.cluster_states import ClusterStates
from quorate.cli.chaos.workload.admin_load import AdminLoad
from quorate.cli.chaos.workload.brokers import Brokers
from quorate.cli.chaos.workload.group import Group
from quorate.cli.chaos.workload.group_log import GroupLog
from quorate.cli.chaos.workload.ledger import Ledger
from quorate.cli.chaos.workload.metadata_probe import MetadataProbe
from quorate.cli.chaos.workload.reader import Reader
from quorate.cli.chaos.workload.writer import Pace, Writer
from quorate.cli.client.errors import Refused
from quorate.cli.client.secured_client import with_tls
from quorate.quorum.clock import AsyncioClock
from quorate.quorum.rpc.kafka.client import ClientSettings
from quorate.quorum.rpc.transport import AioTransport
from quorate.quorum.seams import Address

CLIENT_ID = "quorate-chaos"
FIRST_WRITES_S = 60.0
RENEWALS_PER_LEASE = 4
POLL_S = 0.1


class Clients(NamedTuple):
    """The clients of a run."""

    writer: Writer
    reader: Reader
    probe: MetadataProbe


@dataclass(frozen=True, slots=True)
class Plan:
    """One run: a scenario, some of its variants, and the name of its topic."""

    scenario: Scenario
    variants: Sequence[Variant]
    topic: str
    seed: int = 0
    """The seed of all random choices of the run."""

    @property
    def expect(self) -> Expected:
        """Return the bounds of the run."""
        return self.scenario.expect_of(self.variants)


@contextlib.asynccontextmanager
async def started_run(plan: Plan, cluster: Cluster, view: View) -> AsyncIterator[ScenarioRun]:
    """Yield the state of a run whose clients write and read all partitions.

    Create the topic first, and stop the clients afterwards. Raise Refused, NotReachable or
    NoProducerId if the clients cannot start."""
    workload = plan.scenario.workload
    active = await asyncio.to_thread(cluster.active_controller)
    make_brokers, clock = client_maker(plan, cluster), RunClock()
    facts = await asyncio.to_thread(cluster.facts, make_brokers, clock.now_ms)
    await asyncio.to_thread(create_topic, cluster, plan.topic, workload)
    async with clients(make_brokers, workload) as (writer, reader, probe):
        brokers = writer.brokers
        clock.restart()
        run = ScenarioRun(
            scenario=plan.scenario,
            cluster=cluster,
            control=cluster.control(LEASE_MS),
            facts=facts,
            clock=clock,
            brokers=brokers,
            make_brokers=make_brokers,
            ledger=writer.ledger,
            writer=writer,
            reader=reader,
            probe=probe,
            states=ClusterStates(brokers.topic_id, clock.start_wall_ms, clock.offsets_ms),
            session_timeout_ms=cluster.session_timeout_ms(),
            say=view.say,
            serving=frozenset(brokers.known),
            first_active=active,
            racks=cluster.racks(),
            chance=random.Random(plan.seed),
        )
        run.states.begin(run.serving, active)
        # The start of a group may take longer than a lease.
        async with (
            run.control.leases(),
            in_background(run, renew(run)),
            facts.following(),
            other_clients(run),
        ):
            run.poll_facts()
            async with background_tasks(run, view):
                yield run


def client_maker(plan: Plan, cluster: Cluster) -> Callable[[], Brokers]:
    """Return a function that creates a client's metadata, with connections of its own.

    The random numbers of the n-th client come from the seed of the plan and n."""
    bootstrap = [Address(*server) for server in cluster.servers]
    security = cluster.client_file.security
    transport, clock = with_tls(AioTransport(), security), AsyncioClock()
    settings = ClientSettings(
        client_id=CLIENT_ID,
        connect_timeout_ms=plan.scenario.workload.request_timeout_ms * 2,
        # A paused broker accepts connections, and answers nothing. This bounds the first question.
        request_timeout_ms=plan.scenario.workload.request_timeout_ms,
    )
    numbers = itertools.count()

    def make() -> Brokers:
        chance = random.Random(f"{plan.seed} {next(numbers)}")
        return Brokers(transport, clock, bootstrap, plan.topic, settings, security.login, chance)

    return make


@contextlib.asynccontextmanager
async def clients(
    make_brokers: Callable[[], Brokers], workload: Workload
) -> AsyncIterator[Clients]:
    """Yield clients after the first write to every partition.

    Each client has connections of its own, because a broker answers the requests of a connection in
    order. Otherwise a change of metadata that waits for a controller would delay the writes behind
    it.

    Stop the clients afterwards. Batches that are then still in flight are cancelled. Raise Refused
    or NoProducerId if the clients cannot start."""
    ledger = Ledger(workload.partitions, workload.record_bytes, workload.key_bytes)
    brokers, readers, probes = (make_brokers() for _ in range(3))
    writer = Writer(
        brokers=brokers,
        ledger=ledger,
        pace=Pace.of(workload.records_per_s, workload.partitions),
        timeout_ms=workload.request_timeout_ms,
        acks=ACKS[workload.acks],
    )
    reader = Reader(readers, ledger.delays)
    period_s = workload.metadata_interval_ms / 1000
    probe = MetadataProbe(probes, workload.request_timeout_ms, period_s)
    try:
        for each in (brokers, readers, probes):
            await each.refresh()
        if len(brokers.leaders) != workload.partitions:
            raise Refused(f"topic {brokers.topic}: no broker knows the leaders of all partitions")
        await writer.start(range(workload.partitions))
        reader.start(brokers.known, workload.partitions)
        await first_writes(ledger)
        probe.start()
        yield Clients(writer, reader, probe)
    finally:
        # The run has stopped them and recorded their errors. This is for a run that was cancelled.
        for stop in (writer.stop(0), reader.stop(), probe.stop()):
            with contextlib.suppress(Exception):
                await stop
        for each in (brokers, readers, probes):
            each.close()


@contextlib.asynccontextmanager
async def other_clients(run: ScenarioRun) -> AsyncIterator[None]:
    """Add the consumer group and the admin client of the workload to the run, if it has them.

    Every partition has a member of the group when the block begins."""
    workload = run.scenario.workload
    if workload.group_members:
        run.group = Group(
            bootstrap=",".join(str(Address(*server)) for server in run.cluster.servers),
            topic=run.brokers.topic,
            members=workload.group_members,
            session_ms=workload.group_session_ms,
            kill_interval_s=workload.member_kill_interval_ms / 1000,
            log=GroupLog(workload.partitions),
            say=run.note,
            command_config=run.cluster.client_file.path,
        )
    if workload.admin_interval_ms:
        run.admin = AdminLoad(
            requests=run.cluster,
            topic=run.brokers.topic,
            interval_s=workload.admin_interval_ms / 1000,
        )
    try:
        if run.group is not None:
            await run.group.start()
            run.group.begin_kills()
        if run.admin is not None:
            run.admin.start()
        yield
    finally:
        # The run has stopped them and recorded their errors. This is for a run that was cancelled.
        for each in (run.group, run.admin):
            with contextlib.suppress(Exception):
                await (each.stop() if each is not None else asyncio.sleep(0))


async def first_writes(ledger: Ledger) -> None:
    """Wait until every partition has acknowledged a write.

    Slow first writes are not outages, so the outages are cleared. Raise Refused if it takes longer
    than FIRST_WRITES_S, or after a fatal error of a producer."""
    deadline_s = time.monotonic() + FIRST_WRITES_S
    while not ledger.first_writes():
        if time.monotonic() > deadline_s or ledger.failures:
            said = "; ".join(ledger.failures[:1]) or f"none within {FIRST_WRITES_S:.0f} s"
            raise Refused(f"not every partition acknowledges a write: {said}")
        await asyncio.sleep(POLL_S)
    ledger.outages.clear()
    ledger.latencies.clear()
    ledger.delays.clear()


@contextlib.asynccontextmanager
async def background_tasks(run: ScenarioRun, view: View) -> AsyncIterator[None]:
    """For the duration of the block, follow the metadata, and show the status on the terminal."""

    async def show_status() -> None:
        while True:
            problems = (*run.failed_steps, *run.problems)
            view.status(run.clock.now_ms(), run.ledger, problems)
            await asyncio.sleep(STATUS_PERIOD_S)

    try:
        async with in_background(run, run.follow_facts(), show_status()):
            yield
    finally:
        view.clear()


@contextlib.asynccontextmanager
async def in_background(run: ScenarioRun, *work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Do the work until the end of the block. An error of it is a problem of the run."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, Exception):
                run.problem(f"the run failed in the background: {result!r}")


async def renew(run: ScenarioRun) -> None:
    """Renew the leases of all faults until cancelled. Without it they end after LEASE_MS."""
    while True:
        await asyncio.sleep(LEASE_MS / 1000 / RENEWALS_PER_LEASE)
        run.control.renew()
        if ruled := run.faults.by_rules():
            await asyncio.to_thread(run.local.sockets.renew, ruled)


def create_topic(cluster: Cluster, topic: str, workload: Workload) -> None:
    """Create the topic and wait until all its replicas are in sync.

    Raise Refused if the cluster refuses it or a replica is not in sync in time."""
    cluster.create_topic(
        topic,
        workload.partitions,
        workload.replication_factor,
        min_isr=workload.min_insync_replicas,
    )
    if not cluster.wait_healed(topic, workload.replication_factor):
        raise Refused(f"topic {topic}: not every replica became in sync in time")
