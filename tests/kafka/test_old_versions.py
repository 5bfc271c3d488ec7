"""Metadata logs of older releases of Apache Kafka, read as their own kafka-dump-log reads them.

`make test-old-kafka` fetches their jars and runs this file. `make test-kafka` does neither.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.cimpl import NewPartitions, NewTopic

from quorate.quorum.analytics.replay.moment import moment
from quorate.quorum.analytics.replay.moment_json import as_json
from tests.kafka.metadata_history import (
    CLUSTER_ID,
    JAVA,
    PATIENCE_S,
    KafkaNode,
    described,
    done,
    patiently,
)
from tests.unit.metadata.kafka_dump import PAYLOAD

pytest.importorskip("pyarrow", reason="analytics needs `pip install 'quorate[spark]'`")

from quorate.quorum.analytics.log.plan import Choice, planned
from quorate.quorum.analytics.spark.rows import arrow_batches

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(900)]
VERSIONS = ("3.3.2", "3.6.2")
Record = tuple[int, int, str, int, dict[str, Any]]
"""Offset, time in ms, type, version and fields."""


def libs(version: str) -> Path:
    return Path(os.environ.get("QUORATE_OLD_KAFKA", ".kafka")).absolute() / version


def missing(version: str) -> str:
    if shutil.which("java") is None:
        return "no java on the PATH"
    if not list(libs(version).glob("kafka_2.13-*.jar")):
        return f"no jars of Apache Kafka in {libs(version)} (make test-old-kafka fetches them)"
    return ""


class OldNode(KafkaNode):
    """A node that is controller and broker, of a release in which voters do not change."""

    def __init__(self, version: str, root: Path) -> None:
        super().__init__(libs(version), root, 1, "broker,controller", "")
        voters = f"controller.quorum.voters=1@{self.controller}\n"
        lines = self.file.read_text().splitlines(keepends=True)
        self.file.write_text("".join(line for line in lines if "bootstrap" not in line) + voters)

    def format(self, how: str = "") -> None:
        name = "kafka.tools.StorageTool"
        self.tool(name, "format", "-t", CLUSTER_ID, "-c", str(self.file))


@pytest.fixture(params=VERSIONS)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Path, Any]]:
    """Yield the version, its metadata log, and the partitions that its client saw at the end."""
    version = str(request.param)
    if reason := missing(version):
        pytest.skip(reason)
    node = OldNode(version, tmp_path)
    try:
        node.format()
        node.start()
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{node.port}", "log_level": 0})
        used(admin)
        seen = described(admin)
        node.stop(signal.SIGTERM)
        yield version, node.segment, seen
    finally:
        node.stop(signal.SIGKILL)


def used(admin: AdminClient) -> None:
    """Make records of topics, partitions, configs and deletions."""
    patiently(lambda: len(admin.list_topics(timeout=1).brokers) == 1)
    done(admin.create_topics([NewTopic("kept", 2, 1), NewTopic("gone", 1, 1)]))
    done(admin.create_partitions([NewPartitions("kept", 3)]))
    for operation, value in ((AlterConfigOpType.SET, "1"), (AlterConfigOpType.DELETE, None)):
        entry = ConfigEntry("min.insync.replicas", value, incremental_operation=operation)
        resource = ConfigResource(ConfigResource.Type.TOPIC, "kept", incremental_configs=[entry])
        done(admin.incremental_alter_configs([resource]))
    done(admin.delete_topics(["gone"]))
    patiently(lambda: list(admin.list_topics(timeout=1).topics) == ["kept"])
    patiently(lambda: all(each["leader"] == 1 for each in described(admin)["kept"]))


def dumped(version: str, segment: Path) -> list[Record]:
    """Return the metadata records that Kafka's own tool reads."""
    command = (*JAVA, "-cp", f"{libs(version)}/*", "kafka.tools.DumpLogSegments")
    asked = ("--cluster-metadata-decoder", "--files", str(segment))
    done = subprocess.run((*command, *asked), capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    found = filter(None, map(PAYLOAD.match, done.stdout.splitlines()))
    records = ((int(each[1]), int(each[2]), json.loads(each[3])) for each in found)
    return [(at, ms, said["type"], said["version"], said["data"]) for at, ms, said in records]


def read(segment: Path) -> list[Record]:
    """Return the metadata records that the data source reads."""
    return [
        (row["offset"], row["timestamp_ms"], row["type"], row["version"], json.loads(row["record"]))
        for piece in planned(Choice(locations=(str(segment.parent),)))
        for batch in arrow_batches(piece)
        for row in batch.to_pylist()
        if row["type"] not in ("LEADER_CHANGE", "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER")
    ]


def test_an_old_log_reads_as_kafkas_own_tool_reads_it(old: tuple[str, Path, Any]) -> None:
    version, segment, seen = old
    ours, theirs = read(segment), dumped(version, segment)
    assert [each[:4] for each in ours] == [each[:4] for each in theirs]
    assert ours == theirs
    types = {each[2] for each in ours}
    assert {"TOPIC_RECORD", "PARTITION_RECORD", "CONFIG_RECORD", "REMOVE_TOPIC_RECORD"} <= types
    assert {"REGISTER_BROKER_RECORD", "BROKER_REGISTRATION_CHANGE_RECORD"} <= types
    names = ("partition", "leader", "isr", "replicas")
    before = next(at for at, _, kind, _, data in ours if is_shutdown(kind, data)) - 1
    state = as_json(moment(segment.parent, offset=before))
    assert {
        topic["name"]: [{name: each[name] for name in names} for each in topic["partitions"]]
        for topic in state["topics"]
    } == seen


def is_shutdown(kind: str, data: dict[str, Any]) -> bool:
    """Return True for the record with which the broker begins its controlled shutdown."""
    return kind == "BROKER_REGISTRATION_CHANGE_RECORD" and data.get("inControlledShutdown") == 1
