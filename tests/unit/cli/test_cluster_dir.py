"""cluster.json stays true about who runs."""

from __future__ import annotations

import os
from pathlib import Path

from quorate.cli.cluster_dir import ClusterDir, Shape, listed, set_pids
from quorate.config.loader import load

NODE_ID = 1


def cluster(root: Path) -> ClusterDir:
    directory = ClusterDir(root)
    directory.create(Shape(controllers=1, brokers=1, port=0))
    files = [directory.node_file(each) for each in directory.node_ids()]
    directory.write("an id", [load(str(file), environment={}) for file in files])
    return directory


def pid(directory: ClusterDir) -> int | None:
    return directory.read()["controllers"][0]["pid"]


def test_a_node_is_listed_while_it_runs(tmp_path: Path) -> None:
    directory = cluster(tmp_path)
    with listed(directory.file, NODE_ID):
        assert pid(directory) == os.getpid()
    assert pid(directory) is None


def test_a_second_start_does_not_unlist_the_first(tmp_path: Path) -> None:
    """It is refused the directory and ends; once it took the running node's pid along."""
    directory = cluster(tmp_path)
    running = os.getppid()
    set_pids(directory.file, {NODE_ID: running})
    with listed(directory.file, NODE_ID):
        pass
    assert pid(directory) == running


def test_a_pid_of_a_dead_process_is_forgotten(tmp_path: Path) -> None:
    directory = cluster(tmp_path)
    child = os.posix_spawn("/bin/true", ["true"], {})
    os.waitpid(child, 0)
    set_pids(directory.file, {NODE_ID: child})
    with listed(directory.file, NODE_ID):
        pass
    assert pid(directory) is None
