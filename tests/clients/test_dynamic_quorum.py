"""Voters that change while the cluster runs (KIP-853), as an operator does it."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.clients.cluster import ProcessCluster, quorate, run_quorate, running, wait_for

pytestmark = pytest.mark.clients

Done = subprocess.CompletedProcess[str]


class Controllers:
    """More controllers beside those of `quorate up`, each a process of its own."""

    def __init__(self, root: Path, cluster: ProcessCluster) -> None:
        self.cluster = cluster
        self.root = root
        self.processes: dict[int, subprocess.Popen[bytes]] = {}

    def file(self, node_id: int) -> Path:
        return self.root / f"c{node_id}.properties"

    def make(self, node_id: int, *settings: str) -> None:
        with socket.socket() as reserved:
            reserved.bind(("127.0.0.1", 0))
            port = reserved.getsockname()[1]
        lines = [
            "process.roles=controller",
            f"node.id={node_id}",
            f"listeners=CONTROLLER://127.0.0.1:{port}",
            "controller.listener.names=CONTROLLER",
            f"controller.quorum.bootstrap.servers={self.cluster.bootstrap_controllers}",
            f"log.dirs={self.root}/d{node_id}",
            *settings,
        ]
        self.file(node_id).write_text("\n".join(lines) + "\n")
        cluster_id = self.cluster.entry()["cluster_id"]
        done = run_quorate(
            *("storage", "format", "-t", cluster_id, "-c", str(self.file(node_id))),
            "--no-initial-controllers",
        )
        assert done.returncode == 0, done.stderr

    def start(self, node_id: int) -> None:
        with open(self.root / f"c{node_id}.log", "ab") as log:
            self.processes[node_id] = subprocess.Popen(
                quorate("server", str(self.file(node_id))), stderr=log
            )

    def stop(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()


@pytest.fixture
def controllers(tmp_path: Path) -> Iterator[Controllers]:
    with ExitStack() as stack:  # the cluster stops while there is a quorum that it can tell
        ended = stack.enter_context(ExitStack())
        cluster = stack.enter_context(running(tmp_path / "cluster", "--brokers", "1"))
        more = Controllers(tmp_path, cluster)
        ended.callback(more.stop)
        yield more


def quorum(cluster: ProcessCluster, *arguments: str) -> Done:
    return run_quorate("metadata-quorum", "--bootstrap-server", cluster.bootstrap, *arguments)


def replicas(cluster: ProcessCluster) -> list[dict[str, Any]]:
    done = quorum(cluster, "describe", "--replication", "--format", "json")
    return json.loads(done.stdout) if done.returncode == 0 else []


def voters(cluster: ProcessCluster) -> set[int]:
    return {int(each["NodeId"]) for each in replicas(cluster) if each["Status"] != "Observer"}


def until(succeeds: Callable[[], Done], what: str) -> None:
    """A change may be refused for now: until the replica has caught up, or the leader settled."""
    wait_for(lambda: succeeds().returncode == 0, what)


def make_dynamic(cluster: ProcessCluster) -> None:
    done = run_quorate(
        *("features", "--bootstrap-server", cluster.bootstrap),
        *("upgrade", "--release-version", "4.1"),
    )
    assert done.returncode == 0, done.stderr


def create_topic(cluster: ProcessCluster, name: str) -> Done:
    return run_quorate(
        *("topics", "--bootstrap-server", cluster.bootstrap),
        *("--create", "--topic", name, "--replication-factor", "1"),
    )


def test_a_quorum_whose_controllers_are_replaced_one_by_one(controllers: Controllers) -> None:
    cluster = controllers.cluster
    refused = quorum(cluster, "remove-controller", "-i", "1", "-d", "AAECAwQFBgcICQoLDA0ODw")
    assert refused.returncode == 1 and "UNSUPPORTED_VERSION" in refused.stderr
    make_dynamic(cluster)

    controllers.make(10)
    controllers.start(10)
    file = str(controllers.file(10))
    until(lambda: quorum(cluster, "--command-config", file, "add-controller"), "10 is added")
    assert voters(cluster) == {1, 2, 3, 10}
    again = quorum(cluster, "--command-config", file, "add-controller")
    assert again.returncode == 1 and "DUPLICATE_VOTER" in again.stderr

    for node_id in (1, 2):
        directory_id = next(
            each["DirectoryId"] for each in replicas(cluster) if int(each["NodeId"]) == node_id
        )
        cluster.kill(node_id)
        until(
            lambda node_id=node_id, directory_id=directory_id: quorum(  # type: ignore[misc]
                cluster, "remove-controller", "-i", str(node_id), "-d", directory_id
            ),
            f"{node_id} is removed",
        )
    assert voters(cluster) == {3, 10}
    until(lambda: create_topic(cluster, "still-alive"), "metadata can be written")


@pytest.mark.long
def test_a_controller_with_a_new_disk_joins_by_itself(controllers: Controllers) -> None:
    cluster = controllers.cluster
    make_dynamic(cluster)
    controllers.make(10, "controller.quorum.auto.join.enable=true")
    controllers.start(10)
    wait_for(lambda: 10 in voters(cluster), "10 joins")
    first = next(each["DirectoryId"] for each in replicas(cluster) if int(each["NodeId"]) == 10)

    controllers.stop()
    wiped = controllers.root / "d10"
    wiped.rename(controllers.root / "lost")
    controllers.make(10, "controller.quorum.auto.join.enable=true")
    controllers.start(10)
    wait_for(
        lambda: [
            each
            for each in replicas(cluster)
            if int(each["NodeId"]) == 10
            and each["DirectoryId"] != first
            and each["Status"] != "Observer"
        ],
        "10 joins with its new directory",
    )
    assert voters(cluster) == {1, 2, 3, 10}
