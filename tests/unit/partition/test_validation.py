"""The checks of a client's batch (Kafka's LogValidator)."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
from crc32c import crc32c

from quorate.broker.partition.settings import PartitionSettings
from quorate.broker.partition.validation import validate_client_batch
from quorate.quorum.log.batches.batch import CONTROL, LOG_APPEND_TIME, build_batch, read_header
from quorate.quorum.log.batches.record import Record
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from tests.unit.partition.harness import batch, partition, value

NOW = 1_000


def refused(
    data: bytes | bytearray, settings: PartitionSettings | None = None, wall_ms: int = NOW
) -> ErrorCode:
    with pytest.raises(KafkaError) as error:
        validate_client_batch(data, settings or PartitionSettings(), wall_ms)
    return error.value.code


def damaged(change: Callable[[bytearray], None], *, sealed: bool = True) -> bytearray:
    data = batch(3)
    change(data)
    if sealed:
        struct.pack_into(">I", data, 17, crc32c(memoryview(data)[21:]))
    return data


def put(form: str, offset: int, number: int) -> Callable[[bytearray], None]:
    return lambda data: struct.pack_into(form, data, offset, number)


def test_a_good_batch() -> None:
    assert validate_client_batch(batch(3), PartitionSettings(), NOW).record_count == 3


@pytest.mark.parametrize(
    ("data", "code"),
    [
        pytest.param(b"", ErrorCode.INVALID_RECORD, id="nothing"),
        pytest.param(b"x" * 20, ErrorCode.CORRUPT_MESSAGE, id="rubbish"),
        pytest.param(bytes(16), ErrorCode.CORRUPT_MESSAGE, id="no magic"),
        pytest.param(bytes(17), ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, id="magic 0"),
        pytest.param(batch(1)[:-1], ErrorCode.CORRUPT_MESSAGE, id="cut off"),
        pytest.param(batch(1) + batch(1), ErrorCode.INVALID_RECORD, id="two batches"),
        pytest.param(
            damaged(put(">b", 16, 1)), ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, id="magic 1"
        ),
        pytest.param(damaged(put(">i", 57, 2)), ErrorCode.INVALID_RECORD, id="count too low"),
        pytest.param(damaged(put(">i", 23, 7)), ErrorCode.INVALID_RECORD, id="delta too high"),
        pytest.param(
            damaged(put(">h", 21, 6)), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, id="codec 6"
        ),
        pytest.param(damaged(put(">h", 21, CONTROL)), ErrorCode.INVALID_RECORD, id="control"),
        pytest.param(
            damaged(put(">h", 21, LOG_APPEND_TIME)),
            ErrorCode.INVALID_TIMESTAMP,
            id="LogAppendTime",
        ),
        pytest.param(damaged(put(">q", 43, 5)), ErrorCode.INVALID_RECORD, id="id without epoch"),
    ],
)
def test_refused(data: bytes, code: ErrorCode) -> None:
    assert refused(data) is code


def test_a_bit_flip_is_found_before_anything_is_written() -> None:
    leader = partition(1)
    leader.make_leader(value(1, 0, (1,)), now_ms=0)
    data = damaged(put(">b", 70, 0x55), sealed=False)
    with pytest.raises(KafkaError, match="CORRUPT_MESSAGE"):
        leader.append_as_leader(data, 1, now_ms=0, wall_ms=NOW)
    assert leader.log.end_offset == 0
    stamping = PartitionSettings(log_append_time=True)
    assert refused(data, stamping) is ErrorCode.CORRUPT_MESSAGE, "sealing it would hide the damage"


def test_too_large() -> None:
    settings = PartitionSettings(max_message_bytes=len(batch(3)) - 1)
    assert refused(batch(3), settings) is ErrorCode.MESSAGE_TOO_LARGE


def test_timestamps() -> None:
    settings = PartitionSettings(timestamp_after_max_ms=10, timestamp_before_max_ms=10)
    stamped = build_batch([Record(0, 1_000, None, b"v")], leader_epoch=0)
    assert refused(stamped, settings, 989) is ErrorCode.INVALID_TIMESTAMP
    assert refused(stamped, settings, 1011) is ErrorCode.INVALID_TIMESTAMP
    for wall_ms in (990, 1010):
        validate_client_batch(stamped, settings, wall_ms)


def test_log_append_time_is_the_brokers() -> None:
    leader = partition(1, log_append_time=True)
    leader.make_leader(value(1, 0, (1,)), now_ms=0)
    appended = leader.append_as_leader(batch(2), -1, now_ms=0, wall_ms=77)
    assert appended.append_time_ms == 77
    header = read_header(leader.log.read(0, 1 << 20))
    assert (header.max_timestamp_ms, header.is_log_append_time) == (77, True)


def test_compacted_topics_want_keys() -> None:
    settings = PartitionSettings(compacted=True)
    assert refused(batch(2), settings) is ErrorCode.INVALID_RECORD
    keyed = build_batch([Record(0, 1_000, b"k", b"v")], leader_epoch=0)
    validate_client_batch(keyed, settings, NOW)


def test_coordinators_may_write_control_batches() -> None:
    control = build_batch([Record(0, 1_000, b"k", b"v")], leader_epoch=0, flags=CONTROL)
    validate_client_batch(control, PartitionSettings(), NOW, internal=True)
