"""The simulation has teeth: without one named safeguard of production, a scenario must fail.

Each scenario also runs with the safeguard in place, and then it must pass. There is no switch for
any of this in production code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from quorate.broker.partition import isr, leadership, partition, producer_state
from quorate.broker.replication import fetches, reading
from quorate.quorum import metadata_replica
from quorate.quorum.controller import alter_partition, registration
from quorate.quorum.raft import follower, serving
from tests.sim import scenarios
from tests.sim.cluster import NodeStopped
from tests.sim.invariants import Violation
from tests.sim.run import play, simulation


class Ablation(NamedTuple):
    without: str
    scenario: scenarios.Scenario
    owner: Any
    name: str
    instead: Any


def fetch_before_flush(fetch: Callable[..., None]) -> Callable[..., None]:
    def ablated(core: Any, *arguments: Any) -> None:
        core.durable_offset = core.log.end_offset
        fetch(core, *arguments)

    return ablated


def count_unflushed(advance: Callable[..., None]) -> Callable[..., None]:
    def ablated(core: Any, state: Any) -> None:
        core.durable_offset = core.log.end_offset
        advance(core, state)

    return ablated


def persist_later(self: metadata_replica.MetadataReplica, effect: Any) -> None:
    self._disk.submit(lambda: self._election_file.save(effect.election), lambda _, error: None)
    self.raft.election_saved(effect.election)


def any_epoch(partition: partition.Partition, offset: int, last_fetched_epoch: int) -> None:
    """A fetch from inside of the log is served, whatever the follower's log holds before it."""


def read_to_log_end(*arguments: Any, to_log_end: bool) -> Any:
    return reading.read(*arguments, to_log_end=True)


ABLATIONS = [
    Ablation(
        "a voter flushes before it fetches again",
        scenarios.follower_disk_slow,
        follower,
        "_fetch",
        fetch_before_flush(follower._fetch),
    ),
    Ablation(
        "a Raft leader counts only what it has flushed",
        scenarios.leader_disk_slow,
        serving,
        "advance",
        count_unflushed(serving.advance),
    ),
    Ablation(
        "a vote is durable before the reply",
        scenarios.vote_forgotten,
        metadata_replica.MetadataReplica,
        "_persist",
        persist_later,
    ),
    Ablation(
        "truncation by epoch",
        scenarios.divergent_tail,
        partition.Partition,
        "diverging",
        any_epoch,
    ),
    Ablation(
        "a replica that leaves the ISR counts until the controller agrees",
        scenarios.shrink_unanswered,
        isr.PendingShrink,
        "maximal",
        isr.PendingShrink.proposed,
    ),
    Ablation(
        "a replica joins the ISR only as the incarnation that caught up (KIP-903)",
        scenarios.joined_as_another,
        alter_partition,
        "is_ineligible",
        lambda context, broker_id, broker_epoch: False,
    ),
    Ablation(
        "no batch of a producer twice",
        scenarios.answers_lost,
        producer_state.ProducerStates,
        "check",
        lambda self, header: None,
    ),
    Ablation(
        "consumers read only what is committed",
        scenarios.read_before_committed,
        fetches,
        "read",
        read_to_log_end,
    ),
    Ablation(
        "min.insync.replicas",
        scenarios.alone_in_the_isr,
        leadership.Leadership,
        "effective_min_isr",
        1,
    ),
    Ablation(
        "after an unclean restart a broker leaves every ISR",
        scenarios.power_lost_in_the_isr,
        registration,
        "replace_incarnation",
        lambda *arguments: [],
    ),
]


@pytest.mark.parametrize("ablation", ABLATIONS, ids=[each.without for each in ABLATIONS])
def test_without_it_the_scenario_fails(ablation: Ablation, monkeypatch: pytest.MonkeyPatch) -> None:
    shape = scenarios.SHAPES.get(ablation.scenario)
    with simulation(ablation.without, shape) as stage:
        play(stage, ablation.scenario(stage))
    monkeypatch.setattr(ablation.owner, ablation.name, ablation.instead)
    with (
        simulation(ablation.without, shape) as stage,
        pytest.raises((Violation, NodeStopped)),
    ):
        play(stage, ablation.scenario(stage))
