"""Records are shown without their secrets."""

from __future__ import annotations

import pytest

from quorate.config.dynamic_broker_keys import SCRAM_SECRET
from quorate.quorum.log.batches.record import Record
from quorate.quorum.metadata.framing import encode_record
from quorate.quorum.metadata.record_text import metadata_message, text_of
from quorate.quorum.metadata.records import ConfigRecord, MetadataRecord, NoOpRecord
from quorate.quorum.metadata.redaction import redacted
from quorate.quorum.metadata.scram_records import UserScramCredentialRecord

CANARY = "canary"


def config(name: str, resource_type: int = 4) -> ConfigRecord:
    return ConfigRecord(resource_type=resource_type, resource_name="", name=name, value=CANARY)


CREDENTIAL = UserScramCredentialRecord(
    name="u",
    mechanism=1,
    salt=CANARY.encode(),
    stored_key=CANARY.encode(),
    server_key=CANARY.encode(),
    iterations=4096,
)


@pytest.mark.parametrize(
    "record",
    [
        CREDENTIAL,
        config(SCRAM_SECRET),
        config("ssl.keystore.password"),
        config("listener.name.a.plain.sasl.jaas.config"),
        config("a.key.of.a.newer.version", 2),
    ],
)
def test_a_secret_is_hidden(record: MetadataRecord) -> None:
    assert CANARY not in text_of(record, 0)
    assert "Y2FuYXJ5" not in text_of(record, 0), "the same in base 64"
    assert redacted(record) != record


@pytest.mark.parametrize("record", [CREDENTIAL, config(SCRAM_SECRET)])
def test_the_bytes_of_a_newer_version_are_hidden(record: MetadataRecord) -> None:
    known = encode_record(record)
    newer = known[:2] + b"\x7f" + known[3:]
    message, version = metadata_message(Record(0, 0, None, memoryview(newer)))
    assert version == 0x7F
    assert CANARY.encode().hex() in newer.hex()
    assert CANARY.encode().hex() not in text_of(message, version)


@pytest.mark.parametrize(
    "record",
    [
        NoOpRecord(),
        config("log.retention.ms"),
        config("retention.ms", 2),
        config("consumer.session.timeout.ms", 32),
        ConfigRecord(resource_type=4, resource_name="", name=SCRAM_SECRET, value=None),
    ],
)
def test_everything_else_is_shown(record: MetadataRecord) -> None:
    assert redacted(record) is record


def test_the_repr_of_a_credential_hides_it() -> None:
    assert CANARY not in repr(CREDENTIAL)
    assert "'u'" in repr(CREDENTIAL)
