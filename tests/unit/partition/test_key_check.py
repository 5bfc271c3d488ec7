"""Records without a key are refused by compacted topics, with Kafka's texts."""

from __future__ import annotations

import pytest

from quorate.broker.partition import key_check, validation
from quorate.broker.partition.key_check import (
    KEYS_CHECKED,
    KeylessRecords,
    checked_keys,
)
from quorate.broker.partition.settings import PartitionSettings
from quorate.broker.partition.validation import (
    LONG_BYTES,
    LONG_RECORDS,
    takes_long,
    validate_client_batch,
)
from quorate.quorum.incremental_work import finished
from quorate.quorum.log.batches.batch import assemble, build_batch, read_header
from quorate.quorum.log.batches.compression import Codec
from quorate.quorum.log.batches.record import Record
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from quorate.quorum.seams import Buffer

COMPACTED = PartitionSettings(compacted=True, max_message_bytes=1 << 24)
NOW = 1_000


def records(*keys: Buffer | None, codec: Codec = Codec.NONE) -> bytearray:
    """Return a batch with these keys. Timestamps and offsets take varints of several bytes."""
    made = [
        Record(number, NOW - 200 * (number % 3), key, b"v" * (number % 200))
        for number, key in enumerate(keys)
    ]
    made[0] = made[0]._replace(timestamp_ms=NOW)
    return build_batch(made, leader_epoch=0, codec=codec)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.LZ4])
def test_each_record_without_a_key_is_named(codec: Codec) -> None:
    keys = [None if number in (3, 150, 4_999) else b"k%d" % number for number in range(5_000)]
    validate_client_batch(records(*(key or b"k" for key in keys), codec=codec), COMPACTED, NOW)
    with pytest.raises(KeylessRecords) as caught:
        validate_client_batch(records(*keys, codec=codec), COMPACTED, NOW)
    assert caught.value.code is ErrorCode.INVALID_RECORD
    assert caught.value.indexes == [3, 150, 4_999]


def test_an_empty_key_is_a_key() -> None:
    validate_client_batch(records(b"", b"k", b""), COMPACTED, NOW)


def test_the_texts_are_kafkas() -> None:
    each = "Compacted topic cannot accept message without key in topic partition t-0"
    text, record_text = KeylessRecords([0, 2, 4, 6], 4).texts("t-0")
    assert record_text == each
    assert text == (
        "One or more records have been rejected due to 4 record errors in total, and only showing "
        f"the first three errors at most: [RecordError(batchIndex=0, message='{each}'), "
        f"RecordError(batchIndex=2, message='{each}'), RecordError(batchIndex=4, message='{each}')]"
    )


def test_the_response_names_a_bounded_number_of_records() -> None:
    with pytest.raises(KeylessRecords) as caught:
        validate_client_batch(records(*[None] * 3_000), COMPACTED, NOW)
    assert caught.value.count == 3_000
    assert len(caught.value.indexes) == key_check.MAX_RECORD_ERRORS


def test_a_batch_whose_keys_are_not_all_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log cleaner would remove a keyless record that was acknowledged."""
    monkeypatch.setattr(key_check, "KEYS_CHECKED", 10)
    validate_client_batch(records(*[b"k"] * 10), COMPACTED, NOW)
    with pytest.raises(KafkaError, match="at most"):
        validate_client_batch(records(*[b"k"] * 11), COMPACTED, NOW)
    assert KEYS_CHECKED > 16_384


def test_damaged_records_are_refused() -> None:
    batch = records(b"k", b"k")
    header = read_header(batch)
    for payload in (batch[61:-1], batch[61:] + b"\0", b"\x01" + batch[62:]):
        with pytest.raises(KafkaError) as caught:
            validate_client_batch(assemble(payload, header), COMPACTED, NOW)
        assert caught.value.code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_only_a_batch_whose_records_are_all_read_takes_long(codec: Codec) -> None:
    """So a client cannot hide a long check in a request that is small or declares few records."""
    many = records(*[b"k"] * (LONG_RECORDS + 1), codec=codec)
    assert takes_long(many, COMPACTED)
    assert not takes_long(many, PartitionSettings(max_message_bytes=1 << 24))
    few = records(*[b"k"] * 100, codec=codec)
    assert not takes_long(few, COMPACTED)
    large = build_batch([Record(0, NOW, b"k", bytes(LONG_BYTES))], leader_epoch=0, codec=codec)
    assert takes_long(large, COMPACTED) == (codec is not Codec.NONE)
    assert not takes_long(large[:40], COMPACTED)
    assert not takes_long(large[:61], COMPACTED)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
@pytest.mark.parametrize("keyless", [(), (0, 5_000)])
def test_keys_that_were_checked_in_steps_are_not_read_again(
    codec: Codec, keyless: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [None if number in keyless else b"k" for number in range(10_000)]
    data = records(*keys, codec=codec)
    found = finished(checked_keys(data))
    assert len(list(checked_keys(data))) == 3, "after the payload, and after each 4,096 records"
    monkeypatch.setattr(validation, "check_keys", lambda *_, **__: pytest.fail("read again"))
    if keyless:
        with pytest.raises(KeylessRecords) as caught:
            validate_client_batch(data, COMPACTED, NOW, keys=found)
        assert caught.value.indexes == list(keyless)
    else:
        assert validate_client_batch(data, COMPACTED, NOW, keys=found).record_count == 10_000


def test_a_batch_with_two_faults_gets_the_error_of_the_first_check() -> None:
    data = records(None, b"k")
    data[-1] ^= 1
    found = finished(checked_keys(data))
    assert found.error is not None
    with pytest.raises(KafkaError) as caught:
        validate_client_batch(data, COMPACTED, NOW, keys=found)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    assert finished(checked_keys(data[:20])).error is not None
