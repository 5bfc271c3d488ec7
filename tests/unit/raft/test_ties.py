"""Elections after the leader died: with refused connections, the others elect one of them well
before any timeout."""

from __future__ import annotations

import pytest

from quorate.quorum.raft.effects import Role
from tests.unit.raft.harness import RaftCluster


@pytest.mark.parametrize("voters", [3, 5])
def test_hinted_elections_do_not_tie(voters: int) -> None:
    for seed in range(30):
        cluster = RaftCluster(voters, seed=seed)
        cluster.run(5000)
        (dead,) = (i for i in cluster.up() if cluster.role(i) is Role.LEADER)
        epoch = cluster.core(dead).epoch
        cluster.kill(dead)
        cluster.run(60)
        leaders = [i for i in cluster.up() if cluster.role(i) is Role.LEADER]
        assert len(leaders) == 1, f"seed {seed}: {[cluster.role(i) for i in cluster.up()]}"
        assert cluster.core(leaders[0]).epoch == epoch + 1, f"seed {seed}: more than one election"
