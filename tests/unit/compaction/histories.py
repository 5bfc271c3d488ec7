"""Random histories of a compacted log on a simulated disk, and a dictionary as their oracle.

A history appends keyed batches, cleans, truncates, replicates, crashes and starts again. The oracle
is a list of all records that the log should hold before any compaction.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, cast

from quorate.broker.compaction.cleanable import CompactionSettings
from quorate.broker.compaction.cleaning import Cleaning, CleaningPlan
from quorate.broker.compaction.log_cleaning import CleaningAborted, clean_log, source_of
from quorate.broker.logs.compacted_log import CompactedLog, range_of
from quorate.quorum.log.batches.batch import batches, build_batch, records_of
from quorate.quorum.log.batches.compression import Codec
from quorate.quorum.log.batches.record import Record
from quorate.quorum.log.files.errors import LogError
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.log.log import Log
from quorate.quorum.log.segments.file_removal import remove_files
from tests.sim.world.disk import PowerCut, SimDisk

PATH = "/d/t-0"
SETTINGS = LogSettings(segment_bytes=600, index_interval_bytes=100)
KEYS = [b"k%d" % number for number in range(8)]
DELETE_RETENTION_MS = 1_000
Between = Callable[[], None]


class Written(NamedTuple):
    offset: int
    key: bytes
    value: bytes | None
    at_ms: int


class Replica:
    """One compacted log with its checkpoint of the cleaner, and the records that it was given."""

    def __init__(self, seed: int, *, map_keys: int = 5) -> None:
        self.random = random.Random(seed)
        self.disk = SimDisk(self.random)
        self.disk.make_dirs(PATH)
        self.written: list[Written] = []
        self.wall_ms = 10_000
        self.epoch = 0
        self.high_watermark = 0
        self.checkpoint: int | None = None
        self.recovery_point = 0
        self.map_keys = map_keys
        self.cleanings = 0
        self.last_batches: dict[int, int] = {}
        self.log = self.open(clean=False)

    # -- life

    def open(self, *, clean: bool) -> Log:
        log = Log.open(
            self.disk,
            PATH,
            SETTINGS,
            wall_ms=self.wall_ms,
            clean=clean,
            recovery_point=self.recovery_point,
        )
        log.before_truncation = self.truncating
        return log

    def truncating(self, offset: int) -> None:
        """As the broker does: the checkpointed offsets are lowered before anything is removed."""
        self.recovery_point = min(self.recovery_point, offset)
        if self.checkpoint is not None:
            self.checkpoint = min(self.checkpoint, offset)

    def start_again(self, disk: SimDisk) -> None:
        self.disk = disk
        self.log = self.open(clean=False)
        end = self.log.end_offset
        self.written = [each for each in self.written if each.offset < end]
        self.high_watermark = min(self.high_watermark, end)
        if self.checkpoint is not None:
            self.checkpoint = min(self.checkpoint, end)

    # -- operations

    def append(self, count: int, *, codec: Codec = Codec.NONE) -> None:
        self.wall_ms += 10
        base = self.log.end_offset
        records = []
        for offset in range(base, base + count):
            value = None if self.random.random() < 0.3 else b"%d" % offset
            record = Record(offset, self.wall_ms, self.random.choice(KEYS), value)
            records.append(record)
        data = build_batch(records, leader_epoch=self.epoch, codec=codec)
        self.written += [
            Written(each.offset, bytes(each.key or b""), value_of(each), self.wall_ms)
            for each in records
        ]
        self.log.append(data, wall_ms=self.wall_ms)
        if self.random.random() < 0.8:
            self.high_watermark = self.log.end_offset

    def flush(self) -> None:
        self.log.flush()
        self.recovery_point = self.log.flushed_offset

    def truncate(self, offset: int) -> None:
        self.log.truncate_to(offset)
        self.written = [each for each in self.written if each.offset < self.log.end_offset]
        assert self.log.end_offset <= offset

    def clean(self, between: Between = lambda: None) -> int | None:
        """Run one cleaning, with `between` before each piece of work of the disk's thread. Return
        the new checkpoint, None if the cleaning was aborted or nothing is dirty."""
        log = self.log
        sealed = log.sealed_segments
        partition = cast(CompactedLog, self)
        found = range_of(partition, CompactionSettings(), self.checkpoint, self.wall_ms)
        if not found.dirty_bytes:
            return None
        segments = [each for each in sealed if each.next_offset <= found.first_uncleanable]
        plan = CleaningPlan(
            directory=log.directory,
            index_interval_bytes=log.settings.index_interval_bytes,
            dirty=tuple(
                source_of(each) for each in segments if each.next_offset > found.first_dirty
            ),
            first_dirty=found.first_dirty,
            now_ms=self.wall_ms,
            delete_retention_ms=DELETE_RETENTION_MS,
            map_bytes=200 * self.map_keys,
            load_factor=1.0,
            buffer_bytes=256,
            epoch_of=log.epochs_now(),
            last_batches=self.last_batches,
        )
        work = clean_log(
            log,
            Cleaning(self.disk, plan),
            segments,
            (None for _ in ()),
            lambda: False,
            partial(remove_files, self.disk),
        )
        result = None
        try:
            while True:
                job = work.send(result)
                between()
                result = None
                try:
                    result = job()
                except (LogError, OSError) as error:
                    job = work.throw(error)
                    result = job()
        except StopIteration as end:
            assert isinstance(end.value, int)
            self.checkpoint = end.value
            self.cleanings += 1
            return self.checkpoint
        except CleaningAborted:
            return None

    # -- checks

    def read(self, offset: int | None = None, *, max_bytes: int = 300) -> list[Written]:
        """Read as a consumer does, from `offset` on, and check the order of the offsets."""
        log = self.log
        found: list[Written] = []
        at = log.start_offset if offset is None else offset
        while data := log.read(at, max_bytes):
            for position, header in batches(data):
                assert header.next_offset > at
                for record in records_of(data, position, header):
                    assert not found or record.offset > found[-1].offset
                    key, at_ms = bytes(record.key or b""), record.timestamp_ms
                    found.append(Written(record.offset, key, value_of(record), at_ms))
                at = header.next_offset
        assert at == log.end_offset
        return [each for each in found if offset is None or each.offset >= offset]

    def check(self) -> None:
        """Every record is one that was written, and the latest value of each key is there."""
        found = self.read()
        written = set(self.written)
        assert all(each in written for each in found), set(found) - written
        assert latest(found) == latest(self.written)

    def check_tombstones(self) -> None:
        """A tombstone that is the latest record of its key stays for the delete retention."""
        found = set(self.read())
        for each in by_key(self.written).values():
            if each.value is None and self.wall_ms - each.at_ms < DELETE_RETENTION_MS:
                assert each in found, each


def value_of(record: Record) -> bytes | None:
    return None if record.value is None else bytes(record.value)


def by_key(records: list[Written]) -> dict[bytes, Written]:
    return {each.key: each for each in records}


def latest(records: list[Written]) -> dict[bytes, bytes | None]:
    """The latest value of each key. A deleted key counts as one that never was."""
    return {key: each.value for key, each in by_key(records).items() if each.value is not None}


__all__ = [
    "KEYS",
    "PATH",
    "PowerCut",
    "Replica",
    "Written",
    "by_key",
    "latest",
    "remove_files",
    "value_of",
]
