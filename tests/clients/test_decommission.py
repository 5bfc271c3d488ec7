"""`quorate cluster decommission` is killed half-way, and runs again on the same cluster."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorate.cli.nodes.cluster_dir import alive
from tests.clients.cluster import ProcessCluster, quorate, run_quorate, running, wait_for

pytestmark = [pytest.mark.clients, pytest.mark.long, pytest.mark.timeout(180)]
TOPIC, PARTITIONS, LEAVING = "orders", 6, 5
LINES = 2_000
SLOW, FAST = "40000", "100000000"
"""Throttles in bytes per second: the first run would take a minute, the second one is not slowed
down."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ProcessCluster]:
    """A controller 1, and brokers 2 to 5."""
    size = ("--controllers", "1", "--brokers", "4")
    with running(tmp_path / "cluster", *size) as cluster:
        yield cluster


def said(cluster: ProcessCluster, *command: str, stdin: str | None = None) -> str:
    done = subprocess.run(
        quorate(*command, "--bootstrap-server", cluster.bootstrap),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def moves(cluster: ProcessCluster) -> int:
    """Return the number of partitions that move."""
    return said(cluster, "reassign-partitions", "--list").count(f"{TOPIC}-")


def replicas_of(cluster: ProcessCluster) -> str:
    return said(cluster, "topics", "--describe", "--topic", TOPIC)


@pytest.mark.parametrize("again", [("--throttle", FAST), ()])
def test_a_decommission_that_was_killed_ends_when_it_runs_again(
    cluster: ProcessCluster, again: tuple[str, ...]
) -> None:
    assert [each["id"] for each in cluster.entry()["brokers"]][-1] == LEAVING
    placed = ",".join([f"{LEAVING}:2"] * PARTITIONS)
    said(cluster, "topics", "--create", "--topic", TOPIC, "--replica-assignment", placed)
    lines = "".join(f"{number:01000d}\n" for number in range(LINES))
    said(cluster, "console-producer", "--topic", TOPIC, stdin=lines)
    command = ("cluster", "decommission", str(LEAVING), "--yes")
    first = subprocess.Popen(
        quorate(*command, "--throttle", SLOW, "--bootstrap-server", cluster.bootstrap),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(lambda: moves(cluster), "the first run moves partitions")
        assert "throttled.replicas" in replicas_of(cluster)
    finally:
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
    assert moves(cluster), "it was killed half-way"
    pid = cluster.node(LEAVING)["pid"]
    assert pid is not None
    done = said(cluster, *command, *again)
    assert f"Broker {LEAVING} has no replicas and is no longer registered. It stops." in done
    assert ("removed the throttles that an interrupted run left on 1 topics" in done) != bool(again)
    assert not moves(cluster)
    shown = replicas_of(cluster)
    assert "throttled.replicas" not in shown
    assert f"{LEAVING}" not in "".join(
        part.split("\t")[0] for part in shown.split("Replicas: ")[1:]
    )
    for broker in (2, 3, 4):
        rates = said(cluster, "configs", "--describe", "--broker", str(broker))
        assert "throttled.rate" not in rates
    wait_for(lambda: not alive(pid), "the broker stops")
    log = cluster.directory.node_log(LEAVING).read_text()
    assert "unregister" in log.splitlines()[-1]
    read = run_quorate(
        "console-consumer", "--bootstrap-server", cluster.bootstrap, "--topic", TOPIC,
        *("--from-beginning", "--max-messages", str(LINES), "--timeout-ms", "30000"),
        timeout_s=60,
    )  # fmt: skip
    assert sorted(read.stdout.splitlines(True)) == sorted(lines.splitlines(True))
