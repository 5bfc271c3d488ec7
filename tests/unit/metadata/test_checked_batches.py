"""CheckedBatches: records are decoded once between the check and the replay, and only those of the
same bytes are used."""

from __future__ import annotations

import pytest

from quorate.quorum.log.batch import BatchHeader, batches, build_value_batch
from quorate.quorum.metadata import batches as module
from quorate.quorum.metadata.batches import CheckedBatches, metadata_batches
from quorate.quorum.metadata.errors import MetadataError
from quorate.quorum.metadata.framing import encode_record
from quorate.quorum.metadata.records import ConfigRecord

WALL_MS = 1_700_000_000_000


def batch(offset: int, value: str = "v", epoch: int = 1) -> bytes:
    record = ConfigRecord(resource_type=2, resource_name="t", name="k", value=value)
    values = [encode_record(record)]
    return bytes(
        build_value_batch(values, base_offset=offset, leader_epoch=epoch, timestamp_ms=WALL_MS)
    )


def check(checked: CheckedBatches, data: bytes) -> None:
    view = memoryview(data)
    for position, header in batches(view):
        checked.check(view, position, header)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The base offsets of the batches that were decoded."""
    found = []
    real = module.records_in_batch

    def counted(buffer: memoryview, position: int, header: BatchHeader) -> object:
        found.append(header.base_offset)
        return real(buffer, position, header)

    monkeypatch.setattr(module, "records_in_batch", counted)
    return found


def test_a_checked_batch_is_not_decoded_again(decoded: list[int]) -> None:
    checked = CheckedBatches()
    data = batch(0) + batch(1, "w")
    expected = list(metadata_batches(data))
    decoded.clear()
    check(checked, data)
    assert list(checked.batches(data)) == expected
    assert decoded == [0, 1]
    assert list(checked.batches(data)) == expected
    assert decoded == [0, 1, 0, 1], "a replayed batch is not kept"


@pytest.mark.parametrize("other", [batch(0, "w"), batch(0, "v", epoch=2), batch(0, "longer")])
def test_a_batch_that_was_replaced_is_decoded(other: bytes) -> None:
    checked = CheckedBatches()
    check(checked, batch(0))
    assert list(checked.batches(other)) == list(metadata_batches(other))


def test_the_kept_bytes_are_bounded(decoded: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    each_bytes = len(batch(0))
    monkeypatch.setattr(module, "MAX_KEPT_BYTES", 3 * each_bytes)
    checked = CheckedBatches()
    for offset in range(5):
        check(checked, batch(offset))
    check(checked, batch(5, "v" * 3 * each_bytes))
    data = b"".join(batch(offset) for offset in range(5))
    expected = list(metadata_batches(data))
    decoded.clear()
    assert list(checked.batches(data)) == expected
    assert decoded == [0, 1], "the oldest were removed"


def test_a_batch_that_no_node_could_replay_fails_its_check() -> None:
    data = bytes(build_value_batch([b"bad"], base_offset=0, leader_epoch=1, timestamp_ms=WALL_MS))
    with pytest.raises(MetadataError):
        check(CheckedBatches(), data)
