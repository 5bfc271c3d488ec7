"""A running node reads its certificate again after SIGHUP, and after a change of the file."""

from __future__ import annotations

import signal
import ssl
import subprocess
from pathlib import Path

import pytest

from quorate.cli.nodes.cluster_dir import free_ports
from quorate.quorum.rpc.tls.issuing import Issued
from tests.certificates import certificate, files
from tests.clients.cluster import quorate, run_quorate, wait_for

pytestmark = [pytest.mark.clients, pytest.mark.timeout(60)]
CLUSTER_ID = "fMCL8kv1SWm87L_Md-I2hg"


def served(port: int) -> str:
    """Return the certificate that the node shows. A node that starts closes connections."""
    try:
        return ssl.get_server_certificate(("127.0.0.1", port), timeout=5)
    except OSError:
        return ""


def text(issued: Issued) -> str:
    return issued.certificate_pem.decode()


def test_sighup_and_a_changed_file(tmp_path: Path) -> None:
    first, second = certificate("CN=node"), certificate("CN=node")
    keystore = files(tmp_path / "node", first).keystore
    clients, nodes, controller = free_ports(3)
    config = tmp_path / "server.properties"
    config.write_text(
        f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=SSL://127.0.0.1:{clients},REPLICATION://127.0.0.1:{nodes},CONTROLLER://127.0.0.1:{controller}
log.dirs={tmp_path}/data
ssl.keystore.type=PEM
ssl.keystore.location={keystore}
"""
    )
    formatted = run_quorate("storage", "format", "--config", str(config), "-t", CLUSTER_ID)
    assert formatted.returncode == 0, formatted.stderr
    log = tmp_path / "log"
    with log.open("wb") as errors:
        node = subprocess.Popen(quorate("server", str(config)), stderr=errors)
    try:
        wait_for(lambda: "listening on SSL://" in log.read_text(), "the port is open")
        wait_for(lambda: served(clients) == text(first), "the first certificate is served")
        node.send_signal(signal.SIGHUP)
        uses = "listener SSL uses the certificate of 'CN=node', which is valid for"
        wait_for(lambda: uses in log.read_text(), "the unchanged certificate is read again")
        fresh = keystore.with_suffix(".new")
        fresh.write_bytes(second.keystore_pem)
        fresh.rename(keystore)
        wait_for(lambda: served(clients) == text(second), "the renewed certificate is served")
        node.terminate()
        assert node.wait(20) == 0
    finally:
        node.kill()
        node.wait()
