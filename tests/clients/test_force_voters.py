"""All controllers are gone for good, and the cluster comes back from what its brokers have."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.clients.cluster import ProcessCluster, run_quorate, running, wait_for
from tests.clients.librdkafka import (
    ANSWER_TIMEOUT_S,
    admin,
    create_topic,
    producer,
    read_all,
)
from tests.clients.test_dynamic_quorum import Controllers, voters
from tests.clients.test_dynamic_quorum import controllers as controllers
from tests.clients.test_dynamic_quorum import create_topic as create_topic_by_tool

pytestmark = pytest.mark.clients

CONTROLLERS = (1, 2, 3)
BROKERS = (4, 5)
LIVE = 6
"""A broker that is not restarted: its file names where the first controller was, and is again."""
PARTITIONS = 3
RECORDS = 300


def data_of(cluster: ProcessCluster, node_id: int) -> Path:
    return Path(cluster.node(node_id)["log_dir"])


def topics(cluster: ProcessCluster) -> dict[str, Any]:
    """Return the topics without their leaders, which may have changed."""
    done = run_quorate(
        "topics", "--bootstrap-server", cluster.bootstrap, "--describe", "--format", "json"
    )
    assert done.returncode == 0, done.stderr
    return {
        each["name"]: (each["topic_id"], [sorted(p["replicas"]) for p in each["partitions"]])
        for each in json.loads(done.stdout)
    }


def write(cluster: ProcessCluster, first: int, count: int) -> None:
    writer = producer(cluster.bootstrap, enable_idempotence=True, acks="all")
    for number in range(first, first + count):
        writer.produce("orders", b"%d" % number, partition=number % PARTITIONS)
    assert writer.flush(ANSWER_TIMEOUT_S) == 0


def force(cluster: ProcessCluster, brokers: Sequence[int], *more: str) -> Any:
    directories = [part for each in brokers for part in ("--dir", str(data_of(cluster, each)))]
    done = run_quorate(
        *("metadata-quorum", "force-voters", *directories),
        *("--controller", str(cluster.directory.node_file(1)), "--format", "json", *more),
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def name_servers(cluster: ProcessCluster, node_id: int, servers: str) -> None:
    file = cluster.directory.node_file(node_id)
    lines = file.read_text().splitlines(keepends=True)
    kept = [each for each in lines if not each.startswith("controller.quorum.voters")]
    file.write_text("".join([*kept, f"controller.quorum.bootstrap.servers={servers}\n"]))


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ProcessCluster]:
    with running(tmp_path / "cluster", "--brokers", str(len(BROKERS) + 1)) as own:
        yield own


def test_all_controllers_are_lost_and_the_brokers_bring_the_quorum_back(
    cluster: ProcessCluster, tmp_path: Path
) -> None:
    create_topic(admin(cluster.bootstrap), "orders", PARTITIONS, 2)
    write(cluster, 0, RECORDS)
    live = cluster.node(LIVE)["pid"]
    assert live is not None
    os.kill(live, signal.SIGSTOP)  # so that it has nothing that the others have not
    before = topics(cluster)
    for node_id in CONTROLLERS:
        cluster.kill(node_id)
    os.kill(live, signal.SIGCONT)
    in_use = run_quorate(
        *("metadata-quorum", "force-voters", "--dir", str(data_of(cluster, LIVE))),
        *("--controller", str(cluster.directory.node_file(1)), "--yes"),
    )
    assert in_use.returncode == 1 and "is in use by a running node" in in_use.stderr
    for node_id in BROKERS:
        cluster.kill(node_id)
    for node_id in CONTROLLERS:
        shutil.move(data_of(cluster, node_id), tmp_path / f"kept-{node_id}")

    planned = force(cluster, BROKERS, "--dry-run")
    assert planned["generation"] == 1 and not planned["done"]
    assert not data_of(cluster, 1).exists()
    done = force(cluster, BROKERS, "--yes")
    assert done["done"] and done["chosen"]["endOffset"] == planned["chosen"]["endOffset"]
    for node_id in BROKERS:
        name_servers(cluster, node_id, done["bootstrapServers"])
    for node_id in (1, *BROKERS):
        cluster.restart(node_id)
    wait_for(cluster.is_whole, "everything is in sync again")
    assert cluster.node(LIVE)["pid"] == live
    assert "following node 1 into quorum generation 1" in cluster.node_log(LIVE)
    assert topics(cluster) == before
    write(cluster, RECORDS, RECORDS)

    for node_id in (2, 3):  # a majority of the old quorum
        shutil.copytree(tmp_path / f"kept-{node_id}", data_of(cluster, node_id))
        cluster.restart(node_id)
    for node_id in (2, 3):
        wait_for(lambda: "Format its metadata directory" in cluster.node_log(node_id), "it is told")  # noqa: B023
    # One line in 10 s for each host, and all nodes have the same one here.
    wait_for(lambda: "must be formatted anew" in cluster.node_log(1), "the refusal is logged")
    write(cluster, 2 * RECORDS, RECORDS)
    found = read_all(cluster.bootstrap, [("orders", each) for each in range(PARTITIONS)])
    values = sorted(int(each.value() or b"") for each in found)
    assert values == list(range(3 * RECORDS))


@pytest.mark.long
def test_controllers_with_new_disks_join_the_rebuilt_quorum(controllers: Controllers) -> None:
    cluster = controllers.cluster  # with one broker, 4
    assert create_topic_by_tool(cluster, "before").returncode == 0
    for node_id in (*CONTROLLERS, 4):
        cluster.kill(node_id)
    for node_id in CONTROLLERS:
        shutil.rmtree(data_of(cluster, node_id))
    done = force(cluster, [4], "--yes")
    name_servers(cluster, 4, done["bootstrapServers"])
    for node_id in (1, 4):
        cluster.restart(node_id)
    for node_id in (10, 11):
        controllers.make(node_id, "controller.quorum.auto.join.enable=true")
        controllers.start(node_id)
    wait_for(lambda: voters(cluster) == {1, 10, 11}, "both have joined")
    cluster.kill(1)
    wait_for(lambda: create_topic_by_tool(cluster, "after").returncode == 0, "a majority is left")
    assert {"before", "after"} <= topics(cluster).keys()
