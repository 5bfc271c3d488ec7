"""Scenario runs on a cluster of `quorate up --secure --faults`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from quorate.cli.nodes.cluster_dir import ClusterDir
from tests.chaos.test_scenario_runs import bad, run_scenario, what
from tests.clients.cluster import run_quorate

pytestmark = [pytest.mark.clients, pytest.mark.long, pytest.mark.timeout(200)]
SESSIONS = (
    "--override=connections.max.reauth.ms=1500",
    "--override=broker.session.timeout.ms=3000",
)
"""Sessions end often, so the clients of a run log in again many times."""


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


@pytest.mark.parametrize("scenario", ["leader-kill", "client-links", "group-restart"])
def test_a_scenario_is_good(secure: ClusterDir, scenario: str) -> None:
    """The file in the directory is the default."""
    found = run_scenario(scenario, "--keep-config", "--dir", str(secure.root))
    assert bad(found) == set(), what(found)
    assert found["acknowledged"] > 1000
    assert found["left_behind"] == []


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
