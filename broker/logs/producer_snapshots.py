"""Where a partition's producer state comes from at the start: Kafka's `<offset>.snapshot` files and
the log behind them.

A snapshot holds each producer's last batches as of an offset, with a CRC. It only shortens the
scan: a damaged, missing or too new one is passed over.

Kafka writes one entry per producer, for its last batch, but only where a segment begins or the
broker stopped cleanly. Ours are taken at any time, so all batches that are kept are written, the
last one last: it is the one that Kafka believes. With the last alone, a producer whose retries
begin further back would be told that it is out of order.
"""

from __future__ import annotations

import struct

from crc32c import crc32c

from quorate.broker.partition.producer_state import Producer, ProducerStates, SentBatch
from quorate.quorum.log import checkpoints
from quorate.quorum.log.names import PRODUCER_SNAPSHOT_SUFFIX, offset_of, segment_file
from quorate.quorum.seams import Disk

_HEAD = struct.Struct(">hIi")  # version, CRC of what follows it, number of producers
_CRC_FROM = 6
_PRODUCER = struct.Struct(">qhiqiqiq")
_VERSION = 1
_NO_COORDINATOR = -1
_NO_TRANSACTION = -1
_SEQUENCES = 2**31


def encode(states: ProducerStates) -> bytes:
    entries = [
        _PRODUCER.pack(
            producer_id,
            producer.epoch,
            sent.last_sequence,
            sent.last_offset,
            sent.last_offset - sent.first_offset,
            producer.last_timestamp_ms,
            _NO_COORDINATOR,
            _NO_TRANSACTION,
        )
        for producer_id, producer in states.producers.items()
        for sent in producer.batches or (_NO_BATCH,)
    ]
    body = b"".join((struct.pack(">i", len(entries)), *entries))
    return _HEAD.pack(_VERSION, crc32c(body), len(entries)) + body[4:]


_NO_BATCH = SentBatch(-1, -1, -1, -1, -1)
_NOBODY = encode(ProducerStates())


def decode(content: bytes) -> ProducerStates | None:
    """None when this is no whole snapshot."""
    if len(content) < _HEAD.size:
        return None
    version, crc, count = _HEAD.unpack_from(content)
    whole = len(content) == _HEAD.size + count * _PRODUCER.size
    if version != _VERSION or not whole or crc32c(content[_CRC_FROM:]) != crc:
        return None
    states = ProducerStates()
    for index in range(count):
        producer_id, epoch, last_sequence, last_offset, delta, timestamp_ms, _, _ = (
            _PRODUCER.unpack_from(content, _HEAD.size + index * _PRODUCER.size)
        )
        producer = states.producers.setdefault(producer_id, Producer(epoch))
        producer.last_timestamp_ms = timestamp_ms
        if last_sequence >= 0:
            first_sequence = (last_sequence - delta) % _SEQUENCES
            producer.batches.append(
                SentBatch(
                    first_sequence, last_sequence, last_offset - delta, last_offset, timestamp_ms
                )
            )
    return states


def write_snapshot(disk: Disk, directory: str, offset: int, content: bytes) -> None:
    """Blocks. Older snapshots go when the new one is in place. One without producers is not written
    over another of that offset: of the many logs that nothing happens to, most have none."""
    found = list_snapshots(disk, directory)
    if content == _NOBODY and offset in found:
        return
    checkpoints.replace(disk, snapshot_path(directory, offset), content)
    for older in found:
        if older != offset:
            disk.remove(snapshot_path(directory, older))


def remove_snapshots_above(disk: Disk, directory: str, end_offset: int) -> None:
    """What the log grows to from here on is another history, durably."""
    above = [offset for offset in list_snapshots(disk, directory) if offset > end_offset]
    for offset in above:
        disk.remove(snapshot_path(directory, offset))
    if above:
        disk.sync_dir(directory)


def list_snapshots(disk: Disk, directory: str) -> list[int]:
    return [
        offset
        for name in disk.list(directory)
        if name.endswith(PRODUCER_SNAPSHOT_SUFFIX) and (offset := offset_of(name)) is not None
    ]


def snapshot_path(directory: str, offset: int) -> str:
    return segment_file(directory, offset, PRODUCER_SNAPSHOT_SUFFIX)
