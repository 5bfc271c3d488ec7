"""Every wrong security setting of a client, as a table, and the node that refuses them.

The node is one process with a listener for each protocol. `test_wrong_settings.py` tries each row
with the clients of Python, and tests/kafka/test_wrong_settings.py with Kafka's tools.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from quorate.cli.nodes.cluster_dir import free_ports
from tests.certificates import ALICE, Files, authority, certificate, files
from tests.clients.cluster import quorate, run_quorate, wait_for
from tests.clients.test_sasl import PLAIN

PROTOCOLS = {
    "OPEN": "PLAINTEXT",
    "TLS": "SSL",
    "MUTUAL": "SSL",
    "ELSEWHERE": "SSL",
    "LOGIN": "SASL_PLAINTEXT",
    "LOGIN_TLS": "SASL_SSL",
}
"""The listeners for clients. MUTUAL demands certificates, and the certificate of ELSEWHERE is for
another host."""
USER, PASSWORD, WRONG_PASSWORD = "alice", "pencil", "crayon"
CLUSTER_ID = "fMCL8kv1SWm87L_Md-I2hg"


@dataclass(frozen=True, slots=True)
class Wrong:
    """One wrong setting of a client that is right otherwise.

    `protocol` is that of the client, by default the listener's. `own` is its certificate, `trusts`
    the authority that it trusts. `log` matches the node's line about it."""

    name: str
    listener: str
    log: str
    protocol: str = ""
    own: str | None = "alice"
    trusts: str = "right"
    mechanism: str = "PLAIN"
    user: str = USER
    password: str = PASSWORD

    @property
    def used_protocol(self) -> str:
        """Return the protocol that the client uses."""
        return self.protocol or PROTOCOLS[self.listener]


HANDSHAKE = r"TLS handshake of .* with listener {} failed: "
ROWS = (
    Wrong(
        "another authority is trusted",
        "TLS",
        HANDSHAKE.format("TLS") + "the client does not (trust|accept) this node's certificate",
        trusts="other",
    ),
    Wrong(
        "the host name is another",
        "ELSEWHERE",
        HANDSHAKE.format("ELSEWHERE") + "the client (does not accept|closed the connection)",
    ),
    Wrong(
        "the certificate has expired",
        "MUTUAL",
        HANDSHAKE.format("MUTUAL") + ".*certificate is refused: certificate has expired",
        own="expired",
    ),
    Wrong(
        "there is no certificate",
        "MUTUAL",
        HANDSHAKE.format("MUTUAL") + "the client has sent no certificate",
        own=None,
    ),
    Wrong(
        "an unknown authority has issued the certificate",
        "MUTUAL",
        HANDSHAKE.format("MUTUAL") + ".*certificate is refused: (unable|self)",
        own="stranger",
    ),
    Wrong(
        "PLAINTEXT at a port with TLS",
        "TLS",
        HANDSHAKE.format("TLS") + "the client does not begin a TLS handshake",
        protocol="PLAINTEXT",
    ),
    Wrong(
        "TLS at a port without",
        "OPEN",
        "closing the link .* does it use security.protocol=SSL on a",
        protocol="SSL",
    ),
    Wrong(
        "the password is wrong",
        "LOGIN",
        "failed to authenticate as 'alice' by PLAIN: the user or the password",
        password=WRONG_PASSWORD,
    ),
    Wrong(
        "the user is unknown",
        "LOGIN_TLS",
        "failed to authenticate as 'mallory' by PLAIN: the user or the password",
        user="mallory",
    ),
    Wrong(
        "the mechanism is not enabled",
        "LOGIN",
        "the mechanism 'SCRAM-SHA-256' is not enabled",
        mechanism="SCRAM-SHA-256",
    ),
    Wrong(
        "SASL at a port without",
        "OPEN",
        "sends a SaslHandshake on a listener without SASL",
        protocol="SASL_PLAINTEXT",
    ),
    Wrong(
        "no SASL at a port with it",
        "LOGIN",
        "a request before its authentication .security.protocol=PLAINTEXT",
        protocol="PLAINTEXT",
    ),
)


@dataclass(frozen=True, slots=True)
class Refusing:
    """A running node, the certificates of its clients, and its log."""

    ports: dict[str, int]
    certificates: dict[str, Files]
    authorities: dict[str, Path]
    log: Path

    def bootstrap(self, listener: str) -> str:
        return f"127.0.0.1:{self.ports[listener]}"

    def lines(self, pattern: str) -> list[str]:
        """Return the lines of the node's log that contain this pattern."""
        return [line for line in self.log.read_text().splitlines() if re.search(pattern, line)]


@contextmanager
def refusing_node(root: Path) -> Iterator[Refusing]:
    """Run the node until the end of the block."""
    root.mkdir(parents=True, exist_ok=True)
    ports = dict(zip(PROTOCOLS, free_ports(len(PROTOCOLS)), strict=True))
    (controller,) = free_ports(1)
    certificates = {
        "node": files(root / "node", certificate("CN=node")),
        "elsewhere": files(root / "elsewhere", certificate("CN=node", hosts=["elsewhere"])),
        "alice": files(root / "alice", certificate(ALICE)),
        "expired": files(root / "expired", certificate(ALICE, expired=True)),
        "stranger": files(root / "stranger", certificate(ALICE, by=authority("stranger"))),
    }
    other = root / "other.pem"
    other.write_bytes(authority("stranger").certificate_pem)
    listeners = {**ports, "CONTROLLER": controller}
    protocols = {**PROTOCOLS, "CONTROLLER": "PLAINTEXT", "REPLICATION": "PLAINTEXT"}
    login = f'{PLAIN} user_{USER}="{PASSWORD}";'
    settings = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in listeners.items()),
        "listener.security.protocol.map": ",".join(map(":".join, protocols.items())),
        "log.dirs": root / "data",
        "default.replication.factor": 1,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": certificates["node"].keystore,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": certificates["node"].ca,
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.elsewhere.ssl.keystore.location": certificates["elsewhere"].keystore,
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.login.plain.sasl.jaas.config": login,
        "listener.name.login_tls.plain.sasl.jaas.config": login,
    }
    config, log = root / "server.properties", root / "log"
    config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    formatted = run_quorate("storage", "format", "--config", str(config), "-t", CLUSTER_ID)
    assert formatted.returncode == 0, formatted.stderr
    authorities = {"right": certificates["node"].ca, "other": other}
    with log.open("wb") as errors:
        process = subprocess.Popen(quorate("server", str(config)), stderr=errors)
    try:
        found = Refusing(ports, certificates, authorities, log)
        wait_for(lambda: found.lines("unfenced|running|ready|RUNNING") != [], "the node serves")
        yield found
    finally:
        process.kill()
        process.wait()
