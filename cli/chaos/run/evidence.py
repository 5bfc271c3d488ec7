"""The evidence and the result of a run, from its state and from the examination at its end."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from quorate.cli.chaos.actions.run_clock import RunClock
from quorate.cli.chaos.actions.scenario_run import ScenarioRun
from quorate.cli.chaos.checks.availability import Availability, Outage
from quorate.cli.chaos.checks.evidence import Evidence
from quorate.cli.chaos.checks.observations import (
    AdminWait,
    AdminWaits,
    GroupReads,
    MetadataWrites,
    Rebalance,
)
from quorate.cli.chaos.checks.table import checks, not_judged
from quorate.cli.chaos.control.local_cluster import LocalCluster
from quorate.cli.chaos.results.result import Result
from quorate.cli.chaos.run.setup import Plan
from quorate.cli.chaos.timeline.cluster_states import ClusterStates
from quorate.cli.chaos.timeline.outage import Gap
from quorate.cli.chaos.timeline.timeline import Event
from quorate.cli.chaos.workload.admin_load import OPERATIONS
from quorate.cli.chaos.workload.comparison import Comparison, Verdict
from quorate.cli.chaos.workload.latencies import Latencies, Samples
from quorate.cli.chaos.workload.ledger import CLIENTS
from quorate.cli.chaos.workload.read_back import ReadBack
from quorate.cli.chaos.workload.reader import taken_back

TWICE = "with acks=1 a client is not idempotent, so it may write a batch twice"
ACKS_ONE = {
    "duplicated": TWICE,
    "out of order": TWICE,
    "at another offset": TWICE,
    "refused": "with acks=1 a leader acknowledges before it hears that another one leads",
}
"""The checks that acks=1 promises nothing about."""


class Examined(NamedTuple):
    """The results of the examination at the end of a run. None means that a part failed."""

    back: ReadBack | None
    different: list[int] | None
    final: tuple[list[Event], ClusterStates] | None
    end_ms: int


def result_of(run: ScenarioRun, plan: Plan, examined: Examined) -> Result:
    """Return the result of a run that has ended."""
    events, states = examined.final or ([], run.states)
    own_events = [event for event in run.timeline if event.kind in ("step", "fault")]
    if examined.final is None:
        own_events = run.timeline
    timeline = sorted(
        [*(event for event in own_events if event.what != "registers"), *events],
        key=lambda event: event.ms,
    )
    end_ms = run.clock.now_ms()
    nodes = run.intervals(states, end_ms)
    evidence = evidence_of(run, examined, states)
    return Result(
        scenario=plan.scenario.name,
        title=plan.scenario.title,
        about=plan.scenario.about,
        variants=[variant.name for variant in plan.variants],
        partitions=run.ledger.partitions,
        evidence=evidence,
        checks=list(checks(evidence, plan.expect)),
        not_judged=list(not_judged(evidence, plan.expect)),
        timeline=timeline,
        nodes=nodes,
        seed=plan.seed,
        started_wall_ms=run.clock.start_wall_ms,
        duration_ms=end_ms,
    )


def evidence_of(run: ScenarioRun, examined: Examined, states: ClusterStates) -> Evidence:
    """Return the evidence of a run. The states must be closed."""
    clock, ledger = run.clock, run.ledger
    back = examined.back or nothing_read(run)
    return Evidence(
        compared=back.compared,
        unread=back.unread,
        sent=ledger.sent,
        read_along=run.reader.records,
        unread_along=ledger.delays.unread(),
        taken_back=len(taken_back(run.reader.read, back.final, back.unread)),
        different_replicas=examined.different or (),
        replicas_compared=examined.different is not None,
        failures=ledger.failures,
        failed_steps=run.failed_steps,
        problems=run.problems,
        faults=run.faults.all(examined.end_ms),
        expiries=run.expiries,
        pinned=run.pinned,
        resignations=run.resignations,
        reassignment=run.reassignment,
        isr_shrinks=states.isr_shrinks,
        writes=availability(ledger.acknowledged_s, ledger.outages, clock),
        reads=availability(ledger.delays.read_s, ledger.delays.gaps, clock),
        metadata=MetadataWrites(
            availability=availability({0: run.probe.committed_s}, run.probe.outages, clock),
            asked=run.asked,
            asks_controllers=isinstance(run.cluster, LocalCluster),
        ),
        latencies={
            "write": latencies(ledger.latencies, clock),
            "read": latencies(ledger.delays.latencies, clock),
            "metadata": latencies(run.probe.latencies, clock),
        },
        leadership=states.leadership.close(examined.end_ms),
        brokers=states.brokers.intervals,
        controllers=states.controllers.intervals,
        voters=run.controllers,
        end_ms=examined.end_ms,
        group=group_reads(run, back),
        admin=admin_waits(run),
        acks_one=run.writer.acks == 1,
        not_judged={**run.cluster.not_judged, **(ACKS_ONE if run.writer.acks == 1 else {})},
    )


def group_reads(run: ScenarioRun, back: ReadBack) -> GroupReads | None:
    """Return the observations of the group. It must have read all that is acknowledged, and
    was read back at the end."""
    if run.group is None:
        return None
    log, clock = run.group.log, run.clock
    acknowledged = run.ledger.ends()
    ends = {
        each: min(len(read), acknowledged.get(each, 0))
        for each, read in back.final.items()
        if each not in back.unread
    }
    return GroupReads(
        records=log.delivered(ends),
        missing=log.missing(ends),
        went_back=list(log.went_back()),
        commits=log.commits(),
        joins=log.joins,
        kills_members=bool(run.group.kill_interval_s),
        rebalances=[
            Rebalance(
                clock.ms(each.killed_s),
                None if each.complete_s is None else clock.ms(each.complete_s),
            )
            for each in log.rebalances
        ],
    )


def admin_waits(run: ScenarioRun) -> AdminWaits | None:
    """Return the requests of the admin client."""
    if run.admin is None:
        return None
    clock = run.clock
    return AdminWaits(
        operations=OPERATIONS,
        requests=[
            AdminWait(
                each.operation,
                clock.ms(each.sent_s),
                None if each.done_s is None else clock.ms(each.done_s),
            )
            for each in run.admin.done
        ],
    )


def availability(
    times_s: Mapping[int, Sequence[float]], gaps: Sequence[Gap], clock: RunClock
) -> Availability:
    """Return times and gaps of the monotonic clock as ms since the start of the run."""
    return Availability(
        done={key: array("q", map(clock.ms, times)) for key, times in times_s.items()},
        outages=[Outage(gap.partition, clock.ms(gap.start_s), clock.ms(gap.end_s)) for gap in gaps],
    )


def latencies(samples: Samples, clock: RunClock) -> Latencies:
    """Return latencies in ms since the start of the run."""
    took_ms = array("q", (round(each * 1000) for each in samples.took_s))
    return Latencies(array("q", map(clock.ms, samples.ended_s)), took_ms)


def nothing_read(run: ScenarioRun) -> ReadBack:
    """Return the result of a reading that failed as a whole."""
    ledger = run.ledger
    partitions = range(ledger.partitions)
    comparison = Comparison(ledger.lines(), ledger.acknowledged, ledger.partitions, clients=CLIENTS)
    return ReadBack(
        comparison.verdict(dict.fromkeys(partitions, 0)),
        {each: array("q") for each in partitions},
        dict.fromkeys(partitions, "the reading failed"),
    )


def failed_result(plan: Plan, why: str, started_wall_ms: int, duration_ms: int) -> Result:
    """Return the bad result of a run that could not start. Every check of it is bad."""
    partitions = plan.scenario.workload.partitions
    nothing: Verdict = Comparison([], array("q"), partitions).verdict()
    evidence = Evidence(
        compared=nothing,
        unread=dict.fromkeys(range(partitions), "the run did not start"),
        sent=0,
        read_along=0,
        taken_back=0,
        different_replicas=(),
        replicas_compared=False,
        failures=(),
        failed_steps=(why,),
        problems=("the run did not start, so it examined nothing",),
        expiries=(),
        pinned=(),
        writes=Availability(),
        reads=Availability(),
        metadata=MetadataWrites(),
        leadership=(),
        end_ms=duration_ms,
    )
    return Result(
        scenario=plan.scenario.name,
        title=plan.scenario.title,
        about=plan.scenario.about,
        variants=[variant.name for variant in plan.variants],
        partitions=partitions,
        evidence=evidence,
        checks=list(checks(evidence, plan.expect)),
        timeline=[Event(0, why, None, "", "fault")],
        nodes=(),
        seed=plan.seed,
        started_wall_ms=started_wall_ms,
        duration_ms=duration_ms,
    )
