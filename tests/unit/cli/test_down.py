"""`quorate down`: the nodes for which it waits, and those that it stopped, killed or found dead."""

from __future__ import annotations

import os
from pathlib import Path

from click.testing import CliRunner

from quorate.cli.main import main
from quorate.cli.nodes import down
from quorate.cli.nodes.cluster_dir import ClusterDir, ClusterEntry, NodeEntry, replace_file
from quorate.cli.nodes.cluster_processes import wait_gone


def node(node_id: int, pid: int | None = None) -> NodeEntry:
    return NodeEntry(id=node_id, pid=pid, host="h", port=9092, log_dir="d")


class Dir(ClusterDir):
    """A directory whose cluster.json lists three controllers and two brokers."""

    def __init__(self, root: Path, running: set[int]) -> None:
        super().__init__(root)
        pids = {each: os.getpid() for each in running}
        self.entry = ClusterEntry(
            cluster_id="C",
            bootstrap="h:9092",
            bootstrap_controllers="h:9093",
            controllers=[node(each, pids.get(each)) for each in (1, 2, 3)],
            brokers=[node(each, pids.get(each)) for each in (4, 5)],
        )
        self.file.write_text("{}")

    def read(self) -> ClusterEntry:
        return self.entry


def test_the_progress_says_for_which_nodes_the_stop_waits_and_why(tmp_path: Path) -> None:
    brokers = down.waiting_text(Dir(tmp_path, {1, 2, 3, 5}))
    assert brokers == "waits for broker 5, until other brokers lead their partitions"
    assert down.waiting_text(Dir(tmp_path, {1, 2})) == "waits for controllers 1, 2"
    assert down.waiting_text(Dir(tmp_path, set())) == "waits for the supervisor"


def test_the_wait_calls_back_while_a_process_runs() -> None:
    calls: list[int] = []
    assert not wait_gone([os.getpid()], 0.05, lambda: calls.append(1))
    assert calls


def test_killed_and_dead_nodes_are_named(tmp_path: Path) -> None:
    directory = Dir(tmp_path, set())
    text = down.stopped_text(directory, {1, 2, 3, 5}, {5})
    assert text == (
        f"stopped broker 5 and controllers 1, 2, 3 of {tmp_path}; broker 5 did not stop in time "
        "and had to be killed; broker 4 did not run before; `quorate up` starts them again"
    )
    all_of_them = down.stopped_text(directory, {1, 2, 3, 4, 5}, set())
    assert all_of_them == (
        f"stopped brokers 4, 5 and controllers 1, 2, 3 of {tmp_path}; "
        "`quorate up` starts them again"
    )
    assert down.stopped_text(directory, set(), set()).endswith(" was running")


def test_the_list_of_killed_nodes_is_read_once(tmp_path: Path) -> None:
    directory = ClusterDir(tmp_path)
    assert directory.killed_nodes() == set()
    replace_file(directory.killed_file, "[4, 5]")
    assert directory.killed_nodes() == {4, 5}
    assert directory.killed_nodes() == set()
    replace_file(directory.killed_file, "no list")
    assert directory.killed_nodes() == set()


def test_allow_actions_needs_the_console(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["up", "--dir", str(tmp_path), "--allow-actions"])
    assert done.exit_code == 2
    assert "--allow-actions needs --console" in done.output
