"""The snapshot files of producer states, `<offset>.snapshot`, in Kafka's format.

A snapshot holds the last batches of each producer as of an offset, with a CRC. It only shortens the
scan of the log: a damaged or missing snapshot is ignored.

Kafka writes one entry for each producer, for its last batch, and only when a segment begins or the
broker stops cleanly. Here a snapshot is taken at any time, so all kept batches of a producer are
written. The last batch is the last entry, which is the one that Kafka uses. With the last batch
alone, an earlier retry would be rejected as out of order.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from crc32c import crc32c

from quorate.broker.partition.producer_state import Producer, ProducerStates, SentBatch
from quorate.quorum.log.files import checkpoints
from quorate.quorum.log.files.names import PRODUCER_SNAPSHOT_SUFFIX, offset_of, segment_file
from quorate.quorum.seams import Disk

_HEAD = struct.Struct(">hIi")  # version, CRC of what follows it, number of producers
_CRC_FROM = 6
_PRODUCER = struct.Struct(">qhiqiqiq")
_VERSION = 1
_NO_COORDINATOR = -1
_NO_TRANSACTION = -1
_SEQUENCES = 2**31


def encode(states: ProducerStates) -> bytes:
    """Return the content of a snapshot of `states`. Block for a second for very many producers."""
    return joined([rows(*each) for each in states.producers.items()])


def rows(producer_id: int, producer: Producer) -> bytes:
    """Return the entries of one producer."""
    return b"".join(
        [
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
            for sent in producer.batches or (_NO_BATCH,)
        ]
    )


def joined(entries: Iterable[bytes]) -> bytes:
    """Return the content of a snapshot of these entries."""
    body = b"".join(entries)
    count = len(body) // _PRODUCER.size
    checked = struct.pack(">i", count) + body
    return _HEAD.pack(_VERSION, crc32c(checked), count) + body


_NO_BATCH = SentBatch(-1, -1, -1, -1, -1)
_NOBODY = encode(ProducerStates())


def decode(content: bytes) -> ProducerStates | None:
    """Return the states of a snapshot, or None if the content is not a whole snapshot."""
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
    """Write a snapshot durably, then remove all others of the directory. Blocks.

    A snapshot without producers is not written if there is a snapshot of this offset: most idle
    logs have no producers."""
    found = list_snapshots(disk, directory)
    if content == _NOBODY and offset in found:
        return
    checkpoints.replace(disk, snapshot_path(directory, offset), content)
    for older in found:
        if older != offset:
            disk.remove(snapshot_path(directory, older))


def remove_snapshots_above(disk: Disk, directory: str, end_offset: int) -> None:
    """Remove the snapshots above `end_offset` durably. Blocks. After a truncation, new records may
    take the offsets that those snapshots describe."""
    above = [offset for offset in list_snapshots(disk, directory) if offset > end_offset]
    for offset in above:
        disk.remove(snapshot_path(directory, offset))
    if above:
        disk.sync_dir(directory)


def list_snapshots(disk: Disk, directory: str) -> list[int]:
    """Return the offsets of the snapshots in a partition's directory, ascending. Blocks."""
    return [
        offset
        for name in disk.list(directory)
        if name.endswith(PRODUCER_SNAPSHOT_SUFFIX) and (offset := offset_of(name)) is not None
    ]


def snapshot_path(directory: str, offset: int) -> str:
    """Return the path of the snapshot at `offset`."""
    return segment_file(directory, offset, PRODUCER_SNAPSHOT_SUFFIX)
