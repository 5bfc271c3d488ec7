"""The attacks in full, with the bound on the honest clients' latency, and some minutes of soak."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attacks.registry import attacks
from tests.attacks.run import run_fresh
from tests.attacks.soak import Soak, report, say
from tests.attacks.soak_nodes import SoakCluster

pytestmark = pytest.mark.long

SOAK_S = 300.0
SEED = 1


@pytest.mark.timeout(3600)
def test_every_attack_in_full(tmp_path: Path) -> None:
    verdicts = run_fresh(tmp_path, list(attacks()), say, quick=False)
    assert not [each.line() for each in verdicts if each.wrong]


@pytest.mark.timeout(3600)
def test_every_attack_on_a_cluster_with_tls_and_logins(tmp_path: Path) -> None:
    """The attacker has the login of a client, and uses none before the attacks on logins. It has no
    certificate of a node."""
    verdicts = run_fresh(tmp_path, list(attacks()), say, "--secure", quick=True)
    assert not [each.line() for each in verdicts if each.wrong]
    assert len(verdicts) == len(attacks())


@pytest.mark.timeout(1200)
def test_five_minutes_of_attacks_load_and_kills(tmp_path: Path) -> None:
    cluster = SoakCluster(tmp_path / "cluster")
    try:
        result = Soak(cluster, SOAK_S, SEED, say).run()
    finally:
        cluster.stop()
    report(result)
    assert not result.wrong
