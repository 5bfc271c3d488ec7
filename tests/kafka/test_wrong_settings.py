"""Kafka's own client with each wrong security setting of tests/clients/wrong_settings.py: it fails
soon, with a message."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.test_sasl import PLAIN, SCRAM
from tests.clients.wrong_settings import ROWS, Refusing, Wrong, refusing_node
from tests.kafka.tools import kafka, missing

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]
BOUND_S = 30.0
"""The time in which the tool must end. It tries for 6 s."""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Refusing]:
    if reason := missing():
        pytest.skip(reason)
    with refusing_node(tmp_path_factory.mktemp("wrong")) as found:
        yield found


def client_file(node: Refusing, row: Wrong) -> str:
    """Return the properties of the client."""
    lines = [
        f"security.protocol={row.used_protocol}",
        "default.api.timeout.ms=6000",
        "request.timeout.ms=5000",
    ]
    if "SSL" in row.used_protocol:
        lines += [
            "ssl.truststore.type=PEM",
            f"ssl.truststore.location={node.authorities[row.trusts]}",
        ]
        if row.own is not None:
            own = node.certificates[row.own].keystore
            lines += ["ssl.keystore.type=PEM", f"ssl.keystore.location={own}"]
    if "SASL" in row.used_protocol:
        module = PLAIN if row.mechanism == "PLAIN" else SCRAM
        login = f'{module} username="{row.user}" password="{row.password}";'
        lines += [f"sasl.mechanism={row.mechanism}", f"sasl.jaas.config={login}"]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_kafkas_tool_fails_soon_with_a_message(node: Refusing, tmp_path: Path, row: Wrong) -> None:
    file = tmp_path / "client.properties"
    file.write_text(client_file(node, row))
    at = ("--bootstrap-server", node.bootstrap(row.listener), "--command-config", str(file))
    begin_s = time.monotonic()
    ended = kafka("topics", *at, "--list")
    assert time.monotonic() - begin_s < BOUND_S
    assert ended.code == 1
    assert any(line.startswith("Error while executing topic command : ") for line in ended.lines)
    assert row.password not in "".join(ended.lines) + ended.errors
    assert node.lines(row.log)
