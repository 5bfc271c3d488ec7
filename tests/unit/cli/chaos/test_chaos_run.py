"""`chaos_run` returns a good result, and fails a test if the verdict is bad."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from quorate.cli.chaos.control import process_cluster
from quorate.cli.chaos.loading.reading import ScenarioError
from quorate.cli.chaos.run import temporary_runs
from quorate.testing import chaos_run
from tests.unit.cli.chaos.histories import result


def test_a_bad_verdict_fails_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Any, ...]] = []

    def recorded(*arguments: Any) -> object:
        calls.append(arguments)
        return result(taken_back=int(arguments[2] == 9))

    monkeypatch.setattr(temporary_runs, "run_on_temporary_cluster", recorded)
    config = {"broker.session.timeout.ms": 3000}
    assert chaos_run("leader-kill", partitions=5, seed=7, config=config).good
    scenario, (variant,), seed, new, _ = calls[0]
    assert (scenario.workload.partitions, variant.name, seed) == (5, "kill", 7)
    assert new == (("broker.session.timeout.ms=3000",), False, False)
    with pytest.raises(AssertionError, match="leader-kill: the verdict is bad: taken back: 3 rec"):
        chaos_run("leader-kill", seed=9)
    assert not chaos_run("leader-kill", seed=9, require_good=False).good
    with pytest.raises(ScenarioError):
        chaos_run("leader-kil")


def test_the_fixture_is_this_function(request: pytest.FixtureRequest) -> None:
    assert request.getfixturevalue("chaos_run") is chaos_run


def test_the_end_of_the_cluster_prints_nothing_before_the_json(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(process_cluster, "QUORATE", ("echo",))
    process_cluster.ProcessCluster(tmp_path).stop()
    assert capfd.readouterr().out == ""
