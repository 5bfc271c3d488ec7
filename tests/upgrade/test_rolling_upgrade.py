"""A rolling upgrade between two releases that differ in one feature, under load.

The previous release is built from the history (`releases.py` says which commit and why). It does
not know eligible.leader.replicas.version 1, and its controllers do not register. The nodes of a
cluster are stopped and started in the new release one after the other, while clients write and
read. Some go back to the previous release. The feature is raised at the end. The active controller
must refuse it as long as one node may not support it, and no acknowledged record may be lost.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.cluster import run_quorate, wait_for
from tests.clients.librdkafka import admin, create_topic
from tests.system.load import Reader, Writer, wait_until, working
from tests.system.run import read_to_end
from tests.upgrade.releases import MixedCluster, available, installed

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(not available(), reason="needs the history of the repository, and pip"),
]
FEATURE = "eligible.leader.replicas.version"
TOPIC, PARTITIONS, REPLICAS = "orders", 3, 3
WHOLE_S, ACTIVE_S, READ_S, END_S = 120.0, 60.0, 60.0, 60.0
OPTIONS = {"broker.session.timeout.ms": 3000, "broker.heartbeat.interval.ms": 500}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[MixedCluster]:
    cluster = MixedCluster(tmp_path / "cluster", installed(tmp_path / "previous"))
    try:
        yield cluster
    finally:
        cluster.stop()


def raised(cluster: MixedCluster) -> subprocess.CompletedProcess[str]:
    """Ask the active controller to raise the feature."""
    return run_quorate(
        *("features", "--bootstrap-server", cluster.bootstrap),
        *("upgrade", "--feature", f"{FEATURE}=1"),
    )


def require_refused(cluster: MixedCluster, why: str) -> None:
    """Require that the update is refused with this reason. Another answer counts only while the
    registrations are under way."""

    def refused() -> bool:
        done = raised(cluster)
        assert done.returncode != 0, f"an unsupported level was accepted\n{done.stdout}"
        return why in done.stdout + done.stderr

    wait_for(refused, f"refused: {why}", ACTIVE_S)


def levels(cluster: MixedCluster) -> dict[str, int]:
    done = run_quorate(
        *("features", "--bootstrap-server", cluster.bootstrap, "describe", "--format", "json")
    )
    assert done.returncode == 0, done.stderr
    return {each["feature"]: each["finalized"] for each in json.loads(done.stdout)["features"]}


def leader(cluster: MixedCluster) -> int:
    def known() -> int | None:
        done = run_quorate(
            *("metadata-quorum", "--bootstrap-server", cluster.bootstrap),
            *("describe", "--replication", "--format", "json"),
        )
        rows = json.loads(done.stdout) if done.returncode == 0 else []
        return next((int(row["NodeId"]) for row in rows if row["Status"] == "Leader"), None)

    return wait_for(known, "a leader of the quorum", ACTIVE_S)


def whole(cluster: MixedCluster) -> None:
    wait_for(cluster.is_whole, "every replica is in sync", WHOLE_S)


def upgrade_most_controllers(cluster: MixedCluster) -> int:
    """Upgrade all controllers except the leader, stop that one, and return its id. The active
    controller is of the new release then. One controller goes back in between."""
    last = leader(cluster)
    others = [node["id"] for node in cluster.entry()["controllers"] if node["id"] != last]
    for node_id in others:
        cluster.change(node_id, None)
        leader(cluster)
    cluster.change(others[0], cluster.previous)
    leader(cluster)
    cluster.change(others[0], None)
    cluster.stop_node(last)
    return last


def upgrade_brokers(cluster: MixedCluster) -> None:
    """Upgrade the brokers. One of them goes back and forth, because no feature was raised yet."""
    ids = [node["id"] for node in cluster.entry()["brokers"]]
    for node_id in ids:
        require_refused(cluster, f"Broker {node_id} does not support this feature")
        cluster.change(node_id, None)
        whole(cluster)
        if node_id == ids[0]:
            cluster.change(node_id, cluster.previous)
            whole(cluster)
            require_refused(cluster, f"Broker {node_id} does not support this feature")
            cluster.change(node_id, None)
            whole(cluster)


def test_an_upgrade_of_one_node_after_the_other(cluster: MixedCluster) -> None:
    cluster.start(
        *("--controllers", "3", "--brokers", "3"),
        *(f"--override={key}={value}" for key, value in OPTIONS.items()),
    )
    assert FEATURE not in levels(cluster), "the previous release does not know the feature"
    create_topic(admin(cluster.bootstrap), TOPIC, PARTITIONS, REPLICAS)
    places = [(TOPIC, partition) for partition in range(PARTITIONS)]
    writer = Writer("writer", cluster.bootstrap, places)
    reader = Reader("reader", cluster.bootstrap, places)
    with working([reader]):
        with working([writer]):
            last = upgrade_most_controllers(cluster)
            upgrade_brokers(cluster)
            require_refused(cluster, f"controller {last} has not registered")
            cluster.start_node(last, cluster.previous)
            leader(cluster)
            require_refused(cluster, f"controller {last} has not registered")
            cluster.change(last, None)
            assert FEATURE not in {name for name, level in levels(cluster).items() if level}
            wait_for(lambda: raised(cluster).returncode == 0, "the feature is raised", ACTIVE_S)
            assert levels(cluster)[FEATURE] == 1
            require_stays_away(cluster, cluster.entry()["brokers"][-1]["id"])
            whole(cluster)
        final = read_to_end(cluster.bootstrap, places)
        wait_until(
            lambda: all(len(reader.read[place]) >= len(final[place]) for place in places),
            "the reader gets everything",
            READ_S,
        )
    assert writer.history.acknowledged > 0
    for place, values in final.items():
        writer.history.check(place, enumerate(values))
        assert reader.read[place] == values[: len(reader.read[place])], f"{place}: taken back"


def require_stays_away(cluster: MixedCluster, broker_id: int) -> None:
    """Require that a broker of the previous release is refused now. Then start the new one."""
    cluster.stop_node(broker_id)
    before = len(cluster.node_log(broker_id))
    process = cluster.start_only(broker_id, cluster.previous)
    assert process.wait(END_S) != 0
    said = cluster.node_log(broker_id)[before:]
    assert f"does not support finalized version 1 of {FEATURE}" in said, said
    cluster.start_node(broker_id, None)
