"""A run that is killed leaves no cluster and no fault, and a signal does not lose its verdict."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from quorate.cli.chaos.control.fault_sockets import FaultSockets
from quorate.cli.chaos.control.pause_guard import process_state
from quorate.cli.nodes.cluster_dir import ClusterDir, alive
from tests.chaos.test_scenario_runs import FAST_SESSIONS
from tests.clients.cluster import quorate, run_quorate

pytestmark = [pytest.mark.clients, pytest.mark.long]

WAIT_S = 120.0
# Each step waits long enough for the test to kill the run meanwhile.
FAULTS = """
title = "Faults that last"
[workload]
partitions = 3
[[variants]]
name = "one"
[[variants.steps]]
do = "pause"
node = "leader"
[[variants.steps]]
do = "cut-controllers"
node = "follower"
[[variants.steps]]
do = "wait"
ms = 300000
"""


def until(condition: Callable[[], Any], what: str) -> None:
    """Wait until the condition is true."""
    deadline_s = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline_s, f"not within {WAIT_S} s: {what}"
        time.sleep(0.1)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ClusterDir]:
    """A running cluster with fault sockets."""
    root = tmp_path / "c"
    up = quorate("up", "--dir", str(root), "--port", "0", "--detach", "--faults", *FAST_SESSIONS)
    subprocess.run(up, check=True, timeout=90, stdout=subprocess.DEVNULL)
    yield ClusterDir(root)
    run_quorate("down", "--dir", str(root), timeout_s=120)


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """A scenario whose faults last until the run ends."""
    file = tmp_path / "faults.toml"
    file.write_text(FAULTS)
    return file


def paused(cluster: ClusterDir) -> list[int]:
    """Return the ids of the brokers whose processes are stopped by a signal."""
    brokers = cluster.read()["brokers"]
    return [each["id"] for each in brokers if each["pid"] and process_state(each["pid"]) == "T"]


def ruled(cluster: ClusterDir) -> list[int]:
    """Return the ids of the nodes that run and have fault rules."""
    stopped, sockets = paused(cluster), FaultSockets(cluster)
    nodes = [each["id"] for each in cluster.read()["brokers"] if each["id"] not in stopped]
    return [node for node in nodes if sockets.in_force(node)]


def started(cluster: ClusterDir, scenario: Path) -> subprocess.Popen[str]:
    """Start a run on the cluster, and return it when both faults are in force."""
    command = quorate("chaos", "run", str(scenario), "--dir", str(cluster.root), "--format", "json")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until(lambda: paused(cluster) and ruled(cluster), "the faults are in force")
    return process


def test_the_faults_of_a_killed_run_end_by_themselves(cluster: ClusterDir, scenario: Path) -> None:
    process = started(cluster, scenario)
    process.kill()
    process.communicate()
    until(lambda: not paused(cluster), "the paused node continues")
    until(lambda: not ruled(cluster), "the lease of the rules expires")


def test_heal_ends_faults_that_another_run_left(cluster: ClusterDir, scenario: Path) -> None:
    process = started(cluster, scenario)
    controller = cluster.read()["controllers"][0]
    assert controller["pid"] is not None
    os.kill(controller["pid"], signal.SIGKILL)
    until(lambda: not alive(controller["pid"]), "the controller is down")
    process.kill()
    process.communicate()
    healed = run_quorate("chaos", "heal", "--dir", str(cluster.root), timeout_s=60)
    assert healed.returncode == 0, healed.stderr
    assert f"node {controller['id']}: it was down and is started" in healed.stdout
    assert not paused(cluster)
    assert not ruled(cluster)
    until(lambda: alive(cluster.read()["controllers"][0]["pid"]), "the controller runs")


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_run_with_a_verdict(
    number: signal.Signals, cluster: ClusterDir, scenario: Path
) -> None:
    process = started(cluster, scenario)
    process.send_signal(number)
    output, errors = process.communicate(timeout=WAIT_S)
    result = json.loads(output)
    assert process.returncode == 1, errors
    assert result["verdict"] == "bad"
    said = {check["name"]: check["text"] for check in result["checks"] if not check["good"]}
    assert said["steps"] == f"interrupted by {number.name}"
    assert (result["lost"], result["unverified"], result["left_behind"]) == (0, 0, [])
    assert not paused(cluster)
    assert not ruled(cluster)


def test_a_cluster_that_the_run_started_dies_with_it(scenario: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    process = subprocess.Popen(
        quorate("chaos", "run", str(scenario), "--format", "json"),
        stdout=subprocess.DEVNULL,
        env=environment,
    )
    until(lambda: list(tmp_path.glob("quorate-chaos-*/cluster/cluster.json")), "it starts")
    (file,) = tmp_path.glob("quorate-chaos-*/cluster/cluster.json")
    cluster = ClusterDir(file.parent)
    until(lambda: paused(cluster) and ruled(cluster), "the faults are in force")
    entry = cluster.read()
    pids = [node["pid"] for node in (*entry["controllers"], *entry["brokers"])]
    process.kill()
    process.wait()
    until(lambda: not any(map(alive, pids)), "all nodes have ended")


def test_a_cluster_that_stays_broken_has_a_verdict(cluster: ClusterDir, tmp_path: Path) -> None:
    """All nodes die during the run, and the run can only start those that it has killed."""
    file = tmp_path / "broken.toml"
    file.write_text(
        'title = "x"\n[workload]\npartitions = 3\n[[variants]]\nname = "one"\n'
        '[[variants.steps]]\ndo = "pause"\nnode = "leader"\n'
        '[[variants.steps]]\ndo = "wait"\nms = 300000\n'
    )
    command = quorate("chaos", "run", str(file), "--dir", str(cluster.root), "--format", "json")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until(lambda: paused(cluster), "the fault is in force")
    entry = cluster.read()
    for node in (*entry["controllers"], *entry["brokers"]):
        assert node["pid"] is not None
        os.kill(node["pid"], signal.SIGKILL)
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=500)
    result = json.loads(output)
    assert process.returncode == 1, errors
    bad = {check["name"] for check in result["checks"] if not check["good"]}
    assert {"steps", "end", "read back", "lost"} <= bad
    assert result["unverified"] == result["acknowledged"] > 0
    assert result["left_behind"] != []
