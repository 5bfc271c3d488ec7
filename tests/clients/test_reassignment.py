"""A partition moves to other brokers while a client writes, and nodes die on the way."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.cluster import ProcessCluster, run_quorate, running, wait_for
from tests.clients.test_failover import PARTITIONS, Load, assert_exactly_once

pytestmark = [pytest.mark.clients, pytest.mark.timeout(120)]


@pytest.fixture
def six_brokers(tmp_path: Path) -> Iterator[ProcessCluster]:
    """Brokers 4 to 9."""
    with running(tmp_path / "cluster", "--brokers", "6") as cluster:
        yield cluster


def told(cluster: ProcessCluster, *arguments: str) -> list[str]:
    at = ("reassign-partitions", "--bootstrap-server", cluster.bootstrap)
    done = run_quorate(*at, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def holders(cluster: ProcessCluster, topic: str) -> list[int]:
    """Brokers that have a directory of a partition of the topic."""
    found = cluster.directory.root.glob(f"nodes/*/data/{topic}-?")
    return sorted({int(each.parts[-3]) for each in found})


def test_all_replicas_move_while_nodes_die(six_brokers: ProcessCluster, tmp_path: Path) -> None:
    """From {4, 5, 6} to {7, 8, 9}; an old leader, a new replica and a controller die meanwhile."""
    cluster = six_brokers
    placed = ",".join(["4:5:6"] * PARTITIONS)
    made = run_quorate(
        "topics", "--bootstrap-server", cluster.bootstrap, "--create", "--topic", "orders",
        *("--replica-assignment", placed),
    )  # fmt: skip
    assert made.returncode == 0, made.stdout
    plan = tmp_path / "plan.json"
    partitions = [
        {"topic": "orders", "partition": number, "replicas": [7, 8, 9]}
        for number in range(PARTITIONS)
    ]
    plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
    load = Load(cluster.bootstrap, "orders")
    with load.running():
        load.more("before")
        target = cluster.node(9)["pid"]
        assert target is not None
        os.kill(target, signal.SIGSTOP)  # The command refuses a broker that is fenced already.
        told(cluster, "--execute", "--reassignment-json-file", str(plan))
        cluster.kill(9)
        load.more("while a target is dead")
        assert len(told(cluster, "--list")) == PARTITIONS + 1, "it cannot be complete"
        cluster.kill(4)
        load.more("while the old leader is dead")
        cluster.kill(cluster.entry()["controllers"][0]["id"])
        load.more("after a controller died")
        cluster.restart(9)
        wait_for(
            lambda: told(cluster, "--list") == ["No partition reassignments found."],
            "all targets are in sync",
        )
        load.more("after")
        cluster.restart(4)
    wait_for(lambda: holders(cluster, "orders") == [7, 8, 9], "what left has no directory")
    assert_exactly_once(cluster, load)
