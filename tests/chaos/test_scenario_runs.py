"""Scenario runs on real processes: the verdict is good, and bad if one rule is removed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from quorate.cli.chaos.loading.loader import bundled_scenarios, load
from quorate.cli.chaos.results.progress import progress_of
from quorate.cli.chaos.scenario.scenario import Ablation
from quorate.cli.nodes.cluster_dir import ClusterDir
from tests.chaos.ablated import ABLATIONS
from tests.chaos.expected_events import EVENTS, FALSE_ALARMS, QUIET
from tests.clients.cluster import quorate, run_quorate

pytestmark = pytest.mark.clients

ROOT = Path(__file__).parents[2]
SILENT_LEADER = str(Path(__file__).with_name("silent-leader.toml"))
FAST_SESSIONS = (
    "--override=broker.session.timeout.ms=1200",
    "--override=broker.heartbeat.interval.ms=200",
)
RUN_TIMEOUT_S = 400.0


VARIANTS = [
    (scenario, variant.name)
    for scenario in bundled_scenarios()
    for variant in load(scenario).variants
]


def ablation_of(scenario: str, variant: str) -> Ablation:
    """Return the safeguard of a variant."""
    loaded = load(scenario)
    (found,) = [loaded.ablation_of(each) for each in loaded.variants if each.name == variant]
    assert found is not None
    return found


@contextmanager
def cluster_without(rule: str, directory: Path) -> Iterator[str]:
    """Run a cluster in which one rule is replaced (ablated.py), and yield its directory."""
    controllers = "3" if rule == "election" else "1"
    up = ("up", "--dir", str(directory), "--port", "0", "--detach", "--faults", *FAST_SESSIONS)
    command = [sys.executable, "-m", "tests.chaos.ablated", rule, *up, "--controllers", controllers]
    subprocess.run(command, cwd=ROOT, check=True, timeout=90, stdout=subprocess.DEVNULL)
    try:
        yield str(directory)
    finally:
        run_quorate("down", "--dir", str(directory), timeout_s=120)


def run_scenario(*arguments: str) -> dict[str, Any]:
    """Return the JSON result of a run. Its verdict must match the exit status."""
    ended = run_quorate("chaos", "run", *arguments, "--format", "json", timeout_s=RUN_TIMEOUT_S)
    assert ended.stdout, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    assert ended.returncode == {"good": 0, "bad": 1}[found["verdict"]], ended.stderr
    return found


def ablate_nodes(monkeypatch: pytest.MonkeyPatch, safeguard: str) -> None:
    """Let the nodes of runs from now on start without the safeguard (`ablated_site`)."""
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'tests' / 'chaos' / 'ablated_site'}:{ROOT}")
    monkeypatch.setenv("QUORATE_ABLATION", safeguard)


def bad(found: dict[str, Any]) -> set[str]:
    """Return the names of the checks that failed."""
    return {check["name"] for check in found["checks"] if not check["good"]}


def what(found: dict[str, Any]) -> str:
    """Return the events of the timeline as lines."""
    return "\n".join(f"{event['ms']} {event['what']}" for event in found["timeline"])


def readme_block(title: str) -> str:
    """Return the first shell block of a section of the README."""
    section = (ROOT / "README.md").read_text().partition(f"## {title}\n")[2]
    block = re.search(r"```sh\n(.*?)```", section, re.DOTALL)
    assert block is not None, f"README has no block under {title!r}"
    return block[1]


def test_the_readmes_scenario_as_written(tmp_path: Path) -> None:
    """Run the block of the README: both variants, on a temporary cluster that is removed
    afterwards."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    environment["TMPDIR"] = str(temporary)
    script = readme_block("Run a failure scenario")
    ended = subprocess.run(
        ["sh", "-e", "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "verdict  GOOD" in ended.stdout
    assert ended.stdout.count("is fenced (session-expired)") == 2
    assert re.search(r"refused [1-9]\d* as not the leader", ended.stdout)
    assert re.search(r"mute of broker \d \([1-9]\d* frames", ended.stdout)
    assert re.search(r"holds [1-9]\d* records that the new leaders do not have", ended.stdout)
    page = (tmp_path / "scenario.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "GOOD" in page
    assert list(temporary.iterdir()) == [], "the cluster's directory is gone"


def test_a_broker_that_is_fenced_but_goes_on_leading_is_found(tmp_path: Path) -> None:
    with cluster_without("fencing", tmp_path / "c") as directory:
        found = run_scenario(SILENT_LEADER, "--variant", "heartbeats", "--dir", directory)
    assert found["verdict"] == "bad"
    progress = progress_of(ClusterDir(Path(directory)).chaos_progress.read_text())
    assert (progress.scenario, progress.state) == (found["scenario"], "bad")
    assert progress.events and progress.problems
    assert {"steps", "leaders"} <= bad(found)
    assert "is fenced and leads nothing" in what(found)


@pytest.mark.long
@pytest.mark.parametrize("rule", ["session-expiry", "fencing", "acks-all"])
def test_without_it_a_silent_leader_does_harm(rule: str, tmp_path: Path) -> None:
    with cluster_without(rule, tmp_path / "c") as directory:
        found = run_scenario(SILENT_LEADER, "--variant", "partition", "--dir", directory)
    assert found["verdict"] == "bad"
    if rule == "acks-all":
        assert found["lost"] > 0
        assert {"lost", "refused"} <= bad(found)


@pytest.mark.long
@pytest.mark.timeout(RUN_TIMEOUT_S)
@pytest.mark.parametrize(("scenario", "variant"), VARIANTS)
def test_without_its_safeguard_a_variant_is_bad_by_the_check_that_it_names(
    scenario: str, variant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each variant runs alone, because a run ends at its first step that fails."""
    ablation = ablation_of(scenario, variant)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    ablate_nodes(monkeypatch, ablation.safeguard)
    found = run_scenario(scenario, "--variant", variant)
    assert found["verdict"] == "bad"
    assert ablation.check in bad(found), f"{bad(found)}\n{what(found)}"


@pytest.mark.long
@pytest.mark.timeout(RUN_TIMEOUT_S)
@pytest.mark.parametrize(
    ("scenario", "variant"), [each for each in VARIANTS if len(load(each[0]).variants) > 1]
)
def test_a_variant_alone_is_good(
    scenario: str, variant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    found = run_scenario(scenario, "--variant", variant)
    assert bad(found) == set(), what(found)


@pytest.mark.long
@pytest.mark.timeout(RUN_TIMEOUT_S)
def test_a_controller_that_answers_from_memory_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It resigns in time, so only its stale answers make the verdict bad."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    ablate_nodes(monkeypatch, "linearizable-reads")
    assert bad(run_scenario("controller-partition")) == {"stale answers"}


@pytest.mark.long
@pytest.mark.timeout(RUN_TIMEOUT_S)
def test_the_same_seed_repeats_the_faults_of_a_run(tmp_path: Path) -> None:
    found = [run_scenario("flapping-isr", "--seed", seed) for seed in ("1", "1", "2")]
    assert [each["seed"] for each in found] == [1, 1, 2]
    assert [bad(each) for each in found] == [set(), set(), set()]
    first, again, other = ([(f["kind"], f["node"]) for f in each["faults"]] for each in found)
    assert first == again
    assert first != other


def test_every_safeguard_of_a_variant_exists_and_names_a_check_of_its_own() -> None:
    """`steps` says only that something did not happen in time."""
    for scenario, variant in VARIANTS:
        ablation = ablation_of(scenario, variant)
        assert ablation.safeguard in ABLATIONS
        assert ablation.check != "steps"


@pytest.mark.long
@pytest.mark.timeout(RUN_TIMEOUT_S)
@pytest.mark.parametrize("scenario", bundled_scenarios())
def test_every_scenario_is_good_on_a_cluster_of_quorate_up(scenario: str, tmp_path: Path) -> None:
    directory = str(tmp_path / "c")
    shape = load(scenario).cluster
    config = [f"--override={name}={value}" for name, value in shape.config.items()]
    size = [f"--{name}={getattr(shape, name)}" for name in ("controllers", "brokers", "racks")]
    options = (*size, *(config or FAST_SESSIONS))
    up = quorate("up", "--dir", directory, "--port", "0", "--detach", "--faults", *options)
    subprocess.run(up, check=True, timeout=90, stdout=subprocess.DEVNULL)
    try:
        page = str(tmp_path / "page.html")
        found = run_scenario(scenario, "--dir", directory, "--html", page)
        again = run_quorate("topics", "--bootstrap-server", bootstrap(directory), "--list")
    finally:
        run_quorate("down", "--dir", directory, timeout_s=120)
    assert bad(found) == set()
    assert (found["lost"], found["duplicated"]) == (0, 0)
    assert found["acknowledged"] > 0
    assert len(found["unavailable_ms"]) == load(scenario).workload.partitions
    assert Path(page).exists()
    assert missing_events(scenario, Path(directory)) == [], "the logs tell what happened"
    assert false_alarms(scenario, Path(directory)) == []
    topics = set(again.stdout.split()) - {"__consumer_offsets"}
    assert topics == set(), "the topics of the run must be deleted"


def missing_events(scenario: str, directory: Path) -> list[str]:
    """Return those expected events of a scenario that no node has logged."""
    logs = logs_of(directory)
    return [pattern for pattern in EVENTS[scenario] if not re.search(pattern, logs)]


def false_alarms(scenario: str, directory: Path) -> list[str]:
    """Return the lines about a broker that is missed, if the scenario must have none."""
    if scenario not in QUIET:
        return []
    pattern = "|".join(FALSE_ALARMS)
    return [line for line in logs_of(directory).splitlines() if re.search(pattern, line)]


def logs_of(directory: Path) -> str:
    """Return the logs of all nodes of a cluster."""
    return "".join(file.read_text() for file in directory.glob("nodes/*/node.log"))


def test_every_scenario_has_expected_events() -> None:
    assert set(EVENTS) == set(bundled_scenarios())


def bootstrap(directory: str) -> str:
    """Return the bootstrap servers of the cluster in a directory."""
    entry: dict[str, str] = json.loads((Path(directory) / "cluster.json").read_text())
    return entry["bootstrap"]
