"""The bytes of a snapshot in Kafka's format (KIP-630).

They are identical on every node for the same (offset, epoch). A snapshot consists of:

- a control batch with the header and, in a dynamic quorum, kraft.version and the voters (KIP-853)
- batches of metadata records
- a control batch with the footer

Offsets start at 0. Every batch has the epoch and the timestamp of the last record that the snapshot
contains. A file without a footer, or with bytes after it, is not a snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.batches.batch import (
    CONTROL,
    HEADER_BYTES,
    BatchHeader,
    batches,
    build_batch,
    build_value_batch,
    read_header,
    records_of,
)
from quorate.quorum.log.batches.record import Record
from quorate.quorum.log.files.errors import LogError
from quorate.quorum.metadata.errors import MetadataError
from quorate.quorum.metadata.framing import decode_record, encode_record
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.replay import replay
from quorate.quorum.metadata.snapshot import snapshot_records
from quorate.quorum.protocol.codec import DecodeError
from quorate.quorum.raft.control_records import (
    ControlRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    decode_control,
    encode_control,
)
from quorate.quorum.raft.voter_history import QuorumVoters, voters_of

BATCH_RECORDS = 500
"""The maximum number of records in one batch of a written snapshot."""
MAX_BATCH_BYTES = 16 << 20
"""The maximum size of one batch of a snapshot that is read."""
BEFORE_ANY = EpochOffset(-1, -1)
"""The position of an image before any record."""


class CorruptSnapshot(MetadataError):
    """The file is incomplete or damaged, has another epoch than its name says, or holds a record
    that this version cannot replay."""


@dataclass(frozen=True, slots=True)
class SnapshotContents:
    """The image and the voter set of a snapshot."""

    image: MetadataImage
    quorum: QuorumVoters


def write_snapshot(image: MetadataImage, quorum: QuorumVoters) -> Iterator[bytearray]:
    """Yield the snapshot batch by batch, so that the caller can do other work in between."""
    wall_ms = image.last_timestamp_ms
    head: list[ControlRecord] = [
        SnapshotHeaderRecord(version=0, last_contained_log_timestamp=wall_ms),
        *quorum.records(),
    ]
    epoch = image.last.epoch
    yield _control(0, epoch, wall_ms, head)
    offset = len(head)
    records = snapshot_records(image)
    while values := [encode_record(each) for each in islice(records, BATCH_RECORDS)]:
        yield build_value_batch(
            values, base_offset=offset, leader_epoch=epoch, timestamp_ms=wall_ms
        )
        offset += len(values)
    yield _control(offset, epoch, wall_ms, [SnapshotFooterRecord(version=0)])


def read_snapshot(snapshot: EpochOffset, chunks: Iterable[bytes]) -> SnapshotContents:
    """Return the contents of the snapshot, without pauses.

    `snapshot` is (epoch, end offset) from the name of the file. The end offset becomes that of the
    image; the bytes do not contain it. Raise CorruptSnapshot, or the error of reading a chunk.
    """
    (contents,) = filter(None, reading(snapshot, chunks))
    return contents


def reading(snapshot: EpochOffset, chunks: Iterable[bytes]) -> Iterator[SnapshotContents | None]:
    """Read the snapshot batch by batch, so that the caller can do other work in between.

    Yield None after each batch of records, and the contents at the end. The chunks may have any
    size. Errors and `snapshot` are those of `read_snapshot`.
    """
    found = _Reading(snapshot)
    try:
        for batch, header in _batches(chunks):
            found.take(batch, header)
            if not header.is_control:
                yield None
        yield found.end()
    except (LogError, MetadataError, DecodeError) as error:
        raise CorruptSnapshot(f"snapshot {snapshot.offset}-{snapshot.epoch}: {error}") from error


class _Reading:
    def __init__(self, snapshot: EpochOffset) -> None:
        self._last = EpochOffset(snapshot.epoch, snapshot.offset - 1)
        self._next_offset = 0
        self._image = MetadataImage()
        self._control: list[ControlRecord] = []

    def take(self, batch: bytes, header: BatchHeader) -> None:
        if header.base_offset != self._next_offset:
            raise MetadataError(
                f"a batch at offset {header.base_offset} follows offset {self._next_offset - 1}"
            )
        if header.leader_epoch != self._last.epoch:
            raise MetadataError(f"a batch of epoch {header.leader_epoch}: another snapshot's")
        if self._ended:
            raise MetadataError("a batch follows the snapshot footer")
        self._next_offset = header.next_offset
        records = records_of(batch, 0, header)
        if header.is_control:
            self._control += _control_records(records)
            if not self._control or not isinstance(self._control[0], SnapshotHeaderRecord):
                raise MetadataError("it does not begin with a snapshot header")
        elif not self._control:
            raise MetadataError("it does not begin with a snapshot header")
        else:
            decoded = [decode_record(each.value) for each in records if each.value is not None]
            self._image, _ = replay(self._image, decoded, BEFORE_ANY, -1)

    @property
    def _ended(self) -> bool:
        return bool(self._control) and isinstance(self._control[-1], SnapshotFooterRecord)

    def end(self) -> SnapshotContents:
        if not self._ended:
            raise MetadataError("it ends without a footer")
        head = self._control[0]
        if not isinstance(head, SnapshotHeaderRecord):
            raise MetadataError("it does not begin with a snapshot header")
        image = self._image._replace(
            last=self._last, last_timestamp_ms=head.last_contained_log_timestamp
        )
        return SnapshotContents(image, voters_of(self._control))


def _batches(chunks: Iterable[bytes]) -> Iterator[tuple[bytes, BatchHeader]]:
    """Yield whole batches from chunks of any size, with verified CRCs."""
    rest = b""
    for chunk in chunks:
        rest += chunk
        position = 0
        while len(rest) - position >= HEADER_BYTES:
            size = read_header(rest, position).size_bytes
            if size > MAX_BATCH_BYTES:
                raise MetadataError(f"a batch of {size} bytes is more than {MAX_BATCH_BYTES}")
            if len(rest) - position < size:
                break
            batch = rest[position : position + size]
            yield from ((batch, header) for _, header in batches(batch))
            position += size
        rest = rest[position:]
    if rest:
        raise MetadataError(f"its last {len(rest)} bytes are not a whole batch")


def _control(offset: int, epoch: int, wall_ms: int, records: Iterable[ControlRecord]) -> bytearray:
    rows = [
        Record(offset + number, wall_ms, *encode_control(record))
        for number, record in enumerate(records)
    ]
    return build_batch(rows, leader_epoch=epoch, flags=CONTROL)


def _control_records(records: Iterable[Record]) -> Iterator[ControlRecord]:
    for record in records:
        control = decode_control(record.key, record.value)
        if control is not None:
            yield control
