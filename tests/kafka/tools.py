"""Apache Kafka 4.1.1's own command line tools, run as they are."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

TOOL_TIMEOUT_S = 60.0
# A tool lives for a second: the fast compiler, the simple collector.
JAVA_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m")
# `quorate NAME` stands for kafka-NAME.sh, which runs this class.
CLASSES = {
    "acls": "org.apache.kafka.tools.AclCommand",
    "topics": "org.apache.kafka.tools.TopicCommand",
    "configs": "kafka.admin.ConfigCommand",
    "metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "cluster": "org.apache.kafka.tools.ClusterTool",
    "storage": "kafka.tools.StorageTool",
    "dump-log": "kafka.tools.DumpLogSegments",
    "console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "metadata-shell": "org.apache.kafka.shell.MetadataShell",
    "features": "org.apache.kafka.tools.FeatureCommand",
    "reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "replica-verification": "org.apache.kafka.tools.ReplicaVerificationTool",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
}


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    lines: list[str]
    errors: str


def missing() -> str:
    """Why the tools cannot be run here; empty when they can."""
    if shutil.which("java") is None:
        return "no java on the PATH"
    if not list(libs().glob("kafka-tools-*.jar")):
        return f"no jars of Apache Kafka in {libs()} (make test-kafka fetches them)"
    return ""


def libs() -> Path:
    return Path(os.environ.get("QUORATE_KAFKA_LIBS", ".kafka/libs")).absolute()


def kafka(name: str, *arguments: str, stdin: str = "") -> Ended:
    command = ["java", *JAVA_OPTIONS, "-cp", f"{libs()}/*", CLASSES[name], *arguments]
    return ended(command, stdin)


def ended(command: list[str], stdin: str = "") -> Ended:
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=TOOL_TIMEOUT_S, check=False
    )
    return Ended(done.returncode, done.stdout.splitlines(), done.stderr)
