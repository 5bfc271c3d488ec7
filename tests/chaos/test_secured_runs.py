"""Scenario runs on a cluster of `quorate up --secure --faults`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorate.cli.chaos.loading.loader import load
from quorate.cli.nodes.cluster_dir import ClusterDir
from tests.chaos import commanded_node
from tests.chaos.listed import BOUNDS, assert_good
from tests.chaos.test_scenario_runs import ablate_nodes, bad, run_scenario, what
from tests.clients.cluster import run_quorate

pytestmark = [pytest.mark.clients, pytest.mark.long, pytest.mark.timeout(200)]
SESSIONS = (
    "--override=connections.max.reauth.ms=1500",
    "--override=broker.session.timeout.ms=3000",
)
"""Sessions end often, so the clients of a run log in again many times."""
COMMANDS = ("kill", "stop", "pause", "resume", "start")


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterDir]:
    """A running cluster whose brokers demand TLS and SCRAM."""
    directory = ClusterDir(tmp_path_factory.mktemp("secure") / "cluster")
    root = str(directory.root)
    up = ("up", "--dir", root, "--secure", "--faults", "--port", "0", "--detach", *SESSIONS)
    try:
        started = run_quorate(*up, timeout_s=60)
        assert started.returncode == 0, started.stderr
        yield directory
    finally:
        run_quorate("down", "--dir", root, timeout_s=120)


@pytest.mark.parametrize(
    "scenario", ["leader-kill", "controller-partition", "client-links", "group-restart"]
)
def test_a_scenario_is_good(secure: ClusterDir, scenario: str) -> None:
    """The file in the directory is the default."""
    found = run_scenario(scenario, "--keep-config", "--dir", str(secure.root))
    assert bad(found) == set(), what(found)
    assert found["acknowledged"] > 1000
    assert found["left_behind"] == []


def listed(secure: ClusterDir, file: Path) -> None:
    """Write a nodes.toml of the cluster."""
    entry = secure.read()
    lines = []
    for role in ("controller", "broker"):
        for node in entry["controllers"] if role == "controller" else entry["brokers"]:
            lines += ["[[nodes]]", f"id = {node['id']}", f"roles = ['{role}']"]
            lines += [f"address = '{node['host']}:{node['port']}'"]
            of_node = [sys.executable, commanded_node.__file__, str(secure.root), str(node["id"])]
            lines += [f"{each} = {json.dumps([*of_node, each])}" for each in COMMANDS]
    file.write_text("\n".join((BOUNDS, *lines, "")))


@pytest.mark.parametrize("scenario", ["leader-kill", "controller-kill"])
def test_a_scenario_on_listed_nodes_is_good(
    secure: ClusterDir, tmp_path: Path, scenario: str
) -> None:
    """Controllers demand a certificate, and brokers a login. One file has both."""
    nodes, both = tmp_path / "nodes.toml", tmp_path / "both.properties"
    listed(secure, nodes)
    keystore = "".join(
        line
        for line in (secure.root / "controllers.properties").read_text().splitlines(keepends=True)
        if line.startswith("ssl.keystore")
    )
    both.write_text((secure.root / "client.properties").read_text() + keystore)
    where = ("--bootstrap-server", secure.read()["bootstrap"], "--nodes", str(nodes))
    found = run_scenario(scenario, *where, "--command-config", str(both))
    assert_good(found)
    healed = run_quorate("chaos", "heal", "--nodes", str(nodes), "--command-config", str(both))
    assert (healed.returncode, healed.stdout) == (0, "every node answers\n"), healed.stderr


def test_a_temporary_cluster_can_be_secure(monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdict is good with TLS and logins, and bad without the scenario's safeguard."""
    found = run_scenario("leader-kill", "--secure")
    assert bad(found) == set(), what(found)
    assert found["acknowledged"] > 1000
    assert found["left_behind"] == []
    ablation = load("leader-kill").ablation
    assert ablation is not None
    ablate_nodes(monkeypatch, ablation.safeguard)
    assert ablation.check in bad(run_scenario("leader-kill", "--secure"))


def test_a_wrong_password_and_another_protocol_are_refused(
    secure: ClusterDir, tmp_path: Path
) -> None:
    own = (secure.root / "client.properties").read_text()
    reasons = {
        own.replace('password="', 'password="not-'): "refuses user 'admin'",
        own.replace("SASL_SSL", "SSL"): "has the protocol SASL_SSL, and this command connects",
    }
    for text, reason in reasons.items():
        file = tmp_path / "client.properties"
        file.write_text(text)
        where = ("--dir", str(secure.root), "--command-config", str(file))
        ended = run_quorate("chaos", "run", "leader-kill", "--keep-config", *where)
        assert ended.returncode == 1
        assert reason in ended.stderr
        assert "verdict" not in ended.stdout
