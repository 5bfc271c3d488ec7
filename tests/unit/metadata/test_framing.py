"""The frames of metadata records: versions, unknown tags, and damaged bytes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.causes import Cause, describe
from quorate.quorum.metadata.errors import MalformedRecord, MetadataError, UnknownRecord
from quorate.quorum.metadata.framing import (
    REPLAYABLE_TYPES,
    decode_record,
    decode_versioned,
    encode_record,
    read_head,
    written_version,
)
from quorate.quorum.metadata.json_form import json_form
from quorate.quorum.metadata.json_text import json_text
from quorate.quorum.metadata.records import (
    BrokerRegistrationChangeRecord,
    ClientQuotaRecord,
    ConfigRecord,
    Endpoint,
    FeatureRange,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    QuotaEntity,
    RegisterBrokerRecord,
)
from quorate.quorum.metadata.scram_records import UserScramCredentialRecord
from quorate.quorum.metadata.unsupported_records import RemoveDelegationTokenRecord

TOPIC = Uuid(b"0123456789abcdef")
BROKER = RegisterBrokerRecord(
    broker_id=4,
    incarnation_id=TOPIC,
    broker_epoch=17,
    end_points=(Endpoint(name="PLAINTEXT", host="localhost", port=65_000),),
    features=(
        FeatureRange(name="metadata.version", min_supported_version=7, max_supported_version=27),
    ),
    rack=None,
    log_dirs=(TOPIC,),
    cause=Cause.REGISTERED,
)
CHANGE = PartitionChangeRecord(
    partition_id=3, topic_id=TOPIC, isr=(1, 2), leader=2, cause=Cause.SESSION_EXPIRED
)
EXAMPLES: list[MetadataRecord] = [
    BROKER,
    CHANGE,
    ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value=None),
    NoOpRecord(),
]


@pytest.mark.parametrize("record", EXAMPLES, ids=lambda record: type(record).__name__)
def test_a_record_comes_back(record: MetadataRecord) -> None:
    assert decode_record(encode_record(record)) == record
    assert decode_record(memoryview(bytearray(encode_record(record)))) == record


def test_partition_records_take_version_2_only_for_elr() -> None:
    """Brokers before 4.0-IV1 refuse version 2 (KIP-966), so it is written only if it is needed."""
    elr = PartitionChangeRecord(partition_id=0, topic_id=TOPIC, eligible_leader_replicas=())
    whole = PartitionRecord(partition_id=0, topic_id=TOPIC, last_known_elr=(3,))
    assert [read_head(encode_record(record))[2] for record in (CHANGE, elr, whole)] == [1, 2, 2]
    assert decode_record(encode_record(elr)) == elr
    assert decode_record(encode_record(whole)) == whole


def test_unknown_tags_are_skipped() -> None:
    """A tagged field of a newer version does not stop this one (KIP-482)."""
    plain = BrokerRegistrationChangeRecord(broker_id=4, broker_epoch=17)
    frame = encode_record(plain)
    assert frame.endswith(b"\x00"), "no tagged fields"
    tagged = frame[:-1] + b"\x02" + b"\x63\x02\xca\xfe" + b"\xa7\x46\x01\x00"
    assert decode_record(tagged) == plain


def test_the_cause_is_a_tag_that_kafka_skips() -> None:
    frame = encode_record(CHANGE)
    assert b"\xa8\x46" in frame, "tag 9000"
    assert frame.endswith(b"\x10session-expired")


@pytest.mark.parametrize(
    ("frame", "named"),
    [
        (b"\x01\xe7\x07\x00", "record type 999 version 0"),
        (b"\x01\x02\x05" + bytes(20), "TOPIC_RECORD version 5"),
        (b"\x01\x05\x03" + bytes(20), "PARTITION_CHANGE_RECORD version 3"),
    ],
)
def test_newer_records_are_refused_by_name(frame: bytes, named: str) -> None:
    with pytest.raises(UnknownRecord, match=named):
        decode_record(frame)


SCRAM = UserScramCredentialRecord(
    name="x", mechanism=1, salt=b"salt", stored_key=b"\0", server_key=b"\xff", iterations=4096
)
QUOTA = ClientQuotaRecord(
    entity=(QuotaEntity(entity_type="user", entity_name=None),), key="k", value=1.5, remove=False
)


def test_foreign_records_are_for_tools_and_stop_a_node() -> None:
    token = RemoveDelegationTokenRecord(token_id="t")
    frame = encode_record(token)
    assert decode_versioned(frame) == (token, 0)
    with pytest.raises(UnknownRecord, match="by a feature that Quorate does not have"):
        decode_record(frame)


def test_scram_credentials_have_kafkas_form() -> None:
    frame = encode_record(SCRAM)
    assert frame.hex() == "010b000278010573616c74020002ff0000100000"
    assert decode_record(frame) == SCRAM
    assert json_form(SCRAM, 0)["serverKey"] == "/w=="


def test_client_quotas_have_kafkas_form() -> None:
    frame = encode_record(QUOTA)
    assert frame.hex() == "010e000205757365720000026b3ff80000000000000000"
    assert decode_record(frame) == QUOTA
    assert json_text(QUOTA, 0) == (
        '{"entity":[{"entityType":"user","entityName":null}],"key":"k","value":1.5,"remove":false}'
    )


def test_registrations_of_kafka_4_3_are_read_by_tools_only() -> None:
    """KIP-1066 adds a tag. An older version cannot know whether the tag matters to replay."""
    frame = bytearray(encode_record(BROKER))
    frame[2] = 4
    assert decode_versioned(frame) == (BROKER, 4)
    with pytest.raises(UnknownRecord, match="REGISTER_BROKER_RECORD version 4"):
        decode_record(frame)


@pytest.mark.parametrize("record", EXAMPLES, ids=lambda record: type(record).__name__)
def test_json_as_text_is_the_json(record: MetadataRecord) -> None:
    version = written_version(record)
    assert json_text(record, version) == json.dumps(
        json_form(record, version), separators=(",", ":")
    )


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\x01",
        b"\x01\x05",
        b"\x02\x14\x00\x00",
        encode_record(BROKER)[:-1],
        encode_record(CHANGE) + b"\x00",
        b"\x01\x04\x00\x02\xff\xff\xff\xff\x07",
    ],
)
def test_bytes_that_are_no_record(frame: bytes) -> None:
    with pytest.raises(MalformedRecord):
        decode_record(frame)


@settings(max_examples=200)
@given(st.binary(max_size=60), st.sampled_from(sorted(REPLAYABLE_TYPES)), st.integers(0, 3))
def test_any_bytes_are_a_record_or_a_metadata_error(body: bytes, key: int, version: int) -> None:
    try:
        record = decode_record(bytes((1, key, version)) + body)
    except MetadataError:
        return
    assert decode_record(encode_record(record, version)) == record


def test_causes_have_a_line_each() -> None:
    assert all(cause.doc.endswith(".") for cause in Cause)
    assert describe("session-expired") == Cause.SESSION_EXPIRED.doc
    assert "not known" in describe("made-up")
    assert f"{Cause.ISR_EXPAND}" == "isr-expand"
