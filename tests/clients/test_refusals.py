"""Nodes and clusters that refuse to start, with a message that says what to do."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from quorate.cli.nodes.cluster_dir import ClusterDir, Shape
from tests.clients.cluster import ProcessCluster, run_quorate

pytestmark = pytest.mark.clients

CLUSTER_ID = "JQd6lhVATeGBierFverIcg"
OTHER_CLUSTER_ID = "DvLiU0vZT6SI_YQQCLxuMg"


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """The properties of a controller whose directory is not formatted."""
    directory = ClusterDir(tmp_path / "node")
    directory.create(Shape(controllers=1, brokers=1, port=0))
    return directory.node_file(1)


def refusal(*arguments: str) -> str:
    done = run_quorate(*arguments)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return done.stderr


def formatted(node: Path, cluster_id: str, *options: str) -> None:
    done = run_quorate("storage", "format", "-t", cluster_id, "-c", str(node), *options)
    assert done.returncode == 0, done.stderr


def test_an_unformatted_directory(node: Path) -> None:
    told = refusal("server", str(node))
    assert "not formatted" in told and "storage format" in told, told


def test_formatted_twice(node: Path) -> None:
    formatted(node, CLUSTER_ID)
    told = refusal("storage", "format", "-t", CLUSTER_ID, "-c", str(node))
    assert "already formatted" in told, told
    formatted(node, CLUSTER_ID, "--ignore-formatted")


def test_another_nodes_directory(node: Path) -> None:
    formatted(node, CLUSTER_ID)
    told = refusal("server", str(node), "--override", "node.id=9")
    assert "9" in told and "1" in told, told


def test_a_directory_in_use(cluster: ProcessCluster) -> None:
    controller = cluster.entry()["controllers"][0]
    told = refusal("server", str(cluster.directory.node_file(controller["id"])))
    assert controller["log_dir"] in told and "another process" in told, told
    assert cluster.node(controller["id"])["pid"] == controller["pid"]


def test_a_cluster_that_runs(cluster: ProcessCluster) -> None:
    told = refusal("up", "--dir", str(cluster.directory.root))
    assert "runs already" in told and "quorate down" in told, told


def test_another_shape(cluster: ProcessCluster, tmp_path: Path) -> None:
    root = tmp_path / "copy"
    shutil.copytree(cluster.directory.root, root, ignore=shutil.ignore_patterns("up.pid", "data"))
    told = refusal("up", "--dir", str(root), "--brokers", "5")
    assert "--brokers" in told and "3" in told, told


def test_bad_properties(node: Path) -> None:
    text = node.read_text().replace("process.roles=controller", "process.roles=king")
    node.write_text(text)
    told = refusal("server", str(node))
    assert "process.roles" in told and "king" in told, told
