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
from quorate.quorum.log.batch import batches
from quorate.quorum.log.errors import CorruptLog
from quorate.quorum.log.log import Log
from quorate.quorum.log.names import PRODUCER_SNAPSHOT_SUFFIX, offset_of, segment_file
from quorate.quorum.seams import Disk
from quorate.quorum.steps import Steps, finished

_HEAD = struct.Struct(">hIi")  # version, CRC of what follows it, number of producers
_CRC_FROM = 6
_PRODUCER = struct.Struct(">qhiqiqiq")
_VERSION = 1
_NO_COORDINATOR = -1
_NO_TRANSACTION = -1
_SCAN_BYTES = 1 << 20
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


def load_producers(disk: Disk, log: Log) -> ProducerStates:
    """From the newest snapshot that the log still reaches, and the batches after it. Blocks, some
    seconds for each gigabyte of them."""
    states, offset = _newest(disk, log) or (ProducerStates(), log.start_offset)
    return finished(_rebuilt(states, log, offset))


def snapshotted_producers(disk: Disk, log: Log) -> Steps[ProducerStates | None]:
    """The same, in steps, if there is such a snapshot. A log that was flushed has one, unless it
    was cut below it: then all of it is read when a producer comes."""
    newest = _newest(disk, log)
    if newest is None:
        return None
    try:
        return (yield from _rebuilt(newest[0], log, newest[1]))
    except CorruptLog:
        return None  # found again, and judged, when somebody reads there


def _newest(disk: Disk, log: Log) -> tuple[ProducerStates, int] | None:
    """The newest snapshot that the log still reaches, and where it ends."""
    for offset in reversed(_snapshots(disk, log.directory)):
        if log.start_offset <= offset <= log.end_offset:
            content = checkpoints.read_small(disk, _path(log.directory, offset))
            states = decode(content or b"")
            if states is not None:
                return states, offset
    return None


def _rebuilt(states: ProducerStates, log: Log, offset: int) -> Steps[ProducerStates]:
    while offset < log.end_offset:
        data = log.read(offset, _SCAN_BYTES)
        headers = [header for _, header in batches(data, verify=False)]
        # The first batch may begin before `offset`.
        states.rebuild(header for header in headers if header.base_offset >= offset)
        offset = headers[-1].next_offset
        yield
    return states


def write_snapshot(disk: Disk, directory: str, offset: int, content: bytes) -> None:
    """Blocks. Older snapshots go when the new one is in place. One without producers is not written
    over another of that offset: of the many logs that nothing happens to, most have none."""
    found = _snapshots(disk, directory)
    if content == _NOBODY and offset in found:
        return
    checkpoints.replace(disk, _path(directory, offset), content)
    for older in found:
        if older != offset:
            disk.remove(_path(directory, older))


def remove_snapshots_above(disk: Disk, directory: str, end_offset: int) -> None:
    """What the log grows to from here on is another history, durably."""
    above = [offset for offset in _snapshots(disk, directory) if offset > end_offset]
    for offset in above:
        disk.remove(_path(directory, offset))
    if above:
        disk.sync_dir(directory)


def _snapshots(disk: Disk, directory: str) -> list[int]:
    return [
        offset
        for name in disk.list(directory)
        if name.endswith(PRODUCER_SNAPSHOT_SUFFIX) and (offset := offset_of(name)) is not None
    ]


def _path(directory: str, offset: int) -> str:
    return segment_file(directory, offset, PRODUCER_SNAPSHOT_SUFFIX)
