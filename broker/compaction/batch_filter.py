"""The records and batches that a cleaning keeps (Kafka's RecordFilter).

| item                     | stays                                                               |
|--------------------------|---------------------------------------------------------------------|
| record above the map     | always: the map does not know if a later one has the same key       |
| record with a value      | if the map has no later offset of its key                           |
| tombstone (no value)     | in addition, until the delete horizon of its batch                  |
| record without a key     | never: the topic became compacted after it was written              |
| control batch            | unless `markers.py` discards it and its delete horizon has passed   |
| batch without records    | if it is the last batch of an active producer (KAFKA-5490, 8335),   |
|                          | or the last batch that is written to its segment                    |
| unreadable batch         | byte for byte: its CRC is right, so the producer sent it like this  |

A batch that keeps a tombstone for the first time gets its delete horizon, delete.retention.ms from
now (KIP-534). Consumers that began before have that time to read the tombstone. The horizon is
stored in the batch: bit 6 of the attributes is set, and the base timestamp is the horizon.

The last batch of each written segment stays, even without records. Consecutive segments therefore
join without a gap, and the log end survives a restart (KAFKA-17076).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from quorate.broker.compaction.markers import NoTransactions, Transactions
from quorate.broker.compaction.offset_map import DIGEST_BYTES, NO_OFFSET, OffsetMap, digest_of
from quorate.broker.compaction.record_spans import (
    RECORDS_PER_STEP,
    RecordSpan,
    joined,
    moved,
    payload_to_read,
    spans_of,
    wrong_offset,
)
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.log.batches.batch import (
    CODEC_MASK,
    DELETE_HORIZON,
    BatchHeader,
    assemble,
)
from quorate.quorum.log.batches.compression import Codec, compress
from quorate.quorum.log.batches.record import ONE_BYTE_DELTA_MS
from quorate.quorum.log.files.errors import CorruptBatch
from quorate.quorum.log.segments.index import NO_TIMESTAMP
from quorate.quorum.seams import Buffer

NO_TIMESTAMP_BASE = -1
MAX_HORIZON_MS = 2**63 - 1 - ONE_BYTE_DELTA_MS
"""The latest delete horizon. Its tombstones stay forever. It is a base timestamp, so the decoder of
records needs room for a delta above it."""


@dataclass(slots=True)
class Retention:
    """The facts on which one cleaning decides. `now_ms` is the wall time.

    `last_batches` has the last offset of the newest batch of each active producer id. A batch of
    an unknown producer needs no place, because such a producer may begin with any sequence
    number."""

    offsets: OffsetMap
    now_ms: int
    delete_retention_ms: int
    last_batches: Mapping[int, int] = field(default_factory=dict)
    transactions: Transactions = field(default_factory=NoTransactions)

    def kept(
        self, spans: Iterable[RecordSpan], base_offset: int, *, tombstones: bool
    ) -> list[RecordSpan]:
        """Return the records of a data batch that stay. `tombstones` is True while the delete
        horizon of the batch has not passed."""
        latest_offset, known = self.offsets.latest_offset, self.offsets.known
        stay = []
        for span in spans:
            _, _, _, delta, key, has_value = span
            offset = base_offset + delta
            if offset > latest_offset:
                stay.append(span)
            elif key is not None and (has_value or tombstones):
                digest = bytes(key) if len(key) < DIGEST_BYTES else digest_of(key)
                if offset >= known.get(digest, NO_OFFSET):
                    stay.append(span)
        return stay


def filtered(
    batch: Buffer, header: BatchHeader, retention: Retention, *, last: bool
) -> IncrementalWork[Buffer | None]:
    """Return, in steps, the bytes that stay of one batch, or None if nothing does.

    `batch` has exactly the bytes of `header`, and its CRC was checked. `last` is True for the last
    batch that is written to a segment. If everything stays, the result is `batch` itself."""
    horizon_ms = header.delete_horizon_ms
    held = horizon_ms is None or retention.now_ms < horizon_ms
    discardable = (
        retention.transactions.discards_marker(header, batch)
        if header.is_control
        else retention.transactions.discards_data(header)
    )
    if header.is_control:
        # A marker whose transaction has no data gets a horizon, and stays until it has passed.
        if not discardable:
            return batch
        if horizon_ms is not None and not held:
            return _without_records(header, retention, last=last)
        if horizon_ms is not None:
            return batch
    elif discardable:
        return _without_records(header, retention, last=last)
    if not header.record_count:
        return batch if _keeps_empty(header, retention, last=last) else None
    try:
        payload = payload_to_read(batch, header)
        kept, tombstones = yield from _kept(payload, header, retention, held)
    except CorruptBatch:
        return batch
    if not kept:
        return _without_records(header, retention, last=last)
    if horizon_ms is None and (tombstones or header.is_control):
        horizon_ms = min(MAX_HORIZON_MS, retention.now_ms + retention.delete_retention_ms)
    elif len(kept) == header.record_count:
        return batch
    return (yield from _rebuilt(payload, header, kept, horizon_ms))


def _kept(
    payload: Buffer, header: BatchHeader, retention: Retention, held: bool
) -> IncrementalWork[tuple[list[RecordSpan], bool]]:
    """Return the records that stay, and True if one of them is a tombstone."""
    kept: list[RecordSpan] = []
    base, last, control = header.base_offset, header.last_offset, header.is_control
    before, tombstones = base - 1, False
    for spans in spans_of(payload, header.record_count):
        for span in spans:
            offset = base + span[3]
            if not before < offset <= last:
                raise wrong_offset(header, offset)
            before = offset
        stay = spans if control else retention.kept(spans, base, tombstones=held)
        tombstones = tombstones or not (control or all(has_value for *_, has_value in stay))
        kept += stay
        if len(spans) == RECORDS_PER_STEP:
            yield
    return kept, tombstones


def _keeps_empty(header: BatchHeader, retention: Retention, *, last: bool) -> bool:
    """Return True if a batch without records stays."""
    newest = retention.last_batches.get(header.producer_id) if header.producer_id >= 0 else None
    return last or newest == header.last_offset


def _without_records(header: BatchHeader, retention: Retention, *, last: bool) -> Buffer | None:
    if not _keeps_empty(header, retention, last=last):
        return None
    attributes = header.attributes & ~CODEC_MASK & ~DELETE_HORIZON
    return assemble(
        b"",
        header._replace(attributes=attributes, base_timestamp_ms=NO_TIMESTAMP_BASE, record_count=0),
    )


def _rebuilt(
    payload: Buffer, header: BatchHeader, kept: list[RecordSpan], horizon_ms: int | None
) -> IncrementalWork[Buffer]:
    """Return, in steps, the batch with only the records `kept`. It gets `horizon_ms` as its delete
    horizon unless that is None.

    Offsets, producer, sequence, leader epoch, flags and codec stay. The codec's level is its
    default."""
    attributes, base_ms = header.attributes, header.base_timestamp_ms
    delta_ms = 0 if horizon_ms is None else base_ms - horizon_ms
    records = bytearray()
    latest_delta_ms = kept[0][2]
    for first in range(0, len(kept), RECORDS_PER_STEP):
        some = kept[first : first + RECORDS_PER_STEP]
        records += moved(payload, some, delta_ms) if delta_ms else joined(payload, some)
        latest_delta_ms = max(latest_delta_ms, max(each[2] for each in some))
        if len(some) == RECORDS_PER_STEP:
            yield
    if horizon_ms is not None:
        attributes |= DELETE_HORIZON
    max_ms = header.max_timestamp_ms
    if not header.is_log_append_time:
        max_ms = max(NO_TIMESTAMP, min(max_ms, base_ms + latest_delta_ms))
    return assemble(
        compress(Codec(header.codec), records) if header.codec else records,
        header._replace(
            attributes=attributes,
            base_timestamp_ms=base_ms if horizon_ms is None else horizon_ms,
            max_timestamp_ms=max_ms,
            record_count=len(kept),
        ),
    )
