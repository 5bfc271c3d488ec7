"""No output of a command, of a page or of HTTP holds a secret of the metadata log.

The log holds a SCRAM credential and a password config, whose bytes contain a canary. Each output is
searched for the canary as text, in base 64 and in hexadecimal digits.
"""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import pytest
from click.testing import CliRunner

from quorate.cli.main import main
from quorate.config.dynamic_broker_keys import SCRAM_SECRET
from quorate.quorum.ids import Uuid
from quorate.quorum.log.batches.batch import build_value_batch
from quorate.quorum.metadata.framing import encode_record
from quorate.quorum.metadata.records import (
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from quorate.quorum.metadata.scram_records import UserScramCredentialRecord
from quorate.quorum.watch.changes import Asked, lines
from tests.unit.analytics.logs import START_MS, write_segment

CANARY = b"canary-canary"
FORMS = (CANARY.decode(), b64encode(CANARY).decode()[:-4], CANARY.hex())
TOPIC = Uuid(b"0123456789abcdef")
RECORDS: list[MetadataRecord] = [
    RegisterBrokerRecord(broker_id=1, incarnation_id=TOPIC, broker_epoch=0, end_points=()),
    TopicRecord(name="orders", topic_id=TOPIC),
    PartitionRecord(partition_id=0, topic_id=TOPIC, replicas=(1,), isr=(1,), leader=1),
    ConfigRecord(resource_type=2, resource_name="orders", name="newer.key", value=CANARY.decode()),
    ConfigRecord(
        resource_type=4, resource_name="1", name="ssl.key.password", value=CANARY.decode()
    ),
    UserScramCredentialRecord(
        name="alice",
        mechanism=1,
        salt=CANARY,
        stored_key=CANARY,
        server_key=CANARY,
        iterations=4096,
    ),
    *(
        ConfigRecord(resource_type=4, resource_name="", name=name, value=CANARY.decode())
        for name in (SCRAM_SECRET, "ssl.keystore.password", "listener.name.a.ssl.key.password")
    ),
]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    write_segment(tmp_path, 0, secret_batch(0))
    return tmp_path


def secret_batch(base_offset: int) -> bytes:
    values = [encode_record(each) for each in RECORDS]
    return bytes(
        build_value_batch(values, base_offset=base_offset, leader_epoch=1, timestamp_ms=START_MS)
    )


def is_hidden(text: str) -> bool:
    return not any(form in text for form in FORMS)


@pytest.mark.parametrize(
    "command",
    [
        "history at DIR",
        "history at DIR --format json",
        "history diff DIR 0 8",
        "history diff DIR 0 8 --format json",
        "history explain DIR --topic orders",
        "history explain DIR --broker 1",
        "history explain DIR --broker 1 --format json",
        "metadata-shell --snapshot LOG tree /image",
        "metadata-shell --snapshot LOG --format json tree /image",
        "dump-log --cluster-metadata-decoder --files LOG",
        "dump-log --cluster-metadata-decoder --format json --files LOG",
    ],
)
def test_a_command_hides_secrets(directory: Path, command: str) -> None:
    (log,) = directory.rglob("*.log")
    words = [{"DIR": str(directory), "LOG": str(log)}.get(each, each) for each in command.split()]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert is_hidden(done.output)
    if "--files" in words or "--snapshot" in words:
        shown = CliRunner().invoke(main, [words[0], "--show-secrets", *words[1:]])
        assert not is_hidden(shown.output), "who asks for the secrets sees them"


def test_http_hides_secrets() -> None:
    asked = Asked(offset=None, limit=100, wait_ms=0, types=None, causes=None)
    text = "".join(line for _, line in lines(secret_batch(0), 0, asked))
    assert "alice" in text
    assert is_hidden(text)


def test_the_rows_of_tables_hide_secrets(directory: Path) -> None:
    pytest.importorskip("pyarrow", reason="analytics needs `pip install 'quorate[spark]'`")
    from tests.unit.analytics.test_rows import rows_of

    rows = rows_of(directory)
    values = [row["value"] for row in rows if row["type"] == "CONFIG_RECORD"]
    assert values.count("[hidden]") == 5
    assert is_hidden(str(rows))
