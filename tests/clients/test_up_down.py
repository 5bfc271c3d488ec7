"""`quorate up`, `status` and `down` as an operator types them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from quorate.cli.nodes.cluster_dir import ClusterDir, NodeEntry, alive
from quorate.quorum.rpc.ports import free_socket
from tests.clients.cluster import quorate, run_quorate, wait_for

pytestmark = pytest.mark.clients


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[ClusterDir]:
    """Of one controller and two brokers; whatever a test leaves running is stopped."""
    found = ClusterDir(tmp_path / "cluster")
    yield found
    if found.file.exists():
        run_quorate("down", "--dir", str(found.root))


def up(directory: ClusterDir, *options: str) -> subprocess.CompletedProcess[str]:
    shape = {"--controllers": "1", "--brokers": "2", "--port": "0"}
    others = [word for name in shape if name not in options for word in (name, shape[name])]
    root = str(directory.root)
    return run_quorate("up", "--dir", root, *others, "--detach", *options, timeout_s=60)


def nodes(directory: ClusterDir) -> list[NodeEntry]:
    entry = directory.read()
    return [*entry["controllers"], *entry["brokers"]]


def supervisor(directory: ClusterDir) -> int:
    return int(directory.supervisor_file.read_text())


def was_told(directory: ClusterDir, node_id: int) -> bool:
    return "received a signal to stop" in directory.node_log(node_id).read_text()


def test_a_detached_cluster_lives_until_it_is_told_to_stop(directory: ClusterDir) -> None:
    begun = up(directory)
    bootstrap = directory.read()["bootstrap"]
    assert (begun.returncode, begun.stdout) == (0, f"ready {bootstrap}\n"), begun.stderr
    pids = [node["pid"] for node in nodes(directory)]
    assert all(alive(pid) for pid in pids)

    again = up(directory)
    assert again.returncode == 1
    assert f"{directory.root}: the cluster runs already" in again.stderr

    made = run_quorate("topics", "-b", bootstrap, "--create", "--topic", "t", "--partitions", "3")
    assert made.returncode == 0, made.stdout
    status = run_quorate("status", "--dir", str(directory.root), "--format", "json")
    assert status.returncode == 0, status.stderr
    shown = json.loads(status.stdout)
    assert (shown["topics"], shown["partitions"], shown["problems"]) == (1, 3, [])

    assert run_quorate("down", "--dir", str(directory.root)).returncode == 0
    assert not any(alive(pid) for pid in pids)
    assert [node["pid"] for node in nodes(directory)] == [None, None, None]

    assert up(directory).returncode == 0
    assert directory.read()["bootstrap"] == bootstrap, "it keeps its ports"
    listed = run_quorate("topics", "-b", bootstrap, "--list")
    assert listed.stdout == "t\n", "and its data"


def test_with_restart_a_killed_node_comes_back(directory: ClusterDir) -> None:
    assert up(directory, "--restart").returncode == 0
    before = directory.read()["brokers"][0]
    assert before["pid"] is not None
    os.kill(before["pid"], signal.SIGKILL)

    def back() -> bool:
        pid = directory.read()["brokers"][0]["pid"]
        return pid not in (None, before["pid"]) and alive(pid)

    wait_for(back, "cluster.json has the new pid")


def test_ctrl_c_stops_it_in_order(directory: ClusterDir) -> None:
    assert up(directory).returncode == 0
    pids = [node["pid"] for node in nodes(directory)]
    above = supervisor(directory)
    os.kill(above, signal.SIGINT)
    wait_for(lambda: not alive(above), "the supervisor ended")
    assert not any(alive(pid) for pid in pids)
    ends = [directory.node_log(node["id"]).read_text() for node in nodes(directory)]
    assert all(log.splitlines()[-1].endswith("stopped") for log in ends), ends
    stopped = [log.splitlines()[-1].split(" INFO")[0] for log in ends]
    assert stopped[0] == max(stopped), "the controller last"


def test_nodes_are_told_when_their_supervisor_is_killed(directory: ClusterDir) -> None:
    assert up(directory).returncode == 0
    left = [(node["id"], node["pid"]) for node in nodes(directory)]
    os.kill(supervisor(directory), signal.SIGKILL)
    for node_id, pid in left:
        wait_for(partial(was_told, directory, node_id), f"node {node_id} received SIGTERM")
        if pid is not None and alive(pid):  # a broker asks a controller that may be gone
            os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not any(alive(pid) for _, pid in left), "all nodes ended")
    assert up(directory).returncode == 0, "and the cluster starts again"


def test_a_port_that_is_taken_is_named(directory: ClusterDir) -> None:
    """The port is outside of the ephemeral range, where no connection takes the ports behind it."""
    with free_socket("127.0.0.1") as taken:
        taken.listen()
        port = taken.getsockname()[1]
        for option in ("--port", "--console"):
            refused = up(directory, option, str(port))
            assert refused.returncode == 1
            assert str(port) in refused.stderr and "Nothing was started" in refused.stderr
            assert f"another one with {option}" in refused.stderr


def test_another_shape_than_the_directory_holds_is_refused(directory: ClusterDir) -> None:
    directory.root.mkdir()
    assert up(directory).returncode == 0
    run_quorate("down", "--dir", str(directory.root))
    refused = up(directory, "--brokers", "3")
    assert refused.returncode == 1
    assert "--brokers: value 3 must be 2" in refused.stderr


def test_a_node_that_runs_cannot_be_started_twice(directory: ClusterDir) -> None:
    assert up(directory).returncode == 0
    broker = directory.read()["brokers"][0]
    second = subprocess.run(
        quorate("server", str(directory.node_file(broker["id"]))),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert second.returncode == 1
    assert "in use by another process" in second.stderr
    assert directory.read()["brokers"][0] == broker
