"""Append, fetch, commit (KIP-595)."""

from __future__ import annotations

from quorate.quorum.raft.effects import Role
from tests.unit.raft.harness import Cluster


def test_a_leader_is_elected_and_what_it_appends_is_committed_everywhere() -> None:
    cluster = Cluster(voters=3, observers=2)
    cluster.elect(1)
    assert cluster.append(1, b"a", b"b") == 2
    cluster.run(600)
    assert [cluster.role(i) for i in (1, 2, 3)] == [Role.LEADER, Role.FOLLOWER, Role.FOLLOWER]
    assert [node.high_watermark for node in cluster.nodes.values()] == [3] * 5
    assert all(log[1:] == [(1, b"a"), (1, b"b")] for log in cluster.logs())
