"""A real Apache Kafka writes a metadata log with what the fixture lacks: elections after `kill -9`,
voters that come and go (KIP-853), and a metadata transaction that a new leader aborts (KIP-868).

Kafka leaves a transaction open only when it dies inside of one. So one is appended by hand, as its
controller writes it, while the node is down: the ABORT that follows is Kafka's own.

    python -m tests.kafka.metadata_history LIBS TARGET
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.cimpl import NewPartitions, NewTopic

from benchmarks.kafka_cluster import free_ports
from quorate.quorum.ids import Uuid
from quorate.quorum.log.batches.batch import batches, build_value_batch
from quorate.quorum.metadata.batches import metadata_batches
from quorate.quorum.metadata.framing import encode_record
from quorate.quorum.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    TopicRecord,
)

CLUSTER_ID = "QuorateHistoryOracle-w"
JAVA = ("java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
PATIENCE_S = 240.0
SEGMENT = "00000000000000000000.log"


class KafkaNode:
    """One process of Apache Kafka, with its own .properties file and data directory."""

    def __init__(self, libs: Path, root: Path, node_id: int, roles: str, bootstrap: str) -> None:
        self.port, controller_port = free_ports(2)
        self.controller = f"127.0.0.1:{controller_port}"
        self.data = root / str(node_id) / "data"
        self._classpath, self._log = f"{libs}/*", root / f"{node_id}.out"
        self._process: subprocess.Popen[bytes] | None = None
        listeners = f"CONTROLLER://{self.controller}"
        if "broker" in roles:
            listeners = f"PLAINTEXT://127.0.0.1:{self.port},{listeners}"
        values = {
            "process.roles": roles,
            "node.id": node_id,
            "controller.quorum.bootstrap.servers": bootstrap or self.controller,
            "controller.listener.names": "CONTROLLER",
            "listeners": listeners,
            "log.dirs": self.data,
            "offsets.topic.replication.factor": 1,
        }
        self.file = root / f"{node_id}.properties"
        self.file.write_text("".join(f"{name}={value}\n" for name, value in values.items()))

    @property
    def segment(self) -> Path:
        return self.data / "__cluster_metadata-0" / SEGMENT

    def java(self, *arguments: str) -> subprocess.Popen[bytes]:
        with open(self._log, "ab") as log:
            command = (*JAVA, "-cp", self._classpath, *arguments)
            return subprocess.Popen(command, stdout=log, stderr=log)

    def tool(self, *arguments: str) -> None:
        if self.java(*arguments).wait(PATIENCE_S):
            raise RuntimeError(f"{arguments[0]} failed: {self._log.read_text()[-2000:]}")

    def format(self, how: str) -> None:
        self.tool("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(self.file), how)

    def start(self) -> None:
        self._process = self.java("kafka.Kafka", str(self.file))

    def stop(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(PATIENCE_S)
            self._process = None


def written(libs: Path, root: Path) -> tuple[Path, dict[str, Any]]:
    """Return the metadata log of the first voter, which is also a broker and is stopped, and the
    state that a client saw at its end: `offset` and `final` of the fixture's history.json."""
    first = KafkaNode(libs, root, 1, "broker,controller", "")
    second = KafkaNode(libs, root, 2, "controller", first.controller)
    try:
        first.format("--standalone")
        first.start()
        client: dict[str, str | int | float | bool] = {
            "bootstrap.servers": f"127.0.0.1:{first.port}",
            "log_level": 0,
        }
        admin = AdminClient(client)
        use(admin)
        join_and_leave(first, second)
        first.stop(signal.SIGKILL)
        leave_a_transaction_open(first.segment)
        first.start()
        patiently(lambda: aborted(first.segment))
        done(admin.create_topics([NewTopic("after", 1, 1)]))
        patiently(lambda: all(each["leader"] == 1 for each in described(admin)["kept"]))
        said = {"offset": last_offset(first.segment), "final": described(admin)}
        first.stop(signal.SIGTERM)
    finally:
        first.stop(signal.SIGKILL)
        second.stop(signal.SIGKILL)
    return first.segment, said


def described(admin: AdminClient) -> dict[str, list[dict[str, Any]]]:
    return {
        name: [
            {
                "partition": number,
                "leader": partition.leader,
                "isr": partition.isrs,
                "replicas": partition.replicas,
            }
            for number, partition in sorted(topic.partitions.items())
        ]
        for name, topic in sorted(admin.list_topics(timeout=10).topics.items())
    }


def use(admin: AdminClient) -> None:
    patiently(lambda: len(admin.list_topics(timeout=1).brokers) == 1)
    done(admin.create_topics([NewTopic("kept", 2, 1), NewTopic("gone", 1, 1)]))
    done(admin.create_partitions([NewPartitions("kept", 3)]))
    for operation, value in ((AlterConfigOpType.SET, "1"), (AlterConfigOpType.DELETE, None)):
        entry = ConfigEntry("min.insync.replicas", value, incremental_operation=operation)
        resource = ConfigResource(ConfigResource.Type.TOPIC, "kept", incremental_configs=[entry])
        done(admin.incremental_alter_configs([resource]))
    done(admin.delete_topics(["gone"]))


def join_and_leave(first: KafkaNode, second: KafkaNode) -> None:
    tool = "org.apache.kafka.tools.MetadataQuorumCommand"
    second.format("--no-initial-controllers")
    second.start()
    patiently(second.segment.exists)
    bootstrap = ("--bootstrap-controller", first.controller)

    def joined() -> bool:
        command = (tool, *bootstrap, "--command-config", str(second.file), "add-controller")
        return first.java(*command).wait(PATIENCE_S) == 0

    patiently(joined)  # it has to catch up first
    meta = (second.data / "meta.properties").read_text().splitlines()
    (directory_id,) = (line.partition("=")[2] for line in meta if line.startswith("directory.id"))
    leaving = ("--controller-id", "2", "--controller-directory-id", directory_id)
    first.tool(tool, *bootstrap, "remove-controller", *leaving)
    second.stop(signal.SIGTERM)


def last_offset(segment: Path) -> int:
    *_, (_, last) = batches(segment.read_bytes())
    return last.last_offset


def leave_a_transaction_open(segment: Path) -> None:
    *_, (_, last) = batches(segment.read_bytes())
    records = (
        BeginTransactionRecord(name="by hand"),
        TopicRecord(name="never", topic_id=Uuid(b"never-was-a-topi")),
    )
    batch = build_value_batch(
        [encode_record(record) for record in records],
        base_offset=last.last_offset + 1,
        leader_epoch=last.leader_epoch,
        timestamp_ms=last.max_timestamp_ms + 1,
    )
    with open(segment, "ab") as file:
        file.write(batch)


def aborted(segment: Path) -> bool:
    return any(
        isinstance(record, AbortTransactionRecord)
        for batch in metadata_batches(segment.read_bytes())
        for record in batch.records
    )


def done(futures: Mapping[Any, Future[Any]]) -> None:
    for future in futures.values():
        future.result(PATIENCE_S)


def patiently(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        with suppress(KafkaException, KeyError, ValueError):  # not there yet, or half written
            if condition():
                return
        time.sleep(0.2)
    raise TimeoutError("Kafka did not get there")


def main(libs: Path, target: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="kafka-history-") as root:
        segment, said = written(libs, Path(root))
        log = target / "__cluster_metadata-0"
        log.mkdir(parents=True, exist_ok=True)
        shutil.copy(segment, log / SEGMENT)
        (target / "history.json").write_text(json.dumps(said, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
