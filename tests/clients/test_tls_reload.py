"""A running node reads its certificate again after SIGHUP, after a change of the file, and after a
change of a dynamic config."""

from __future__ import annotations

import signal
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from quorate.cli.main import main
from quorate.cli.nodes.cluster_dir import free_ports
from quorate.quorum.rpc.tls.issuing import Issued
from tests.certificates import certificate, files
from tests.clients.cluster import quorate, run_quorate, wait_for

pytestmark = [pytest.mark.clients, pytest.mark.timeout(60)]
CLUSTER_ID = "fMCL8kv1SWm87L_Md-I2hg"
FIRST = certificate("CN=node")
PREFIX = "listener.name.ssl."
LOCATION = PREFIX + "ssl.keystore.location"


def served(port: int) -> str:
    """Return the certificate that the node shows. A node that starts closes connections."""
    try:
        return ssl.get_server_certificate(("127.0.0.1", port), timeout=5)
    except OSError:
        return ""


def text(issued: Issued) -> str:
    return issued.certificate_pem.decode()


@dataclass(slots=True)
class Node:
    """One node with the listeners SSL and PLAINTEXT, and its log."""

    keystore: Path
    config: Path
    log: Path
    tls_port: int
    plain_port: int

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        """Run the node until the end of the block, in which it ends by SIGTERM."""
        self.log.write_bytes(b"")
        with self.log.open("wb") as errors:
            process = subprocess.Popen(quorate("server", str(self.config)), stderr=errors)
        try:
            wait_for(lambda: served(self.tls_port) != "", "the node serves clients")
            yield process
            process.terminate()
            assert process.wait(20) == 0
        finally:
            process.kill()
            process.wait()

    def serves(self, issued: Issued) -> None:
        """Wait until the node shows this certificate."""
        wait_for(lambda: served(self.tls_port) == text(issued), "the certificate is served")

    def configs(self, *arguments: str) -> Result:
        """Run `quorate configs` for the node in this process."""
        at = ("--bootstrap-server", f"127.0.0.1:{self.plain_port}")
        entity = ("--entity-type", "brokers", "--entity-name", "1")
        return CliRunner().invoke(main, ["configs", *at, *entity, *arguments])

    def set(self, path: Path) -> Result:
        """Set the keystore of the listener SSL."""
        return self.configs("--alter", "--add-config", f"{LOCATION}={path}")


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """A formatted node whose file has the certificate `FIRST`."""
    keystore = files(tmp_path / "node", FIRST).keystore
    clients, plain, nodes, controller = free_ports(4)
    config = tmp_path / "server.properties"
    config.write_text(
        f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=SSL://127.0.0.1:{clients},PLAINTEXT://127.0.0.1:{plain},REPLICATION://127.0.0.1:{nodes},CONTROLLER://127.0.0.1:{controller}
log.dirs={tmp_path}/data
ssl.keystore.type=PEM
ssl.keystore.location={keystore}
"""
    )
    formatted = run_quorate("storage", "format", "--config", str(config), "-t", CLUSTER_ID)
    assert formatted.returncode == 0, formatted.stderr
    return Node(keystore, config, tmp_path / "log", clients, plain)


def test_sighup_and_a_changed_file(node: Node) -> None:
    second = certificate("CN=node")
    with node.running() as process:
        node.serves(FIRST)
        process.send_signal(signal.SIGHUP)
        uses = "listener SSL uses the certificate of 'CN=node', which is valid for"
        wait_for(lambda: uses in node.log.read_text(), "the unchanged certificate is read again")
        fresh = node.keystore.with_suffix(".new")
        fresh.write_bytes(second.keystore_pem)
        fresh.rename(node.keystore)
        node.serves(second)


def test_a_dynamic_keystore_is_checked_used_kept_and_removed(node: Node, tmp_path: Path) -> None:
    second, third = certificate("CN=node"), certificate("CN=node")
    path = files(tmp_path / "second", second).keystore
    with node.running():
        node.serves(FIRST)
        for wrong in (tmp_path / "nowhere", files(tmp_path / "x", certificate("CN=x")).keystore):
            refused = node.set(wrong)
            assert refused.exit_code == 1 and "listener SSL: " in refused.output, refused.output
        assert node.set(path).exit_code == 0
        node.serves(second)
        path.write_bytes(third.keystore_pem)
        assert node.set(path).exit_code == 0
        node.serves(third)
        key = f"{PREFIX}ssl.truststore.certificates=[{text(second)}]"
        added = node.configs("--alter", "--add-config", key + f",{PREFIX}ssl.truststore.type=PEM")
        assert added.exit_code == 0, added.output
        shown = node.configs("--describe").output
        assert f"{LOCATION}={path} sensitive=false" in shown
        assert f"{PREFIX}ssl.truststore.certificates=null sensitive=true" in shown
        assert "BEGIN CERTIFICATE" not in shown
    with node.running():
        assert served(node.tls_port) == text(third), "no client sees the certificate of the file"
        assert node.configs("--alter", "--delete-config", LOCATION).exit_code == 0
        node.serves(FIRST)
