"""The warning about a port for nodes that a secured node leaves open."""

from __future__ import annotations

import logging

import pytest

from quorate.config.listeners import PLAINTEXT, SSL, Listener, Listeners
from quorate.quorum.node.listening import warn_if_exposed


@pytest.mark.parametrize(
    ("host", "protocols", "warns"),
    [
        ("10.0.0.5", {"CLIENTS": SSL, "NODES": PLAINTEXT}, True),
        ("", {"CLIENTS": SSL, "NODES": PLAINTEXT}, True),
        ("0.0.0.0", {"CLIENTS": SSL, "NODES": PLAINTEXT}, True),
        ("node-1.example", {"CLIENTS": SSL, "NODES": PLAINTEXT}, True),
        ("127.0.0.1", {"CLIENTS": SSL, "NODES": PLAINTEXT}, False),
        ("::1", {"CLIENTS": SSL, "NODES": PLAINTEXT}, False),
        ("localhost", {"CLIENTS": SSL, "NODES": PLAINTEXT}, False),
        ("10.0.0.5", {"CLIENTS": SSL, "NODES": SSL}, False),
        ("10.0.0.5", {"CLIENTS": PLAINTEXT, "NODES": PLAINTEXT}, False),
    ],
)
def test_an_open_port_for_nodes(
    host: str, protocols: dict[str, str], warns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        warn_if_exposed(Listener("NODES", host, 9094), Listeners(protocols=protocols))
    assert [each for each in caplog.messages if "can act as a node" in each] == caplog.messages
    assert bool(caplog.messages) == warns
