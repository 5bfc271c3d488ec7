"""The bytes of records in __consumer_offsets, written by hand from Kafka's schemas, and Java's
hashes.
"""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.broker.groups.partition_of import java_hash, partition_of
from quorate.broker.groups.records import (
    GroupKey,
    GroupRecord,
    GroupValue,
    MemberValue,
    OffsetKey,
    OffsetValue,
    decode_record,
    encode_record,
)
from quorate.broker.groups.subscription import subscribed_topics
from quorate.quorum.protocol.varint import DecodeError

KEY = OffsetKey(group="g", topic="t", partition=5)


def test_an_offset_is_written_as_kafka_writes_it() -> None:
    value = OffsetValue(offset=7, leader_epoch=2, metadata="m", commit_timestamp=9)
    assert encode_record(GroupRecord(KEY, value)) == (
        b"\x00\x01" + b"\x00\x01g" + b"\x00\x01t" + b"\x00\x00\x00\x05",
        b"\x00\x03" + bytes(7) + b"\x07" + b"\x00\x00\x00\x02" + b"\x00\x01m" + bytes(7) + b"\x09",
    )


def test_an_offset_that_expires_is_written_in_version_1() -> None:
    value = OffsetValue(offset=7, metadata="", commit_timestamp=9, expire_timestamp=11)
    key, data = encode_record(GroupRecord(KEY, value))
    assert data is not None
    assert data[:2] == b"\x00\x01"
    assert decode_record(key, data) == GroupRecord(KEY, value)


def test_a_group_is_written_as_kafka_writes_it() -> None:
    member = MemberValue(
        member_id="i",
        client_id="c",
        client_host="/h",
        rebalance_timeout=3,
        session_timeout=4,
        subscription=b"s",
        assignment=b"a",
    )
    value = GroupValue(
        protocol_type="consumer",
        generation=2,
        protocol="range",
        leader="i",
        current_state_timestamp=8,
        members=(member,),
    )
    key, data = encode_record(GroupRecord(GroupKey(group="g"), value))
    assert key == b"\x00\x02\x00\x01g"
    assert data == (
        b"\x00\x03\x00\x08consumer\x00\x00\x00\x02\x00\x05range\x00\x01i"
        + bytes(7)
        + b"\x08\x00\x00\x00\x01\x00\x01i\xff\xff\x00\x01c\x00\x02/h"
        + b"\x00\x00\x00\x03\x00\x00\x00\x04\x00\x00\x00\x01s\x00\x00\x00\x01a"
    )
    assert decode_record(key, data) == GroupRecord(GroupKey(group="g"), value)


def test_tombstones_and_the_groups_of_other_protocols() -> None:
    key, value = encode_record(GroupRecord(KEY, None))
    assert value is None
    assert decode_record(key, None) == GroupRecord(KEY, None)
    assert decode_record(b"\x00\x03\x00\x01g", b"\x00\x00") is None


def test_a_value_of_the_future_is_not_guessed() -> None:
    key, _ = encode_record(GroupRecord(KEY, None))
    with pytest.raises(DecodeError, match="v5"):
        decode_record(key, b"\x00\x05" + bytes(40))
    with pytest.raises(DecodeError):
        decode_record(b"\x00", None)


@given(st.binary(max_size=60), st.none() | st.binary(max_size=60))
def test_damaged_records_are_a_decode_error_and_nothing_else(key: bytes, value: bytes) -> None:
    with contextlib.suppress(DecodeError):
        decode_record(b"\x00\x02" + key, value)


@pytest.mark.parametrize(
    ("text", "hashed"),
    [("", 0), ("g", 103), ("hello", 99162322), ("polygenelubricants", -(1 << 31)), ("ä", 228)],
)
def test_java_hashes(text: str, hashed: int) -> None:
    assert java_hash(text) == hashed


def test_partitions_of_groups() -> None:
    """Math.abs of the smallest int is negative. Kafka takes partition 0 for it."""
    assert partition_of("polygenelubricants", 50) == 0
    assert partition_of("hello", 50) == 22
    assert java_hash("\U0001f600") == 31 * 0xD83D + 0xDE00


def test_subscriptions_are_read_as_far_as_version_0() -> None:
    one = b"\x00\x03\x00\x00\x00\x01\x00\x01t" + b"what later versions add"
    two = b"\x00\x00\x00\x00\x00\x02\x00\x01t\x00\x01u"
    assert subscribed_topics([one, two]) == frozenset("tu")
    assert subscribed_topics([one, b"\x00\x00\x00\x00\x00\x02\x00\x01t"]) is None
    assert subscribed_topics([b""]) is None
