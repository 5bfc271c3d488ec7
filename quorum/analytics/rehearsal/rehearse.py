"""Plays a scenario with many seeds. The same seed, moment and assumptions give the same outcome."""

from __future__ import annotations

import random
from collections.abc import Sequence

from quorate.quorum.analytics.log.errors import BadOption
from quorate.quorum.analytics.rehearsal.assumptions import Assumptions, drawn
from quorate.quorum.analytics.rehearsal.outcome import (
    MEASURES,
    Outcome,
    Rehearsal,
    badness,
    spread,
)
from quorate.quorum.analytics.rehearsal.scenarios import SCENARIOS, Scenario
from quorate.quorum.analytics.rehearsal.troubles import Trouble
from quorate.quorum.analytics.rehearsal.virtual_cluster import VirtualCluster
from quorate.quorum.analytics.replay.moment import Moment
from quorate.quorum.analytics.replay.what_if import brokers_in_racks

MAX_RUN_MS = 24 * 3_600_000
"""The virtual time after which a run ends, whatever happens."""
DEFAULT = Assumptions()


def rehearse(
    at: Moment,
    scenario: str,
    seeds: Sequence[int],
    *,
    brokers: Sequence[int] = (),
    racks: Sequence[str] = (),
    assumptions: Assumptions = DEFAULT,
    with_events: bool = False,
) -> Rehearsal:
    """Return the outcomes of a scenario of SCENARIOS at a moment, one for each of the `seeds`.

    The scenario concerns `brokers` and the brokers of `racks`. Without both, each seed chooses one
    active broker or one rack. A scenario of all brokers concerns all active ones then. Raise
    BadOption if the scenario, an active broker or a rack with one does not exist."""
    if scenario not in SCENARIOS:
        raise BadOption(f"there is no scenario {scenario!r}: use one of {', '.join(SCENARIOS)}")
    if not seeds:
        raise BadOption("a rehearsal needs at least one seed")
    chosen = _chosen(at, brokers, racks)
    outcomes = tuple(
        _run(at, SCENARIOS[scenario], seed, chosen, assumptions, with_events) for seed in seeds
    )
    return Rehearsal(
        scenario=scenario,
        offset=at.offset,
        timestamp_ms=at.timestamp_ms,
        partitions=sum(1 for _ in at.image.all_partitions()),
        outcomes=outcomes,
        spreads={name: spread([getattr(each, name) for each in outcomes]) for name in MEASURES},
        not_recovered=sum(each.recovery_ms is None for each in outcomes),
        worst=max(outcomes, key=badness),
    )


def _active(at: Moment) -> list[int]:
    return [each for each in at.image.broker_ids() if at.image.brokers[each].active]


def _chosen(at: Moment, brokers: Sequence[int], racks: Sequence[str]) -> tuple[int, ...]:
    active = _active(at)
    if not active:
        raise BadOption("no broker is active at this point, so that nothing can be rehearsed")
    if absent := sorted(set(brokers) - set(active)):
        known = ", ".join(map(str, active))
        raise BadOption(f"broker {absent[0]} is not active at this point; there are {known}")
    for rack in racks:
        if not set(active).intersection(brokers_in_racks(at.image, (rack,))):
            raise BadOption(f"no active broker is in the rack {rack!r} at this point")
    in_racks = set(active).intersection(brokers_in_racks(at.image, racks))
    return tuple(sorted({*brokers, *in_racks}))


def _by_seed(at: Moment, scenario: Scenario, chance: random.Random) -> tuple[int, ...]:
    """Return the brokers that a scenario concerns if none are named."""
    active = _active(at)
    if scenario.of_all:
        return tuple(active)
    if not scenario.of_rack:
        return (chance.choice(active),)
    racks = sorted({rack for each in active if (rack := at.image.brokers[each].rack) is not None})
    if not racks:
        raise BadOption("no active broker names a rack at this point")
    lost = brokers_in_racks(at.image, (chance.choice(racks),))
    return tuple(each for each in lost if each in active)


def _run(
    at: Moment,
    scenario: Scenario,
    seed: int,
    chosen: tuple[int, ...],
    assumptions: Assumptions,
    with_events: bool,
) -> Outcome:
    chance = random.Random(seed)
    brokers = chosen or _by_seed(at, scenario, chance)
    cluster = VirtualCluster(at, assumptions, chance)
    _play(cluster, scenario, brokers)
    timeline, troubles = cluster.timeline, cluster.replicas.troubles
    durations, ended_ms = troubles.durations(timeline.now_ms), troubles.recovered_ms
    leaderless, below = durations[Trouble.LEADERLESS], durations[Trouble.BELOW_MIN]
    return Outcome(
        seed=seed,
        brokers=brokers,
        leaderless_ms=leaderless.total_ms,
        longest_leaderless_ms=leaderless.longest_ms,
        leaderless_partitions=leaderless.partitions,
        below_min_ms=below.total_ms,
        below_min_partitions=below.partitions,
        waiting_ms=durations[Trouble.WAITING].total_ms,
        unclean_elections=cluster.replicas.unclean_elections,
        leader_moves=cluster.replicas.leader_moves,
        recovery_ms=None if ended_ms is None else max(ended_ms - timeline.fault_ms, 0),
        duration_ms=timeline.now_ms - timeline.fault_ms,
        events=tuple(timeline.told) if with_events else (),
    )


def _play(cluster: VirtualCluster, scenario: Scenario, brokers: tuple[int, ...]) -> None:
    """Let the cluster run for a while, and then the scenario, until nothing will happen any more,
    at most for MAX_RUN_MS."""
    timeline, beat_ms = cluster.timeline, cluster.assumptions.heartbeat_interval_ms
    # The last heartbeat before the fault was up to one interval ago.
    timeline.fault_ms = drawn(cluster.random, (beat_ms, 2 * beat_ms))
    while timeline.now_ms < timeline.fault_ms:
        _step_before(cluster, timeline.fault_ms)
    for wait in scenario.steps(cluster, brokers):
        until_ms = timeline.now_ms + wait if isinstance(wait, int) else MAX_RUN_MS
        while timeline.now_ms < min(until_ms, MAX_RUN_MS):
            if not isinstance(wait, int) and wait():
                break
            _step_before(cluster, until_ms)
    end_ms = min(timeline.now_ms + cluster.assumptions.observed_ms, MAX_RUN_MS)
    while timeline.now_ms < end_ms:
        _step_before(cluster, end_ms)
    while timeline.now_ms < MAX_RUN_MS and not cluster.is_settled():
        _step_before(cluster, MAX_RUN_MS)


def _step_before(cluster: VirtualCluster, until_ms: int) -> None:
    """Let the next event happen, or go on to `until_ms` if that is earlier."""
    if cluster.next_ms() < until_ms:
        cluster.step()
    else:
        cluster.timeline.now_ms = until_ms
