"""Small batches whose records name their own place, and ways to append and read them."""

from __future__ import annotations

from quorate.quorum.log.batches.batch import batches, build_value_batch, records_of
from quorate.quorum.log.log import Log
from quorate.quorum.log.segments.file_removal import remove_segments

Entry = tuple[int, bytes]
"""(leader epoch, value) of one record."""


def batch(offset: int, epoch: int, values: list[bytes], *, timestamp_ms: int = 1_000) -> bytes:
    return bytes(
        build_value_batch(
            values, base_offset=offset, leader_epoch=epoch, timestamp_ms=timestamp_ms + offset
        )
    )


def append(log: Log, epoch: int, *values: bytes, wall_ms: int = 0) -> None:
    log.append(batch(log.end_offset, epoch, list(values)), wall_ms=wall_ms)


def delete_expired(log: Log, *, high_watermark: int, wall_ms: int) -> int:
    """Apply retention and remove the files immediately. Return the number of removed segments."""
    expired = log.take_expired(high_watermark=high_watermark, wall_ms=wall_ms)
    remove_segments(log.disk, expired, log.settings.archive_directory)
    return len(expired)


def entries(log: Log, *, max_bytes: int = 10_000, end: int | None = None) -> list[Entry]:
    """Return all records from the log start, read as a follower reads: checked and in order."""
    found: list[Entry] = []
    offset = log.start_offset
    while data := log.read(offset, max_bytes, end=end):
        for position, header in batches(data):
            assert header.base_offset == offset, (header, offset)
            for record in records_of(data, position, header):
                assert record.offset == offset
                assert record.value is not None
                found.append((header.leader_epoch, bytes(record.value)))
                offset += 1
    return found
