"""The work of one step of a cleaning is bounded, because the event loop may wait for it."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from quorate.broker.compaction import batch_filter
from quorate.broker.compaction.batch_filter import Retention, filtered
from quorate.broker.compaction.cleaning import WRITE_BYTES, Cleaning, CleaningPlan
from quorate.broker.compaction.log_cleaning import source_of
from quorate.broker.compaction.offset_map import KEYS_PER_STEP, OffsetMap
from quorate.broker.compaction.record_spans import RECORDS_PER_STEP, RecordSpan
from quorate.quorum.incremental_work import finished
from quorate.quorum.log.batches.batch import build_batch, read_header, records_of
from quorate.quorum.log.batches.record import Record
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.log.log import Log
from quorate.quorum.seams import Buffer
from tests.sim.world.disk import SimDisk

PATH = "/d/t-0"


def batch(base: int, count: int, value: bytes | None = b"v") -> bytearray:
    """Return a batch of different keys. The last record has `value`."""
    records = [Record(base + each, 1_000, b"k%d" % (base + each), b"v") for each in range(count)]
    records[-1] = records[-1]._replace(value=value)
    return build_batch(records, leader_epoch=0)


def cleaning_of(*data: bytearray) -> Cleaning:
    """Return the cleaning of one sealed segment with these batches."""
    disk = SimDisk(random.Random(1))
    disk.make_dirs(PATH)
    settings = LogSettings(segment_bytes=sum(len(each) for each in data))
    log = Log.open(disk, PATH, settings, wall_ms=0, clean=False)
    for each in data:
        log.append(each, wall_ms=0)
    log.append(batch(log.end_offset, 1), wall_ms=0)
    log.flush()
    (segment,) = log.sealed_segments
    plan = CleaningPlan(
        directory=PATH,
        index_interval_bytes=4_096,
        dirty=(source_of(segment),),
        first_dirty=0,
        now_ms=1,
        delete_retention_ms=1,
        map_bytes=1 << 22,
        load_factor=1.0,
        buffer_bytes=4 * WRITE_BYTES,
        epoch_of=log.epochs_now(),
        last_batches={},
    )
    return Cleaning(disk, plan)


def test_a_step_takes_few_keys_of_a_batch_into_the_map() -> None:
    """The batch counts as looked at only when all of its keys are in the map."""
    count = 3 * KEYS_PER_STEP + 1
    cleaning = cleaning_of(batch(0, count))
    offsets = cleaning.retention.offsets
    sizes = [0]
    for _ in cleaning.build_map():
        sizes.append(len(offsets))
        assert (offsets.latest_offset == count - 1) == (len(offsets) == count)
    assert max(after - before for before, after in pairwise(sizes)) == KEYS_PER_STEP
    assert sizes[-1] == count
    assert [offsets.offset_of(b"k%d" % each) for each in range(count)] == list(range(count))


@pytest.mark.parametrize(("batches", "records"), [(40, 400), (3 * RECORDS_PER_STEP, 1)])
def test_a_step_writes_few_bytes_and_few_batches(batches: int, records: int) -> None:
    data = [batch(number * records, records) for number in range(batches)]
    cleaning = cleaning_of(*data)
    finished(cleaning.build_map())
    steps = cleaning.write_group(cleaning.plan.dirty)
    written = [0, *(cleaning.stats.written_bytes for _ in steps)]
    assert written[-1] == sum(len(each) for each in data)
    longest = max(len(each) for each in data)
    bound = min(WRITE_BYTES + longest, RECORDS_PER_STEP * longest)
    assert max(after - before for before, after in pairwise(written)) <= bound


@pytest.mark.parametrize(("value", "copy"), [(b"v", "joined"), (None, "moved")])
def test_a_step_copies_few_records(
    monkeypatch: pytest.MonkeyPatch, value: bytes | None, copy: str
) -> None:
    """A new delete horizon, which the tombstone demands, changes each record (`moved`)."""
    copied: list[int] = []
    original = getattr(batch_filter, copy)

    def counted(payload: Buffer, spans: list[RecordSpan], *delta_ms: int) -> bytearray:
        copied.append(len(spans))
        found: bytearray = original(payload, spans, *delta_ms)
        return found

    monkeypatch.setattr(batch_filter, copy, counted)
    offsets = OffsetMap(1 << 20, 1.0)
    assert offsets.put(b"k0", 5_000)
    offsets.commit(5_000)
    count = 3 * RECORDS_PER_STEP + 2
    data = batch(0, count, value)
    steps = filtered(data, read_header(data), Retention(offsets, 1, 1), last=False)
    in_steps = []
    kept: Buffer | None = None
    while kept is None:
        copied.clear()
        try:
            next(steps)
        except StopIteration as end:
            kept = bytes(end.value)
        in_steps.append(sum(copied))
    assert max(in_steps) == RECORDS_PER_STEP
    found = records_of(kept, 0, read_header(kept))
    assert [each.offset for each in found] == list(range(1, count))
