"""Apache Kafka as the peer: three controllers and three brokers in six JVMs, with Kafka's defaults.

Needs Java, and the jars of a Kafka release in the directory that QUORATE_KAFKA_LIBS names.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.librdkafka import brokers_seen

LIBS_VARIABLE = "QUORATE_KAFKA_LIBS"
JVM_OPTIONS = (
    *("-Xmx1G", "-Xms1G", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"),
    "-Djava.awt.headless=true",
)
"""The options of Kafka's own start script."""
CONTROLLERS = (1, 2, 3)
BROKERS = (4, 5, 6)
READY_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 30.0
CLUSTER_ID = "QuorateBenchmarkPeer-w"


def libs() -> Path | None:
    """Return the directory with Kafka's jars, or None if Kafka cannot run here."""
    named = os.environ.get(LIBS_VARIABLE)
    if not named or shutil.which("java") is None:
        return None
    return Path(named) if any(Path(named).glob("kafka-server-[0-9]*.jar")) else None


class KafkaCluster:
    """A cluster of six JVMs in a temporary directory."""

    name = "kafka"

    def __init__(self, jars: Path) -> None:
        self.launched_s = 0.0
        self._classpath = f"{jars}/*"
        self._root = Path(tempfile.mkdtemp(prefix="kafka-bench-"))
        self._ports = dict(zip((*CONTROLLERS, *BROKERS), free_ports(6), strict=True))
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self.broker_settings: dict[str, str] = {}
        """Further properties of all brokers, which `start` writes."""
        self.more_listeners: dict[int, str] = {}
        """Further listeners of each broker, "NAME://host:port"."""

    @property
    def bootstrap(self) -> str:
        """Return the addresses of the brokers, "host:port,..."."""
        return self._addresses(BROKERS)

    @property
    def controllers(self) -> str:
        """Return the addresses of the controllers, "host:port,..."."""
        return self._addresses(CONTROLLERS)

    @property
    def broker_ids(self) -> Sequence[int]:
        """Return the ids of the brokers."""
        return BROKERS

    def start(self) -> None:
        """Format the directories, start the nodes, and wait until every broker is visible.

        `launched_s` does not include the formatting, which runs six more JVMs one after another.
        Raise RuntimeError if the cluster does not start in time.
        """
        for node_id in self._ports:
            self._write_properties(node_id)
            self._java("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", node_id).wait()
        self.launched_s = time.monotonic()
        for node_id in self._ports:
            self.restart(node_id)
        while brokers_seen(self.bootstrap) < len(BROKERS):
            if time.monotonic() - self.launched_s > READY_TIMEOUT_S:
                raise RuntimeError(f"Apache Kafka did not start: see {self._root}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop all nodes and delete their directories."""
        for node_ids in (BROKERS, CONTROLLERS):
            stopping = [self._processes[each] for each in node_ids if each in self._processes]
            for process in stopping:
                process.terminate()
            for process in stopping:
                try:
                    process.wait(STOP_TIMEOUT_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        shutil.rmtree(self._root, ignore_errors=True)

    def kill(self, node_id: int) -> float:
        """Send SIGKILL to a node, and return the monotonic time in seconds.

        The call returns after the process has ended, and the time is that of the signal."""
        process = self._processes[node_id]
        process.send_signal(signal.SIGKILL)
        moment_s = time.monotonic()
        process.wait()
        return moment_s

    def restart(self, node_id: int) -> None:
        """Start a node, and do not wait for it."""
        self._processes[node_id] = self._java("kafka.Kafka", node_id)

    def pids(self) -> Sequence[int]:
        """Return the process ids of the nodes, including those that were killed."""
        return [process.pid for process in self._processes.values()]

    def broker_directories(self) -> Sequence[Path]:
        """Return the log directories of the brokers."""
        return [self._root / str(node_id) / "data" for node_id in BROKERS]

    def _addresses(self, node_ids: Sequence[int]) -> str:
        return ",".join(f"127.0.0.1:{self._ports[each]}" for each in node_ids)

    def _properties(self, node_id: int) -> Path:
        return self._root / str(node_id) / "server.properties"

    def _java(self, *arguments: str | int) -> subprocess.Popen[bytes]:
        """Start a Java program. An integer argument is a node id and is replaced by its .properties
        file.
        """
        named = [str(self._properties(a)) if isinstance(a, int) else a for a in arguments]
        with open(self._root / "java.log", "ab") as log:
            return subprocess.Popen(
                ("java", *JVM_OPTIONS, "-cp", self._classpath, *named), stdout=log, stderr=log
            )

    def _write_properties(self, node_id: int) -> None:
        controller = node_id in CONTROLLERS
        voters = ",".join(f"{each}@127.0.0.1:{self._ports[each]}" for each in CONTROLLERS)
        listener = "CONTROLLER" if controller else "PLAINTEXT"
        more = self.more_listeners.get(node_id, "")
        values = {
            "process.roles": "controller" if controller else "broker",
            "node.id": node_id,
            "controller.quorum.voters": voters,
            "controller.listener.names": "CONTROLLER",
            "listeners": f"{listener}://127.0.0.1:{self._ports[node_id]}{more and ',' + more}",
            "log.dirs": self._root / str(node_id) / "data",
            "default.replication.factor": 3,
            "min.insync.replicas": 2,
            **({} if controller else self.broker_settings),
        }
        file = self._properties(node_id)
        file.parent.mkdir(parents=True)
        file.write_text("".join(f"{name}={value}\n" for name, value in values.items()))


def free_ports(count: int) -> list[int]:
    """Return ports on the loopback interface that are free now."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in sockets]
