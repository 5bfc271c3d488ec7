"""The nodes of compose.yaml and of the systemd unit run, on ports of this machine."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from tests.clients.cluster import wait_for
from tests.deployment import files
from tests.deployment.addresses import Addresses
from tests.deployment.machines import Machine, run, status

pytestmark = pytest.mark.clients
CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
READY_S = 60.0
STOP_S = 60.0


class Containers(Addresses):
    """Directories of this machine in place of all containers."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = root

    def arguments(self, node: files.Node) -> list[str]:
        """Return the arguments of run-node.sh for the node, in a directory of its own."""
        file = self.root / f"{node.service}.properties"
        file.write_text(self.translated(node.service, node.file.read_text()))
        options = [self.translated(node.service, each) for each in node.arguments[1:]]
        data = self.root / node.service
        data.mkdir()
        return [str(file), *options, f"--override=log.dirs={data / 'data'}"]


@contextmanager
def processes(commands: dict[str, list[str]], root: Path) -> Iterator[None]:
    """Run all commands. At the end, stop them cleanly and assert that each ended with status 0."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    running = {}
    for name, command in commands.items():
        with open(root / f"{name}.log", "wb") as log:
            running[name] = subprocess.Popen(
                command, stderr=log, env={"PATH": path, "CLUSTER_ID": CLUSTER_ID}
            )
    try:
        yield
        for process in running.values():
            process.send_signal(signal.SIGTERM)
        assert {name: process.wait(STOP_S) for name, process in running.items()} == dict.fromkeys(
            running, 0
        )
    finally:
        for process in running.values():
            process.kill()
            process.wait()


def is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def wait_until_ready(port: int) -> None:
    wait_for(lambda: is_ready(port), f"the node at {port} is ready", READY_S)


def exchange(bootstrap: str) -> None:
    """Write a record with acks=all, and read it."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    producer.produce("first", b"hello")
    assert producer.flush(30) == 0
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "g", "auto.offset.reset": "earliest"}
    )
    try:
        consumer.subscribe(["first"])
        messages = consumer.consume(1, timeout=30)
        assert [message.value() for message in messages] == [b"hello"]
    finally:
        consumer.close()


@pytest.mark.long
def test_the_nodes_of_compose_serve_a_client(tmp_path: Path) -> None:
    machine = Containers(tmp_path)
    commands = {
        node.service: [str(files.RUN_NODE), *machine.arguments(node)]
        for node in files.compose_nodes()
    }
    with processes(commands, tmp_path):
        for number in (1, 2, 3):
            wait_until_ready(machine.port(f"broker-{number}", "9094"))
        exchange(f"127.0.0.1:{machine.port('broker-1', '19092')}")


def run_the_unit(tmp_path: Path, *wrapper: str) -> None:
    """Run a combined node alone by the unit's command line, behind a wrapper, and use it."""
    machine = Containers(tmp_path)
    arguments = machine.arguments(files.Node("node-1.example.com", ("combined.properties",)))
    file, directory = arguments[0], arguments[1].partition("log.dirs=")[2]
    text = re.sub(r",2@.*", "", Path(file).read_text()).replace("/var/lib/quorate/data", directory)
    text = re.sub(r"(factor|replicas)=\d", r"\1=1", text)
    Path(file).write_text(text)
    command, subcommand, path = files.unit_command("combined")
    assert (Path(command).name, subcommand) == ("quorate", "server")
    assert path == "/etc/quorate/combined.properties"
    quorate = str(Path(sys.executable).with_name("quorate"))
    formatted = [quorate, "storage", "format", "--cluster-id", CLUSTER_ID, "--config", file]
    subprocess.run(formatted, check=True, capture_output=True)
    with processes({"node": [*wrapper, quorate, subcommand, file]}, tmp_path):
        wait_until_ready(machine.port("node-1.example.com", "9094"))
        exchange(f"127.0.0.1:{machine.port('node-1.example.com', '9092')}")


def test_the_unit_runs_a_combined_node(tmp_path: Path) -> None:
    run_the_unit(tmp_path)


def permitted_calls() -> set[str]:
    """Return the system calls that the unit's filters permit."""
    permitted: set[str] = set()
    for line in re.findall(r"^SystemCallFilter=(.+)$", files.UNIT, re.MULTILINE):
        named = set().union(*(calls_of(each) for each in line.lstrip("~").split()))
        permitted = permitted - named if line.startswith("~") else permitted | named
    return permitted


def calls_of(group: str) -> set[str]:
    """Return the system calls of a group, and of the groups in it."""
    command = ("systemd-analyze", "syscall-filter", "--no-pager", group)
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    names = [each.strip() for each in shown.splitlines()[1:]]
    calls = {each for each in names if each and not each.startswith(("#", "@"))}
    return calls.union(*(calls_of(each) for each in names if each.startswith("@")))


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
def test_the_unit_permits_the_system_calls_of_a_node(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    run_the_unit(tmp_path, "strace", "-D", "-f", "-qq", "-o", str(trace))
    calls = re.findall(r"^\d+ +([a-z]\w+)\(", trace.read_text(), re.MULTILINE)
    assert {"openat", "fdatasync", "accept4"} & set(calls)
    assert set(calls) - permitted_calls() == set()
    writable = re.search(r"PROT_WRITE\|PROT_EXEC", trace.read_text())
    assert writable is None, "MemoryDenyWriteExecute= would end the node"


@pytest.mark.long
def test_three_machines_run_combined_nodes(tmp_path: Path) -> None:
    addresses = Addresses()
    machines = [Machine(tmp_path, addresses, "combined", number) for number in (1, 2, 3)]
    try:
        for each in machines:
            each.format()
            each.start()
        for each in machines:
            each.wait_until_ready()
        code, text = status(machines[0].bootstrap)
        assert code == 0
        assert "3 of 3 voters answer" in text
        exchange(machines[0].bootstrap)
        described = run("topics", "--bootstrap-server", machines[0].bootstrap, "--describe").stdout
        assert described.count("ReplicationFactor: 3\t") == 2, "the topic, and the group's offsets"
        for each in machines:
            each.stop()
    finally:
        for each in machines:
            each.end()
