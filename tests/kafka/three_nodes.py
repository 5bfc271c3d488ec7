"""Three brokers of either program, all or some of them controllers, with a nodes.toml for them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from quorate.cli.client.admin import Admin, AdminSettings
from quorate.cli.client.errors import NotReachable
from quorate.cli.nodes.cluster_dir import free_ports
from tests.clients.cluster import tail, wait_for
from tests.golden.nodes import CLUSTER_ID, Program
from tests.kafka import node_process

NODES = (1, 2, 3)
READY_TIMEOUT_S = 120.0
COMMANDS = ("kill", "stop", "pause", "resume", "start")


class ThreeNodes:
    """The processes of `program` in one directory."""

    def __init__(
        self,
        root: Path,
        program: Program,
        config: Mapping[str, object],
        controllers: Sequence[int] = NODES,
    ) -> None:
        self._voters = controllers
        ports = free_ports(6)
        self.ports = dict(zip(NODES, ports[:3], strict=True))
        self._controllers = dict(zip(NODES, ports[3:], strict=True))
        self._root = root
        self._program = program
        self._config = config

    @property
    def bootstrap(self) -> str:
        """Return the addresses of the brokers."""
        return ",".join(f"127.0.0.1:{port}" for port in self.ports.values())

    def start(self) -> None:
        """Format and start all nodes, and wait until each broker is unfenced."""
        for node in NODES:
            file = self._write_properties(node)
            formatted = self._program.run("storage", "format", "-t", CLUSTER_ID, "-c", str(file))
            assert formatted.code == 0, formatted.errors
            command = json.dumps(self._program.node(file))
            (file.parent / "command.json").write_text(command)
            subprocess.run(self._command(node, "start"), check=True)
        wait_for(self.ready, f"all brokers serve\n{self.logs()}", READY_TIMEOUT_S)

    def ready(self) -> bool:
        """Return True if every node answers, and lists all brokers as unfenced."""
        return all(self._lists_all(port) for port in self.ports.values())

    def _lists_all(self, port: int) -> bool:
        admin = Admin(AdminSettings(servers=(("127.0.0.1", port),), timeout_s=1.0))
        try:
            return {each.node_id for each in admin.metadata(()).brokers} == set(NODES)
        except NotReachable:
            return False
        finally:
            admin.close()

    def run(self, node: int, command: str) -> None:
        """Run one of COMMANDS for a node."""
        subprocess.run(self._command(node, command), check=True)

    def metadata_segment(self, node: int) -> Path:
        """Return the first segment of a node's metadata log."""
        return self._root / str(node) / "data/__cluster_metadata-0/00000000000000000000.log"

    def stop(self) -> None:
        """Kill all processes."""
        for node in NODES:
            pid = self.pid(node)
            if pid and node_process.state_of(pid):
                os.kill(pid, signal.SIGKILL)

    def pid(self, node: int) -> int:
        """Return the pid of the last process of a node, or 0."""
        file = self._root / str(node) / "pid"
        return int(file.read_text()) if file.exists() else 0

    def state(self, node: int) -> str:
        """Return the state letter of a node's process, or "" if it has ended."""
        return node_process.state_of(self.pid(node))

    def logs(self) -> str:
        """Return the ends of the nodes' logs."""
        return "\n".join(tail(self._root / str(each) / "node.log") for each in NODES)

    def node_file(self, name: str = "nodes.toml", head: str = "", **instead: list[str]) -> Path:
        """Write a nodes.toml, and return its path. `instead` replaces commands of all nodes."""
        lines = [head]
        for node in NODES:
            lines += [
                "[[nodes]]",
                f"id = {node}",
                'roles = ["broker", "controller"]',
                f'address = "127.0.0.1:{self.ports[node]}"',
            ]
            commands = {each: self._command(node, each) for each in COMMANDS} | instead
            lines += [f"{each} = {json.dumps(argv)}" for each, argv in commands.items()]
        file = self._root / name
        file.write_text("\n".join(lines) + "\n")
        return file

    def _command(self, node: int, name: str) -> list[str]:
        return [sys.executable, node_process.__file__, str(self._root / str(node)), name]

    def _write_properties(self, node: int) -> Path:
        voters = ",".join(f"{each}@127.0.0.1:{self._controllers[each]}" for each in self._voters)
        listeners = [f"PLAINTEXT://127.0.0.1:{self.ports[node]}"]
        if node in self._voters:
            listeners.append(f"CONTROLLER://127.0.0.1:{self._controllers[node]}")
        values = {
            "process.roles": "broker,controller" if node in self._voters else "broker",
            "node.id": node,
            "controller.quorum.voters": voters,
            "controller.listener.names": "CONTROLLER",
            "listeners": ",".join(listeners),
            "log.dirs": self._root / str(node) / "data",
            "auto.create.topics.enable": "false",
            **self._config,
        }
        file = self._root / str(node) / "server.properties"
        file.parent.mkdir(parents=True)
        file.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
        return file


@contextmanager
def three_nodes(
    root: Path,
    program: Program,
    config: Mapping[str, object],
    controllers: Sequence[int] = NODES,
) -> Iterator[ThreeNodes]:
    """Run the cluster for the duration of the block. `controllers` are the nodes that are
    controllers, too."""
    nodes = ThreeNodes(root, program, config, controllers)
    try:
        nodes.start()
        yield nodes
    finally:
        nodes.stop()
