"""Kafka's Java consumers of one group get the partitions of their own rack (KIP-881). The leader of
the group needs the racks of replicas, from Metadata, and those of members, from JoinGroup."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.clients import librdkafka
from tests.clients.cluster import ProcessCluster, run_quorate, wait_for
from tests.clients.test_follower_reads import racked
from tests.kafka.tools import CLASSES, JAVA_OPTIONS, libs

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]

TOPIC = "per-rack"
RANGE = "org.apache.kafka.clients.consumer.RangeAssignor"


@contextmanager
def member(cluster: ProcessCluster, group: str, name: str, rack: str) -> Iterator[None]:
    """Run a static member of a group, in a rack or, if `rack` is empty, in none."""
    properties = {
        "group.instance.id": name,
        "partition.assignment.strategy": RANGE,
        "session.timeout.ms": "45000",
        **({"client.rack": rack} if rack else {}),
    }
    command = ["java", *JAVA_OPTIONS, "-cp", f"{libs()}/*", CLASSES["console-consumer"]]
    command += ["--bootstrap-server", cluster.bootstrap, "--topic", TOPIC, "--group", group]
    for key, value in properties.items():
        command += ["--consumer-property", f"{key}={value}"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def assigned(cluster: ProcessCluster, group: str) -> dict[str, list[int]]:
    """Return the partitions of each member, by its static name."""
    admin = librdkafka.admin(cluster.bootstrap)
    members = admin.describe_consumer_groups([group])[group].result(30).members
    return {
        each.group_instance_id: sorted(part.partition for part in each.assignment.topic_partitions)
        for each in members
    }


def has(cluster: ProcessCluster, group: str, expected: dict[str, list[int]]) -> bool:
    return assigned(cluster, group) == expected


def test_members_get_the_partitions_of_their_rack(tmp_path: Path) -> None:
    with racked(tmp_path / "cluster") as (cluster, first, second):
        made = run_quorate(
            *("topics", "--bootstrap-server", cluster.bootstrap, "--create", "--topic", TOPIC),
            *("--replica-assignment", f"{second},{second},{first},{first}"),
        )
        assert made.returncode == 0, made.stderr
        racks = (f"rack-{first}", f"rack-{second}")
        with (
            member(cluster, "near", "a", racks[0]),
            member(cluster, "near", "b", racks[1]),
            member(cluster, "any", "a", ""),
            member(cluster, "any", "b", ""),
        ):
            for group, expected in (
                ("near", {"a": [2, 3], "b": [0, 1]}),
                ("any", {"a": [0, 1], "b": [2, 3]}),
            ):
                is_assigned = partial(has, cluster, group, expected)
                wait_for(is_assigned, f"{group}: {expected}", timeout_s=30)
