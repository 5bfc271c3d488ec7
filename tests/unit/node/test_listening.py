"""The warning about a port for nodes without TLS that other machines can reach."""

from __future__ import annotations

import logging

import pytest

from quorate.config.loader import load
from quorate.quorum.node.listening import warn_if_exposed

PLAIN = "PLAINTEXT:PLAINTEXT,REPLICATION:PLAINTEXT,CONTROLLER:PLAINTEXT"
SECURE = "PLAINTEXT:PLAINTEXT,REPLICATION:SSL,CONTROLLER:SSL"


@pytest.mark.parametrize(
    ("host", "protocols", "mode", "text"),
    [
        ("10.0.0.5", PLAIN, "require", "is a listener for nodes without TLS"),
        ("", PLAIN, "require", "is a listener for nodes without TLS"),
        ("0.0.0.0", PLAIN, "require", "is a listener for nodes without TLS"),
        ("node-1.example", PLAIN, "require", "is a listener for nodes without TLS"),
        ("127.0.0.1", PLAIN, "require", ""),
        ("[::1]", PLAIN, "require", ""),
        ("localhost", PLAIN, "require", ""),
        ("10.0.0.5", SECURE, "require", ""),
        ("10.0.0.5", SECURE, "dial", "still accepts nodes without TLS"),
        ("10.0.0.5", SECURE, "accept", "still accepts nodes without TLS"),
        ("localhost", SECURE, "accept", ""),
    ],
)
def test_an_open_port_for_nodes(
    host: str, protocols: str, mode: str, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {
        "process.roles": "broker",
        "node.id": "4",
        "controller.quorum.voters": "1@localhost:9093",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://localhost:9092,REPLICATION://{host}:9094",
        "listener.security.protocol.map": protocols,
        "quorate.node.tls": mode,
    }
    config = load(None, environment={}, overrides=settings, hostname="here")
    assert config.listeners.replication is not None
    with caplog.at_level(logging.WARNING):
        warn_if_exposed(config.listeners.replication, config)
    assert [each for each in caplog.messages if "can act as a node" in each] == caplog.messages
    assert len(caplog.messages) == bool(text)
    assert text in "".join(caplog.messages)
