"""Rehearsals of one or two partitions, whose outcome can be computed by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quorate.quorum.analytics.log.errors import BadOption
from quorate.quorum.analytics.rehearsal.assumptions import Assumptions
from quorate.quorum.analytics.rehearsal.outcome import Outcome, badness, spread
from quorate.quorum.analytics.rehearsal.rehearse import rehearse
from quorate.quorum.analytics.rehearsal.scenarios import SCENARIOS
from quorate.quorum.analytics.replay.moment import Moment, moment
from quorate.quorum.metadata.records import FeatureLevelRecord, MetadataRecord
from tests.unit.analytics.test_what_if import config, partition, state
from tests.unit.metadata.kafka_dump import C1

LEVEL = FeatureLevelRecord(name="metadata.version", feature_level=20)
RESTART_MS, CATCH_UP_MS, SESSION_MS, BEAT_MS = 20_000, 5_000, 9_000, 2_000
FIXED = Assumptions(
    session_timeout_ms=SESSION_MS,
    heartbeat_interval_ms=BEAT_MS,
    restart_ms=(RESTART_MS, RESTART_MS),
    catch_up_ms=(CATCH_UP_MS, CATCH_UP_MS),
    failover_ms=(1_000, 1_000),
)
NOTICED_MS = range(SESSION_MS - BEAT_MS, SESSION_MS + 1)
"""The times after a death at which the session may expire."""


def cluster(directory: Path, *records: MetadataRecord, voters: tuple[int, ...] = ()) -> Moment:
    """Return a cluster with the brokers 1 and 2 in the rack r1, and 3 in r2."""
    return replace(
        state(directory, LEVEL, *records), voters=voters, leader=voters[0] if voters else 9
    )


def outcome(at: Moment, scenario: str, *brokers: int, seed: int = 1, **changes: Any) -> Outcome:
    assumed = replace(FIXED, **changes)
    return rehearse(at, scenario, [seed], brokers=brokers, assumptions=assumed).worst


def test_the_only_replica_is_away_for_its_restart(tmp_path: Path) -> None:
    at = cluster(tmp_path, partition(0, (1,), (1,)))
    found = outcome(at, "kill-and-return", 1)
    assert (found.leaderless_ms, found.longest_leaderless_ms) == (RESTART_MS, RESTART_MS)
    assert (found.leaderless_partitions, found.recovery_ms) == (1, RESTART_MS)
    assert (found.leader_moves, found.below_min_ms, found.waiting_ms) == (0, 0, 0)
    gone = outcome(at, "kill", 1, observed_ms=50_000)
    assert gone.recovery_ms is None
    assert gone.duration_ms in range(50_000, 50_201) and gone.leaderless_ms == gone.duration_ms


@pytest.mark.parametrize("seed", range(1, 6))
def test_another_leader_follows_when_the_session_expires(tmp_path: Path, seed: int) -> None:
    at = cluster(tmp_path, config("min.insync.replicas", "2"), partition(0, (1, 2), (1, 2)))
    found = outcome(at, "kill-and-return", 1, seed=seed)
    assert found.leaderless_ms in NOTICED_MS
    assert found.leaderless_ms + found.below_min_ms == RESTART_MS + CATCH_UP_MS == found.recovery_ms
    assert (found.leader_moves, found.unclean_elections) == (1, 0)


@pytest.mark.parametrize("seed", range(1, 6))
def test_acks_all_waits_for_a_dead_follower(tmp_path: Path, seed: int) -> None:
    at = cluster(tmp_path, config("min.insync.replicas", "2"), partition(0, (2, 1), (2, 1)))
    found = outcome(at, "kill-and-return", 1, seed=seed)
    assert found.waiting_ms in NOTICED_MS and found.leaderless_ms == 0
    assert found.waiting_ms + found.below_min_ms == RESTART_MS + CATCH_UP_MS
    known = outcome(cluster(tmp_path / "x", partition(0, (2, 1), (2, 1))), "kill-and-return", 1)
    assert known.below_min_ms == 0 and known.recovery_ms == known.waiting_ms, "min ISR is 1"
    assumed = outcome(
        cluster(tmp_path / "y", partition(0, (2, 1), (2, 1))), "kill-and-return", 1, min_isr=2
    )
    assert assumed.below_min_ms > 0


def test_the_leader_removes_a_follower_that_lags(tmp_path: Path) -> None:
    """The session lasts longer than the lag that a leader accepts."""
    at = cluster(tmp_path, partition(0, (2, 1), (2, 1)))
    found = outcome(at, "kill", 1, session_timeout_ms=60_000, replica_lag_ms=10_000)
    assert found.waiting_ms in range(10_000, 15_001)


def test_a_broker_registers_only_when_its_old_session_has_expired(tmp_path: Path) -> None:
    """The rule of registration, which the controller has, decides."""
    at = cluster(tmp_path, partition(0, (1,), (1,)))
    found = outcome(at, "kill-and-return", 1, session_timeout_ms=60_000)
    assert found.recovery_ms in range(60_000 - BEAT_MS, 60_000 + 500 + 1)


def test_an_unclean_election_is_counted_if_it_is_enabled(tmp_path: Path) -> None:
    unclean = config("unclean.leader.election.enable", "true")
    alone = partition(0, (1, 2), (1,))
    # Broker 2 is out of the ISR and cannot catch up before broker 1 dies.
    slow: dict[str, Any] = {"catch_up_ms": (600_000, 600_000)}
    found = outcome(cluster(tmp_path, unclean, alone), "kill", 1, **slow)
    assert (found.unclean_elections, found.leader_moves) == (1, 1)
    assert found.leaderless_ms in range(min(NOTICED_MS), max(NOTICED_MS) + 1_000)
    kept = outcome(cluster(tmp_path / "x", alone), "kill", 1, **slow)
    assert (kept.unclean_elections, kept.recovery_ms) == (0, None)


def test_a_rolling_restart_waits_for_the_isrs_and_a_hasty_one_does_not(tmp_path: Path) -> None:
    both = (partition(0, (1, 2), (1, 2)), partition(1, (2, 1), (2, 1)))
    at = cluster(tmp_path, *both)
    patient = outcome(at, "rolling-restart", 1, 2)
    assert (patient.leaderless_ms, patient.leader_moves) == (0, 3)
    hasty = outcome(at, "hasty-restart", 1, 2)
    # Both partitions lose their leader when the second broker asks to stop, and the next heartbeat
    # answers that it may.
    assert hasty.leaderless_partitions == 2
    assert hasty.leaderless_ms == 2 * (BEAT_MS + RESTART_MS)


def test_a_failover_gives_fresh_sessions(tmp_path: Path) -> None:
    at = cluster(tmp_path, partition(0, (1, 2), (1, 2)))
    found = outcome(at, "controller-failover", 1, failover_ms=(3_000, 3_000))
    assert found.leaderless_ms == 3_000 + SESSION_MS


def test_without_a_majority_no_leader_is_elected(tmp_path: Path) -> None:
    combined = cluster(tmp_path, partition(0, (1, 3), (1, 3)), voters=(1, 2, 3))
    minority = outcome(combined, "kill-and-return", 1)
    assert minority.leaderless_ms == 1_000 + SESSION_MS, "the active controller was lost with it"
    majority = outcome(combined, "kill-and-return", 1, 2)
    assert majority.leaderless_ms > RESTART_MS
    others = cluster(tmp_path / "x", partition(0, (3, 1), (3, 1)), voters=(1, 2, 3))
    assert outcome(others, "kill-and-return", 2, 3).leaderless_ms > RESTART_MS
    alone = replace(combined, voters=(9,), leader=9)
    assert outcome(alone, "kill-and-return", 1, 2).leaderless_ms in NOTICED_MS


def test_a_run_ends_if_no_controller_will_be_active_again(tmp_path: Path) -> None:
    """The replica on broker 2 is caught up, but no controller lets it join the ISR."""
    at = cluster(tmp_path, partition(0, (3, 2), (3,)), voters=(1,))
    assert outcome(at, "kill", 1).duration_ms < 2 * FIXED.observed_ms


def test_a_reassignment_completes_and_elects_cleanly(tmp_path: Path) -> None:
    """The replica on broker 1 completes it, so that the one on broker 3 need not catch up."""
    moving = replace(partition(0, (1, 2, 3), (2,)), adding_replicas=(1,), removing_replicas=(2, 3))
    at = cluster(tmp_path, moving)
    found = outcome(at, "kill-and-return", 1, catch_up_ms=(1_000, 1_000))
    assert (found.leader_moves, found.unclean_elections) == (1, 0)
    assert found.duration_ms < 2 * FIXED.observed_ms


def test_old_troubles_do_not_count(tmp_path: Path) -> None:
    """The broker 4 is fenced, so the partition 0 has a dead leader from the beginning."""
    at = cluster(tmp_path, partition(0, (4, 1), (4,)), partition(1, (1,), (1,)))
    found = outcome(at, "kill-and-return", 1)
    assert (found.leaderless_partitions, found.recovery_ms) == (1, RESTART_MS)


def test_the_seed_alone_decides() -> None:
    at = moment(C1, offset=300)
    first = rehearse(at, "kill-and-return", range(1, 9))
    assert first == rehearse(at, "kill-and-return", range(1, 9))
    assert len({each.recovery_ms for each in first.outcomes}) > 4
    (again,) = rehearse(at, "kill-and-return", [first.worst.seed]).outcomes
    assert again == first.worst == max(first.outcomes, key=badness)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_scenario_on_a_real_kafka(scenario: str) -> None:
    at = moment(C1, offset=300)
    if SCENARIOS[scenario].of_rack:
        with pytest.raises(BadOption, match="no active broker names a rack"):
            rehearse(at, scenario, [1])
        return
    found = rehearse(at, scenario, range(1, 4), with_events=True)
    assert found.partitions == sum(1 for _ in at.image.all_partitions())
    assert found.not_recovered == (3 if scenario == "kill" else 0)
    assert all(each.leaderless_ms > 0 for each in found.outcomes), "some topics have one replica"
    assert found.worst.events[0][0] == 0
    with pytest.raises(BadOption, match="broker 9 is not active"):
        rehearse(at, scenario, [1], brokers=(9,))


def test_a_rack_is_lost_as_a_whole(tmp_path: Path) -> None:
    at = cluster(tmp_path, partition(0, (1, 2, 3), (1, 2, 3)), partition(1, (1, 2), (1, 2)))
    assert {each.brokers for each in rehearse(at, "rack-loss", range(9)).outcomes} == {(1, 2), (3,)}
    (found,) = rehearse(at, "rack-loss", [1], racks=("r1",), assumptions=FIXED).outcomes
    assert (found.brokers, found.leaderless_partitions) == ((1, 2), 2)
    assert found.leader_moves in (1, 3), "broker 2 leads until its session expires, or never"
    with pytest.raises(BadOption, match="no active broker is in the rack 'r9'"):
        rehearse(at, "rack-loss", [1], racks=("r9",))


def test_ranks_of_a_spread() -> None:
    found = spread([*range(1, 20), None])
    assert (found.smallest, found.median, found.p95, found.largest) == (1, 10, 19, None)
    assert spread([7]) == spread([7, 7])


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(BadOption, match="there is no scenario 'flood': use one of kill, "):
        rehearse(moment(C1, offset=300), "flood", [1])
    with pytest.raises(BadOption, match="at least one seed"):
        rehearse(moment(C1, offset=300), "kill", [])
