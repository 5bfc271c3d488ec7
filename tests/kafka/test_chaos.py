"""`quorate chaos run` on three combined nodes of Apache Kafka, which commands control."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.listed import BOUNDS, CONFIG, assert_good, run_on
from tests.chaos.test_scenario_runs import bad
from tests.clients.cluster import quorate, run_quorate, wait_for
from tests.golden.nodes import KAFKA
from tests.kafka.three_nodes import NODES, ThreeNodes, three_nodes
from tests.kafka.tools import missing

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreeNodes]:
    """Yield three running nodes."""
    if reason := missing():
        pytest.skip(reason)
    with three_nodes(tmp_path_factory.mktemp("kafka"), KAFKA, CONFIG) as found:
        yield found


@pytest.fixture
def healthy(nodes: ThreeNodes) -> Iterator[ThreeNodes]:
    """Yield the nodes, all of which serve before and after the test."""
    wait_for(nodes.ready, "all nodes serve", 60)
    yield nodes
    wait_for(nodes.ready, "all nodes serve again", 60)


@pytest.mark.parametrize(
    "scenario",
    ["leader-kill", "controller-kill", "paused-broker", "rolling-restart", "group-restart"],
)
def test_a_scenario_is_good(healthy: ThreeNodes, scenario: str) -> None:
    assert_good(run_on(healthy, scenario, healthy.node_file(head=BOUNDS)))


def test_a_start_command_that_does_nothing_is_found(healthy: ThreeNodes) -> None:
    idle = healthy.node_file("idle.toml", BOUNDS, start=["true"])
    found = run_on(healthy, "leader-kill", idle)
    healed = run_quorate("chaos", "heal", "--nodes", str(healthy.node_file()), timeout_s=120)
    assert {"steps", "end"} <= bad(found)
    steps = next(each["text"] for each in found["checks"] if each["name"] == "steps")
    assert "not within 60,000 ms: every ISR is full" in steps
    assert "lost" not in bad(found)
    assert healed.returncode == 0, healed.stderr
    assert "does not answer, and is started" in healed.stdout


def test_a_kill_command_that_does_nothing_is_found(healthy: ThreeNodes) -> None:
    found = run_on(healthy, "leader-kill", healthy.node_file("idle.toml", BOUNDS, kill=["true"]))
    assert {"effect", "steps"} <= bad(found)
    effect = next(each["text"] for each in found["checks"] if each["name"] == "effect")
    assert "still answers after `kill`" in effect


def test_a_bound_that_this_cluster_cannot_keep_is_named(healthy: ThreeNodes) -> None:
    tight = healthy.node_file("tight.toml", "[expect]\nmax_unavailable_ms = 1\n")
    found = run_on(healthy, "leader-kill", tight)
    assert "availability" in bad(found)


def test_the_faults_of_a_killed_run_end(healthy: ThreeNodes, tmp_path: Path) -> None:
    scenario = tmp_path / "pause.toml"
    scenario.write_text(
        'title = "x"\n[workload]\npartitions = 3\n[[variants]]\nname = "v"\n'
        '[[variants.steps]]\ndo = "pause"\nnode = 2\n'
        '[[variants.steps]]\ndo = "kill"\nnode = 3\n'
        '[[variants.steps]]\ndo = "wait"\nms = 300000\n'
    )
    listed = ("--bootstrap-server", healthy.bootstrap, "--nodes", str(healthy.node_file()))
    process = subprocess.Popen(
        quorate("chaos", "run", str(scenario), *listed), stdout=subprocess.DEVNULL
    )
    try:
        wait_for(lambda: healthy.state(2) == "T", "node 2 is paused", 60)
        wait_for(lambda: healthy.state(3) == "", "node 3 is killed", 60)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    wait_for(lambda: healthy.state(2) not in ("T", ""), "node 2 continues", 60)
    wait_for(lambda: healthy.state(3) != "", "node 3 is started", 60)


def test_other_nodes_are_refused(healthy: ThreeNodes) -> None:
    file = healthy.node_file("other.toml")
    file.write_text(file.read_text().replace(f"id = {NODES[-1]}\n", "id = 9\n"))
    listed = ("--bootstrap-server", healthy.bootstrap, "--nodes", str(file))
    ended = run_quorate("chaos", "run", "leader-kill", *listed)
    assert ended.returncode == 1
    assert "the brokers that run are 1, 2, 3, and the file of nodes lists 1, 2, 9" in ended.stderr


def test_another_session_timeout_is_refused(healthy: ThreeNodes, tmp_path: Path) -> None:
    scenario = tmp_path / "mine.toml"
    scenario.write_text(
        'title = "x"\n[cluster.config]\n"broker.session.timeout.ms" = 4000\n'
        '[[variants]]\nname = "v"\n[[variants.steps]]\ndo = "kill"\nnode = 1\n'
    )
    listed = ("--bootstrap-server", healthy.bootstrap, "--nodes", str(healthy.node_file()))
    ended = run_quorate("chaos", "run", str(scenario), *listed)
    assert ended.returncode == 1
    assert "needs broker.session.timeout.ms=4000, and broker 1 has 2000" in ended.stderr
