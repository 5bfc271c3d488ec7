"""Apache Kafka's tools over mutual TLS, with keystores of Java's formats."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.test_tls import Secured, java, secured
from tests.kafka.tools import Ended, kafka, missing

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]
POST_HANDSHAKE = "Failed to process post-handshake messages"
"""The text of Java's client about an alert that follows its own part of a TLS 1.3 handshake."""


@pytest.fixture(scope="module")
def mutual(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    if reason := missing():
        pytest.skip(reason)
    yield from secured(tmp_path_factory.mktemp("mutual"), "required")


def run(of: Secured, tmp: Path, name: str, text: str, *arguments: str, stdin: str = "") -> Ended:
    file = tmp / "client.properties"
    file.write_text(text)
    option = {"console-producer": "--producer.config", "console-consumer": "--consumer.config"}
    options = ("--bootstrap-server", of.bootstrap, option.get(name, "--command-config"), str(file))
    return kafka(name, *options, *arguments, stdin=stdin)


def test_javas_tools_create_produce_and_consume(mutual: Secured, tmp_path: Path) -> None:
    text = java(mutual, tmp_path)
    create = ("--create", "--topic", "of-java", "--partitions", "1", "--replication-factor", "1")
    made = run(mutual, tmp_path, "topics", text, *create)
    assert made.lines == ["Created topic of-java."], made.errors
    lines = "".join(f"{'x' * 1000}{number}\n" for number in range(300))
    sent = run(mutual, tmp_path, "console-producer", text, "--topic", "of-java", stdin=lines)
    assert sent.code == 0, sent.errors
    read = run(
        mutual, tmp_path, "console-consumer", text,
        "--topic", "of-java", "--from-beginning", "--max-messages", "300",
    )  # fmt: skip
    assert "".join(f"{line}\n" for line in read.lines) == lines, read.errors


def test_javas_tools_name_what_is_wrong(mutual: Secured, tmp_path: Path) -> None:
    """A client without a certificate gets the alert that Kafka's brokers send, too."""
    text = (
        "security.protocol=SSL\nssl.truststore.type=PEM\n"
        f"ssl.truststore.location={mutual.alice.ca}\ndefault.api.timeout.ms=5000\n"
        "request.timeout.ms=4000\n"
    )
    refused = run(mutual, tmp_path, "topics", text, "--list")
    assert refused.code == 1
    assert refused.lines == [f"Error while executing topic command : {POST_HANDSHAKE}"]
