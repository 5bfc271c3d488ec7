"""`quorate chaos` refuses a scenario that cannot run before it causes any fault."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from quorate.cli.chaos.command import chaos
from quorate.cli.chaos.loader import bundled_scenarios
from quorate.cli.chaos.scenario import STEPS


def run(*arguments: str) -> Result:
    """Run a command of `quorate chaos`."""
    return CliRunner().invoke(chaos, arguments)


def cluster(directory: Path, pid: int | None) -> str:
    """Write the cluster.json of a cluster with one broker, and return the directory."""
    node = {"id": 4, "pid": pid, "host": "127.0.0.1", "port": 1, "log_dir": str(directory)}
    entry = {"cluster_id": "c", "bootstrap": "127.0.0.1:1", "bootstrap_controllers": ""}
    (directory / "cluster.json").write_text(
        json.dumps({**entry, "controllers": [], "brokers": [node]})
    )
    return str(directory)


def test_the_list() -> None:
    listed = run("list")
    assert listed.exit_code == 0
    assert "leader-kill" in listed.output
    assert "--variant partition: all traffic between it and" in listed.output
    names = [each["name"] for each in json.loads(run("list", "--format", "json").output)]
    assert names == list(bundled_scenarios())


def test_the_list_of_steps() -> None:
    told = run("steps").output
    assert (
        "  partitions = 12             Partitions of the topic that is written and read.\n" in told
    )
    assert (
        "  mute-heartbeats             Drop the heartbeats of a broker and nothing else. Keys: "
        in told
    )
    assert all(f"  {do} " in told for do in STEPS)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("nonsense",), 1, "no such scenario; it must be one of controller-kill"),
        (("leader-kill", "--variant", "x"), 2, "--variant: value 'x' must be one of kill"),
        (("leader-kill", "--partitions", "0"), 2, "0 is not in the range"),
        (("leader-kill", "--override", "x"), 2, "'x' must be KEY=VALUE"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], code: int, said: str) -> None:
    ended = run("run", *arguments)
    assert (ended.exit_code, said in ended.output) == (code, True), ended.output


def test_a_mistake_in_a_file_is_told_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('title = "x"\nvariant = 3\n')
    ended = run("run", str(file))
    assert ended.exit_code == 1
    assert f"{file}:2: 'variant' is an unknown key; the known keys are: title" in ended.output


def test_directories_without_a_cluster_that_can_run_a_scenario(tmp_path: Path) -> None:
    ended = run("run", "leader-kill", "--dir", str(tmp_path))
    assert "there is no cluster in this directory" in ended.output
    ended = run("run", "leader-kill", "--dir", cluster(tmp_path, None))
    assert "every node must run before a scenario; down: 4" in ended.output
    ended = run("run", "heartbeat-timeout", "--dir", cluster(tmp_path, os.getpid()))
    assert "start them with `quorate up --faults --dir" in ended.output
    ended = run("run", "leader-kill", "--dir", str(tmp_path), "--override", "a=b")
    assert ended.exit_code == 2
