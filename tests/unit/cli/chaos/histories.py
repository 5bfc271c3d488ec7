"""A hand-made result of a scenario run, of any size."""

from __future__ import annotations

from array import array
from dataclasses import replace
from typing import Any

from quorate.cli.chaos.checks.availability import Availability, Outage
from quorate.cli.chaos.checks.evidence import Evidence
from quorate.cli.chaos.checks.faults import BROKER, MUTE, Fault
from quorate.cli.chaos.checks.observations import Expiry, MetadataWrites
from quorate.cli.chaos.checks.pinned_client import Pinned, Refusal
from quorate.cli.chaos.checks.table import checks, not_judged
from quorate.cli.chaos.loading.loader import load
from quorate.cli.chaos.results.result import Result
from quorate.cli.chaos.run.evidence import failed_result
from quorate.cli.chaos.run.setup import Plan
from quorate.cli.chaos.scenario.scenario import Expected
from quorate.cli.chaos.timeline.timeline import (
    ACTIVE,
    FENCED,
    MUTED,
    SERVING,
    STANDBY,
    Event,
    StateInterval,
)
from quorate.cli.chaos.workload.comparison import Comparison, Verdict

EXPECTED = Expected(
    expiry_tolerance_ms=500,
    max_unavailable_ms=2000,
    max_unread_ms=2500,
    max_metadata_wait_ms=3000,
    max_resign_ms=3500,
    max_rebalance_ms=3500,
    max_admin_wait_ms=3500,
    min_pause_ms=4_000,
    max_controller_moves=2,
    min_leader_moves=1,
    max_leader_moves=13,
    max_isr_shrinks=3,
)


def compared(acknowledged: int = 3, missing: int = 0) -> Verdict:
    """Return the comparison of acknowledged lines, of which the last `missing` ones were not
    read."""
    lines = [b"x"] * acknowledged
    comparison = Comparison(lines, array("q", range(acknowledged)), 1)
    for number in range(acknowledged - missing):
        comparison.read(0, number, b"%d" % number, b"x")
    return comparison.verdict()


def intervals(partitions: int) -> list[StateInterval]:
    """Return intervals in which broker 4 leads every partition until 5,000 ms, and then 5 and 6
    do."""
    found = []
    for partition in range(partitions):
        found.append(StateInterval(partition, "led", 0, 5_000, "topic-created", 4, 0))
        leader = 5 + partition % 2
        found.append(StateInterval(partition, "led", 5_000, 10_000, "session-expired", leader, 1))
    return found


def times(partitions: int, *moments_ms: int) -> dict[int, list[int]]:
    """Return the times of 30 batches of every partition after each moment, 10 ms apart."""
    found = [moment + 10 * number for moment in moments_ms for number in range(30)]
    return dict.fromkeys(range(partitions), found)


def killed(**changed: Any) -> Fault:
    """Return the kill of broker 4 from 2,000 to 8,000 ms, with changed fields."""
    fault = Fault(
        kind=MUTE,
        node=4,
        role=BROKER,
        start_ms=2_000,
        end_ms=8_000,
        affected=12,
        effect="12 frames and connects affected",
        led=(0, 1),
    )
    return replace(fault, **changed)


def evidence(partitions: int = 12, **changed: Any) -> Evidence:
    """Return the evidence of a good run, with changed fields."""
    pinned = Pinned(node=4, from_ms=1_000, until_ms=9_000, acknowledged=7)
    pinned.successes = [(0, 2_000), (1, 4_900)]
    pinned.refused["NOT_LEADER_OR_FOLLOWER"] = 17
    pinned.refusals = [Refusal(0, 5_300, "NOT_LEADER_OR_FOLLOWER")]
    served = Availability(done=times(partitions, 100, 5_000, 9_000))
    waits = [Outage(partition, 5_000, 5_900) for partition in range(0, partitions, 3)]
    whole = Evidence(
        compared=compared(),
        sent=3,
        read_along=3,
        taken_back=0,
        different_replicas=(),
        failures=(),
        failed_steps=(),
        faults=(killed(),),
        expiries=(
            Expiry(
                node=4,
                timeout_ms=3_000,
                last_heartbeat_ms=1_990,
                fenced_ms=5_000,
                cause="session-expired",
            ),
        ),
        pinned=(pinned,),
        writes=replace(served, outages=waits),
        reads=served,
        metadata=MetadataWrites(availability=Availability(done=times(1, 100, 5_000, 9_000))),
        leadership=intervals(partitions),
        brokers=(
            StateInterval(4, SERVING, 0, 5_000),
            StateInterval(4, FENCED, 5_000, 10_000, "session-expired"),
        ),
        controllers=(StateInterval(1, ACTIVE, 0, 10_000),),
        voters=(1, 2, 3),
        end_ms=10_000,
    )
    return replace(whole, **changed)


def result(partitions: int = 12, **changed: Any) -> Result:
    """Return the result of a good run, with changed evidence."""
    found = evidence(partitions, **changed)
    return Result(
        scenario="heartbeat-timeout",
        title="A leader falls silent",
        about="<b>What</b> there is to see.",
        variants=["heartbeats"],
        partitions=partitions,
        evidence=found,
        checks=list(checks(found, EXPECTED)),
        not_judged=list(not_judged(found, EXPECTED)),
        timeline=[
            Event(2_000, "its heartbeats are dropped", 4, "", "fault"),
            Event(5_000, "is fenced", 4, "session-expired", "fenced"),
            Event(5_000, "new leaders: broker 5 for <all>", None, "session-expired", "leaders"),
        ],
        nodes=[
            StateInterval(1, STANDBY, 0, 10_000),
            StateInterval(1, ACTIVE, 0, 10_000),
            StateInterval(4, SERVING, 0, 5_000),
            StateInterval(4, FENCED, 5_000, 10_000, "session-expired"),
            StateInterval(4, MUTED, 2_000, 8_000),
        ],
        started_wall_ms=1_700_000_000_000,
        duration_ms=10_000,
    )


def not_started(scenario: str = "leader-kill") -> Result:
    """Return the result of a run that could not start."""
    loaded = load(scenario)
    return failed_result(Plan(loaded, loaded.variants, "t"), "no cluster <x>", 1, 2)
