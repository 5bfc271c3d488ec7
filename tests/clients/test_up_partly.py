"""`quorate up` of a cluster in which a controller's directory is not sound, on real processes."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorate.cli.nodes.cluster_dir import ClusterDir, alive
from tests.clients.cluster import run_quorate, wait_for

pytestmark = pytest.mark.clients


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[ClusterDir]:
    """A cluster of three controllers and a broker that ran and was stopped."""
    found = ClusterDir(tmp_path / "cluster")
    try:
        begun = up(found)
        assert begun[0] == 0, begun
        bootstrap = found.read()["bootstrap"]
        run_quorate("topics", "-b", bootstrap, "--create", "--topic", "t", "--partitions", "1")
        run_quorate("down", "--dir", str(found.root))
        yield found
    finally:
        if found.file.exists():
            run_quorate("down", "--dir", str(found.root))


def up(directory: ClusterDir) -> tuple[int, str, str]:
    shape = ("--controllers", "3", "--brokers", "1", "--port", "0")
    ended = run_quorate("up", "--dir", str(directory.root), *shape, "--detach", timeout_s=60)
    return ended.returncode, ended.stdout, ended.stderr


def topics(directory: ClusterDir) -> str:
    return run_quorate("topics", "-b", directory.read()["bootstrap"], "--list").stdout


def data(directory: ClusterDir, node_id: int) -> Path:
    return directory.node_file(node_id).parent / "data"


def test_the_sound_ones_run_and_the_one_that_refuses_is_named(directory: ClusterDir) -> None:
    for name in ("quorum-state", "quorate-quorum-state"):
        (data(directory, 1) / "__cluster_metadata-0" / name).unlink()
    code, said, complaint = up(directory)
    assert (code, said) == (4, f"ready {directory.read()['bootstrap']}\n"), complaint
    assert "node 1 ended (exit code 1)" in complaint
    assert "the vote of this node is lost" in complaint
    assert [alive(node["pid"]) for node in directory.read()["controllers"]] == [False, True, True]
    assert topics(directory) == "t\n"
    run_quorate("down", "--dir", str(directory.root))

    for name in ("meta.properties", "quorate-meta.properties"):
        (data(directory, 2) / name).write_text("?")
    code, said, complaint = up(directory)
    assert (code, said) == (3, ""), "now they are a majority"
    assert "is not ready" in complaint
    pids = [node["pid"] for node in directory.read()["controllers"]]
    wait_for(lambda: not any(map(alive, pids)), "the others are stopped, too")


def test_a_controller_that_lost_its_metadata_directory_is_restored(directory: ClusterDir) -> None:
    """Without an operator; the reproduction on real processes."""
    lost = data(directory, 1) / "__cluster_metadata-0"
    shutil.rmtree(lost)
    verified = run_quorate("storage", "verify", str(data(directory, 1)))
    assert verified.returncode == 1 and "lost all records" in verified.stdout
    code, _, complaint = up(directory)
    assert code == 0, complaint
    log = directory.node_log(1)
    wait_for(lambda: "votes from now on" in log.read_text(), "it has caught up")
    assert "neither votes nor acknowledges" in log.read_text()
    assert topics(directory) == "t\n"
    assert run_quorate("down", "--dir", str(directory.root)).returncode == 0
    assert run_quorate("storage", "verify", str(data(directory, 1))).returncode == 0
    modes = {
        path: stat.S_IMODE(path.stat().st_mode) & 0o077
        for path in (directory.root, *directory.root.rglob("*"))
    }
    assert {path: mode for path, mode in modes.items() if mode} == {}, "the user's own alone"
