"""The health of the metadata quorum in `quorate status`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorate.cli.client.quorum import Quorum
from quorate.cli.status.quorum_health import SILENT_MS, QuorumHealth, health_of
from quorate.quorum.protocol.schemas import cluster
from tests.unit.cli.test_cluster_commands import replica

NOW_MS = 1_000_000


@pytest.mark.parametrize(
    ("voters", "dead", "text"),
    [
        (3, (), "3 of 3 voters answer"),
        (3, (2,), "2 of 3 voters answer, 2 does not; one more loss ends the quorum"),
        (5, (2,), "4 of 5 voters answer, 2 does not; the quorum survives the loss of 1 more"),
        (5, (2, 3), "3 of 5 voters answer, 2, 3 do not; one more loss ends the quorum"),
        (3, (2, 3), "1 of 3 voters answer, 2, 3 do not; the quorum is lost"),
        (1, (), "1 of 1 voters answer"),
    ],
)
def test_the_sentence_for_the_worst_minute(voters: int, dead: tuple[int, ...], text: str) -> None:
    lags = dict.fromkeys(range(1, voters + 1), 0)
    assert QuorumHealth(lags=lags, silent_ms=dict.fromkeys(dead, 9000)).summary() == text


def test_a_voter_that_does_not_fetch_is_dead() -> None:
    fetched_ms = {1: NOW_MS, 2: NOW_MS - SILENT_MS, 3: NOW_MS - SILENT_MS - 1, 4: -1}
    state = cluster.QuorumPartitionState(
        partition_index=0,
        error_code=0,
        error_message=None,
        leader_id=1,
        leader_epoch=3,
        high_watermark=50,
        current_voters=tuple(
            replace(replica(node_id, 50), last_fetch_timestamp=at_ms)
            for node_id, at_ms in fetched_ms.items()
        ),
        observers=(replica(4, 50), replica(102, 50)),
    )
    health = health_of(Quorum(replace(state, observers=()), ()))
    assert health.silent_ms == {3: SILENT_MS + 1, 4: None}
    assert "3 (DEAD, silent for 2 s)" in health.voters()
    assert "4 (DEAD, no fetch in this epoch)" in health.voters()
    assert "2 (0 behind)" in health.voters()
    replaced = health_of(Quorum(state, ()))
    assert replaced.replaced == {4}
    assert "4 (DOES NOT VOTE, has another disk; remove the old voter, then" in replaced.voters()
