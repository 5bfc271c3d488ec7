"""Two nodes, run by Apache Kafka or by Quorate from the same .properties files.

Node 1 is a controller and a broker, node 2 a broker. The nodes end with the test.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from quorate.cli.client.admin import Admin, AdminSettings
from quorate.cli.client.errors import NotReachable
from quorate.cli.nodes.cluster_dir import free_ports
from tests.clients.cluster import quorate, tail, wait_for
from tests.kafka.tools import CLASSES, JAVA_OPTIONS, Ended, ended, libs

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
BROKERS = (1, 2)
START_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class Program:
    """Apache Kafka 4.1.1 or Quorate: the commands that run a tool or a node."""

    name: str

    def tool(self, tool: str, *arguments: str) -> list[str]:
        if self is QUORATE:
            return quorate(tool, *arguments)
        return ["java", *JAVA_OPTIONS, "-cp", f"{libs()}/*", CLASSES[tool], *arguments]

    def node(self, file: Path) -> list[str]:
        if self is QUORATE:
            return quorate("server", str(file))
        return ["java", *JAVA_OPTIONS, "-cp", f"{libs()}/*", "kafka.Kafka", str(file)]

    def run(self, tool: str, *arguments: str, stdin: str = "") -> Ended:
        return ended(self.tool(tool, *arguments), stdin)


KAFKA, QUORATE = Program("kafka"), Program("quorate")


class TwoNodes:
    """Two processes of `program`: node 1 is controller and broker, node 2 a broker."""

    def __init__(self, root: Path, program: Program) -> None:
        self.program = program
        self.root = root
        self.ports = dict(zip(("controller", 1, 2), free_ports(3), strict=True))
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.ports[1]}"

    @property
    def bootstrap_controllers(self) -> str:
        return f"127.0.0.1:{self.ports['controller']}"

    @property
    def metadata_log(self) -> Path:
        return self.data(1) / "__cluster_metadata-0" / "00000000000000000000.log"

    def data(self, node_id: int) -> Path:
        return self.root / f"data-{node_id}"

    def properties(self, node_id: int) -> Path:
        return self.root / f"node-{node_id}.properties"

    def admin(self) -> Admin:
        return Admin(AdminSettings(servers=(("127.0.0.1", self.ports[1]),), timeout_s=20.0))

    def start(self) -> None:
        self.root.mkdir(parents=True)
        for node_id in BROKERS:
            self._write_properties(node_id)
            file = str(self.properties(node_id))
            formatted = self.program.run("storage", "format", "-t", CLUSTER_ID, "-c", file)
            assert formatted.code == 0, formatted.errors
        for node_id in BROKERS:
            self._start(node_id)
        wait_for(self._ready, "both brokers are there", START_TIMEOUT_S)

    def kill(self, node_id: int) -> None:
        process = self._processes.pop(node_id)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        for process in reversed(self._processes.values()):
            process.terminate()
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def log(self, node_id: int) -> Path:
        return self.root / f"node-{node_id}.out"

    def logs(self) -> str:
        return "\n".join(f"--- node {each}\n{tail(self.log(each))}" for each in BROKERS)

    def _start(self, node_id: int) -> None:
        with open(self.log(node_id), "ab") as log:
            self._processes[node_id] = subprocess.Popen(
                self.program.node(self.properties(node_id)),
                stdout=log,
                stderr=log,
                cwd=self.root,
                env=os.environ,
            )

    def _ready(self) -> bool:
        for node_id, process in self._processes.items():
            assert process.poll() is None, f"node {node_id} ended\n{self.logs()}"
        admin = Admin(AdminSettings(servers=(("127.0.0.1", self.ports[1]),), timeout_s=1.0))
        try:
            return {each.node_id for each in admin.metadata(()).brokers} == set(BROKERS)
        except NotReachable:
            return False
        finally:
            admin.close()

    def _write_properties(self, node_id: int) -> None:
        controller = f"127.0.0.1:{self.ports['controller']}"
        listeners = f"PLAINTEXT://127.0.0.1:{self.ports[node_id]}"
        values = {
            "process.roles": "broker,controller" if node_id == 1 else "broker",
            "node.id": node_id,
            "controller.quorum.voters": f"1@{controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": listeners + (f",CONTROLLER://{controller}" if node_id == 1 else ""),
            "log.dirs": self.data(node_id),
            "offsets.topic.num.partitions": 1,
            "offsets.topic.replication.factor": 1,
            "group.initial.rebalance.delay.ms": 0,
            "auto.create.topics.enable": "false",
        }
        text = "".join(f"{name}={value}\n" for name, value in values.items())
        self.properties(node_id).write_text(text)


@contextmanager
def two_nodes(root: Path, program: Program) -> Iterator[TwoNodes]:
    shutil.rmtree(root, ignore_errors=True)
    nodes = TwoNodes(root, program)
    try:
        nodes.start()
        yield nodes
    finally:
        nodes.stop()
