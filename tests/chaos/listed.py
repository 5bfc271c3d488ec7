"""Runs of scenarios on the nodes of a nodes.toml."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.chaos.test_scenario_runs import bad, what
from tests.clients.cluster import run_quorate
from tests.kafka.three_nodes import ThreeNodes

CONFIG = {
    "broker.session.timeout.ms": 2000,
    "broker.heartbeat.interval.ms": 400,
    "offsets.topic.replication.factor": 3,
    "offsets.topic.num.partitions": 3,
    "group.initial.rebalance.delay.ms": 0,
}
BOUNDED = ("unavailable", "unread", "metadata_wait", "admin_wait")
BOUNDS = "\n".join(("[expect]", *(f"max_{each}_ms = 15000" for each in BOUNDED)))
"""Kafka fences a killed broker at the end of its session. The scenarios expect it earlier."""


def run_on(nodes: ThreeNodes, scenario: str, file: Path) -> dict[str, Any]:
    """Return the JSON result of a run. Its verdict must match the exit status."""
    listed = ("--bootstrap-server", nodes.bootstrap, "--nodes", str(file), "--format", "json")
    ended = run_quorate("chaos", "run", scenario, *listed, timeout_s=300)
    assert ended.stdout, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    assert ended.returncode == {"good": 0, "bad": 1}[found["verdict"]], ended.stderr
    return found


def assert_good(found: dict[str, Any]) -> None:
    """Check that the verdict is good, and that only the replicas' files were not compared."""
    texts = [each["text"] for each in found["checks"] if not each["good"]]
    assert bad(found) == set(), f"{texts}\n{what(found)}"
    names = {each["name"] for each in found["checks"]}
    assert {"effect", "lost", "writes", "consumer", "metadata"} <= names
    assert [each["name"] for each in found["not_judged"]] == ["replicas"]
    assert found["acknowledged"] > 1000
    assert found["left_behind"] == []
