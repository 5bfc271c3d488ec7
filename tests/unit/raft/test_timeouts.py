"""The times of elections and requests that a voter's settings give."""

from __future__ import annotations

import pytest

from quorate.quorum.raft import effects
from quorate.quorum.raft.messages import FetchRequest, VoteRequest
from quorate.quorum.raft.settings import RaftSettings
from tests.unit.raft.harness import RaftCluster


@pytest.mark.parametrize("timeout_ms", [500, 4000])
def test_a_candidate_waits_its_election_timeout(timeout_ms: int) -> None:
    """The wait for votes is random, from one to two election timeouts."""
    settings = RaftSettings(election_timeout_ms=timeout_ms, hints=False)
    waits = []
    for seed in range(20):
        cluster = RaftCluster(seed=seed, settings=settings)
        waits.append((cluster.core(1).deadline_ms() or 0) - cluster.now_ms)
    assert timeout_ms <= min(waits) < max(waits) < 2 * timeout_ms


def test_a_request_without_an_answer_is_repeated_after_its_timeout() -> None:
    settings = RaftSettings(request_timeout_ms=777, fetch_max_wait_ms=500)
    cluster = RaftCluster(settings=settings)
    cluster.elect(1)
    sent = [
        each
        for node in cluster.nodes.values()
        for each in node.seen
        if isinstance(each, effects.Send)
    ]
    votes = {each.timeout_ms for each in sent if isinstance(each.request, VoteRequest)}
    fetches = {each.timeout_ms for each in sent if isinstance(each.request, FetchRequest)}
    assert votes == {777}
    assert fetches == {777 + 500}, "a fetch may wait at the leader"
