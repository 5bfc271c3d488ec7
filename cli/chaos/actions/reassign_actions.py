"""The steps that move replicas of the run's topic, and wait until they have moved."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence

from quorate.cli.chaos.actions.scenario_run import ScenarioRun, StepFailed, Values
from quorate.cli.chaos.checks.observations import Reassignment
from quorate.cli.client.errors import NotReachable, Refused
from quorate.cli.reassign import reassignments

POLL_S = 0.2
ADMIN_S = 10.0
"""The timeout of one request, in s."""


def moved_on(replicas: Sequence[int], brokers: Sequence[int]) -> tuple[int, ...]:
    """Return the replicas after each one has moved to the next broker of a ring.

    `brokers` is the ring. If a broker outside of the replicas exists, at least one replica moves to
    a broker that has none."""
    return tuple(brokers[(brokers.index(each) + 1) % len(brokers)] for each in replicas)


async def reassign(run: ScenarioRun, values: Values) -> None:
    """Move each replica of the topic to the next broker. Do not wait until that has ended.

    Raise StepFailed if the cluster refuses a partition."""
    ring = sorted(run.serving)
    run.reassignment = await asyncio.to_thread(started, run, ring)
    targets = run.reassignment.targets
    run.note(f"replicas of {len(targets):,} partitions move to other brokers", kind="fault")


def started(run: ScenarioRun, ring: Sequence[int]) -> Reassignment:
    """Start the reassignment, and return it. Block."""
    topic, admin = run.brokers.topic, run.cluster.admin(ADMIN_S)
    try:
        current = reassignments.assignment_of(admin, [topic])
        targets = {key: moved_on(replicas, ring) for key, replicas in current.items()}
        refused = reassignments.reassign(admin, dict(targets))
    finally:
        admin.close()
    if refused:
        raise StepFailed(f"reassign: refused: {next(iter(refused.items()))}")
    return Reassignment(
        targets={key[1]: replicas for key, replicas in targets.items()},
        start_ms=run.clock.now_ms(),
    )


async def wait_reassigned(run: ScenarioRun, values: Values) -> None:
    """Wait until every partition has exactly the replicas of `reassign`, and record the time.

    Raise StepFailed if that takes longer than `within_ms`."""
    moving = run.reassignment
    if moving is None:
        raise StepFailed("wait-reassigned: no reassignment runs; use reassign first")
    deadline_s = time.monotonic() + values["within_ms"] / 1000
    while left := await asyncio.to_thread(unfinished, run, moving.targets):
        if time.monotonic() > deadline_s:
            raise StepFailed(f"not within {values['within_ms']:,} ms: {left}")
        await asyncio.sleep(POLL_S)
    moving.end_ms = run.clock.now_ms()
    took_ms = moving.end_ms - moving.start_ms
    run.note(f"the replicas have moved after {took_ms:,} ms")


def unfinished(run: ScenarioRun, targets: Mapping[int, Sequence[int]]) -> str:
    """Return the partitions that still move as text, or "" if all have their target. Block."""
    topic, admin = run.brokers.topic, run.cluster.admin(ADMIN_S)
    try:
        ongoing = [key for key in reassignments.ongoing_reassignments(admin) if key[0] == topic]
        now = reassignments.assignment_of(admin, [topic])
    except (NotReachable, Refused) as error:
        return error.message
    finally:
        admin.close()
    wrong = [each for each, target in targets.items() if now[topic, each] != tuple(target)]
    if not ongoing and not wrong:
        return ""
    return f"{len(ongoing):,} partitions move, {len(wrong):,} do not have their target"
