"""Dynamic configs of TLS: Apache Kafka 4.1.1 and Quorate answer the same changes alike, and Kafka's
ConfigCommand replaces the certificate of a running node of either program."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from quorate.cli.nodes.cluster_dir import free_ports
from quorate.quorum.protocol.schemas.configs import DescribeConfigsRequest, DescribeConfigsResource
from quorate.quorum.rpc.tls.issuing import Issued
from tests.certificates import Files, authority, certificate, files
from tests.clients.cluster import wait_for
from tests.golden.nodes import KAFKA, QUORATE, Program
from tests.kafka.one_node import OneNode
from tests.kafka.test_broker_configs import altered
from tests.kafka.tools import missing

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]
PREFIX = "listener.name.external."
LOCATION = PREFIX + "ssl.keystore.location"


class TlsNode(OneNode):
    """One process of `program` with the listener EXTERNAL, which has TLS."""

    def __init__(self, root: Path, program: Program, *settings: str) -> None:
        super().__init__(root, program, *settings)
        (self.tls_port,) = free_ports(1)

    def listeners(self) -> str:
        implied = "" if self.program is KAFKA else ",REPLICATION:PLAINTEXT"
        return (
            f"listeners=PLAINTEXT://127.0.0.1:{self.port},EXTERNAL://127.0.0.1:{self.tls_port},"
            f"CONTROLLER://127.0.0.1:{self.controller_port}\n"
            "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,EXTERNAL:SSL,CONTROLLER:PLAINTEXT"
            f"{implied}\n"
            "controller.listener.names=CONTROLLER\n"
        )

    def shown(self) -> str:
        """Return the certificate that clients receive."""
        return ssl.get_server_certificate(("127.0.0.1", self.tls_port), timeout=5)


@dataclass(frozen=True, slots=True)
class Both:
    nodes: dict[str, TlsNode]
    first: Files
    second: Files
    other: Files


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    if reason := missing():
        pytest.skip(reason)
    root = tmp_path_factory.mktemp("dynamic-tls")
    first, second, other = (
        files(root / name, certificate(f"CN={subject}"))
        for name, subject in (("first", "node"), ("second", "node"), ("other", "other"))
    )
    settings = (
        "ssl.keystore.type=PEM",
        "ssl.truststore.type=PEM",
        f"{LOCATION}={first.keystore}",
        f"{PREFIX}ssl.truststore.location={first.ca}",
    )
    with (
        TlsNode(root / "kafka", KAFKA, *settings).running() as theirs,
        TlsNode(root / "quorate", QUORATE, *settings).running() as ours,
    ):
        assert isinstance(theirs, TlsNode) and isinstance(ours, TlsNode)
        yield Both({"kafka": theirs, "quorate": ours}, first, second, other)


def values(both: Both) -> list[tuple[str, str, str | None, int]]:
    """Return changes: the broker, the key, the value, and the error of both programs."""
    ca = authority("another").certificate_pem.decode()
    key = both.second.key.read_text()
    return [
        ("1", LOCATION, str(both.second.keystore), 0),
        ("1", LOCATION, str(both.first.keystore), 0),
        ("1", LOCATION, None, 0),
        ("", LOCATION, str(both.second.keystore), 42),
        ("2", LOCATION, str(both.second.keystore), 42),
        ("1", "ssl.keystore.location", str(both.second.keystore), 42),
        ("1", LOCATION, "/nowhere", 42),
        ("1", LOCATION, str(both.other.keystore), 42),
        ("1", PREFIX + "ssl.keystore.type", "JKS", 42),
        ("1", PREFIX + "ssl.keystore.type", "CARDS", 42),
        ("1", PREFIX + "ssl.keystore.password", "secret", 42),
        ("1", PREFIX + "ssl.keystore.key", key, 42),
        ("1", PREFIX + "ssl.truststore.location", "/nowhere", 42),
        ("1", PREFIX + "ssl.truststore.location", str(both.second.ca), 0),
        ("1", PREFIX + "ssl.truststore.certificates", ca, 42),
        ("1", PREFIX + "ssl.client.auth", "required", 0),
        ("1", PREFIX + "ssl.enabled.protocols", "TLSv1.3", 0),
        ("", PREFIX + "ssl.client.auth", "required", 42),
    ]


def test_changes_are_refused_alike(both: Both) -> None:
    for side, node in both.nodes.items():
        with closing(node.connect()) as connection:
            for broker, key, value, error in values(both):
                found = altered(connection, broker, (key, value), validate_only=True)
                assert found == error, (side, broker, key, value)


def test_what_would_have_no_effect_is_refused_here(both: Both) -> None:
    """docs/differences.md: Kafka stores these values."""
    for side, expected in (("kafka", 0), ("quorate", 42)):
        with closing(both.nodes[side].connect()) as connection:
            for key, value in (
                ("ssl.client.auth", "required"),
                ("listener.name.plaintext.ssl.keystore.location", str(both.second.keystore)),
                ("listener.name.absent.ssl.keystore.location", str(both.second.keystore)),
                (PREFIX + "ssl.allow.dn.changes", "true"),
                (PREFIX + "ssl.principal.mapping.rules", "DEFAULT"),
            ):
                assert altered(connection, "1", (key, value), validate_only=True) == expected, key


def described(node: TlsNode) -> dict[str, Any]:
    """Return the description of each key of TLS in the file, and of those of the listener."""
    resource = DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=None)
    with closing(node.connect()) as connection:
        request = DescribeConfigsRequest(resources=(resource,), include_synonyms=True)
        answer: Any = connection.ask(request, 4)
    return {
        each.name: (
            each.value,
            each.config_source,
            each.read_only,
            each.is_sensitive,
            each.config_type,
            [(one.name, one.value, one.source) for one in each.synonyms],
        )
        for each in answer.results[0].configs
        if "ssl.keystore" in each.name or "ssl.truststore" in each.name
    }


def states_of(node: TlsNode, both: Both, second: bytes, third: Issued) -> list[dict[str, Any]]:
    """Replace the certificate of a node by Kafka's tool: set it, set it again after a renewal, and
    remove it. Return the descriptions before, in between, and after."""
    first = both.first.certificate.read_text()
    path = both.second.keystore
    states = [described(node)]

    def configs(option: str, text: str) -> None:
        at = ("--bootstrap-server", f"127.0.0.1:{node.port}", "--entity-type", "brokers")
        ended = KAFKA.run("configs", *at, "--entity-name", "1", "--alter", option, text)
        assert ended.code == 0, ended.errors

    def serves(certificate_pem: str) -> None:
        wait_for(lambda: node.shown() == certificate_pem, f"{node.program.name} shows it")

    path.write_bytes(second)
    serves(first)
    configs("--add-config", f"{LOCATION}={path}")
    serves(both.second.certificate.read_text())
    states.append(described(node))
    path.write_bytes(third.keystore_pem)
    configs("--add-config", f"{LOCATION}={path}")
    serves(third.certificate_pem.decode())
    configs("--add-config", f"{PREFIX}ssl.truststore.type=PEM")
    added = PREFIX + "ssl.truststore.type"
    wait_for(lambda: added in described(node), "the type is described")
    states.append(described(node))
    configs("--delete-config", f"{LOCATION},{added}")
    serves(first)
    wait_for(lambda: described(node) == states[0], "the values of the file are described")
    return states


def test_kafkas_tool_replaces_a_certificate_alike(both: Both) -> None:
    second, third = both.second.keystore.read_bytes(), certificate("CN=node")
    theirs, ours = (
        states_of(both.nodes[side], both, second, third) for side in ("kafka", "quorate")
    )
    for expected, found in zip(theirs, ours, strict=True):
        assert found == expected
