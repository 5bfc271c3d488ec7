"""auto.leader.rebalance.enable: leadership goes back to the preferred replica by itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.clients.cluster import ProcessCluster, run_quorate, running, wait_for

pytestmark = [pytest.mark.clients, pytest.mark.timeout(240)]

TOPIC = "balanced"
PATIENCE_S = 60.0


def leader(cluster: ProcessCluster) -> int:
    told = run_quorate(
        "topics", "--bootstrap-server", cluster.bootstrap, "--describe", "--topic", TOPIC,
        *("--format", "json"),
    )  # fmt: skip
    return int(json.loads(told.stdout)[0]["partitions"][0]["leader"]) if told.stdout else -1


def test_the_preferred_leader_comes_back(tmp_path: Path) -> None:
    often = ("--override", "leader.imbalance.check.interval.seconds=1")
    with running(tmp_path / "cluster", *often) as cluster:
        made = run_quorate(
            "topics", "--bootstrap-server", cluster.bootstrap, "--create", "--topic", TOPIC,
            *("--replica-assignment", "4:5:6"),
        )  # fmt: skip
        assert made.returncode == 0, made.stderr
        assert leader(cluster) == 4
        cluster.kill(4)
        wait_for(lambda: leader(cluster) in (5, 6), "another leads", PATIENCE_S)
        cluster.restart(4)
        wait_for(lambda: leader(cluster) == 4, "the preferred one leads again", PATIENCE_S)
