"""The small files beside the segments and in the root of a log directory, in Kafka's formats.

A file is replaced whole: written beside, synced, renamed, its directory synced. The
flushed-offset marker is ours; Kafka ignores it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import TypeVar

from quorate.quorum.ids import EpochOffset, Uuid, uuid_from_text, uuid_to_text
from quorate.quorum.log.errors import CorruptCheckpoint
from quorate.quorum.log.names import TEMPORARY_SUFFIX, PartitionName
from quorate.quorum.seams import Buffer, Disk

T = TypeVar("T")

EPOCHS_NAME = "leader-epoch-checkpoint"
PARTITION_METADATA_NAME = "partition.metadata"
CLEAN_SHUTDOWN_NAME = ".kafka_cleanshutdown"
HIGH_WATERMARKS_NAME = "replication-offset-checkpoint"
RECOVERY_POINTS_NAME = "recovery-point-offset-checkpoint"
START_OFFSETS_NAME = "log-start-offset-checkpoint"

CHECKPOINT_VERSION = 0
MAX_SMALL_FILE_BYTES = 64 * 1024 * 1024
MAX_STATE_FILE_BYTES = 1024 * 1024
"""Of a file about one node or one log, whose size does not grow with the number of partitions."""
MAX_COUNT_DIGITS = 10
MAX_PARTITION = (1 << 31) - 1
MAX_OFFSET = (1 << 63) - 1
MAX_EPOCH = (1 << 31) - 1
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
"""The exceptions that reading a value from arbitrary JSON can raise."""


def replace(disk: Disk, path: str, content: Buffer) -> None:
    """After a crash the file is the old one or the new one, and when this returns the new one."""
    temporary = path + TEMPORARY_SUFFIX
    file = disk.open(temporary, create=True)
    try:
        file.truncate(0)
        file.pwrite(content, 0)
        file.sync()
    finally:
        file.close()
    disk.rename(temporary, path)
    disk.sync_dir(path.rpartition("/")[0])


def read_small(disk: Disk, path: str, *, max_bytes: int = MAX_SMALL_FILE_BYTES) -> bytes | None:
    """Return the whole file, or None if there is no such file. Raise CorruptCheckpoint if it is
    larger than `max_bytes`; nothing is read then."""
    try:
        file = disk.open(path, writable=False)
    except FileNotFoundError:
        return None
    try:
        size = file.size()
        if size > max_bytes:
            reason = f"{size} bytes, and such a file has at most {max_bytes}"
            raise CorruptCheckpoint(path, 0, f"{reason}: it was written by something else")
        return file.pread(size, 0)
    finally:
        file.close()


# -- Kafka's checkpoint text: a version, a count, that many lines ---------------------------------


def encode_lines(lines: Iterable[str]) -> bytes:
    body = list(lines)
    return "".join(f"{line}\n" for line in (CHECKPOINT_VERSION, len(body), *body)).encode()


def decode_lines(path: str, content: bytes, parse: Callable[[list[str]], T]) -> list[T]:
    """`parse` gets the fields of one line; its ValueError names the line."""
    try:
        lines = content.decode().split("\n")
    except UnicodeDecodeError as error:
        raise CorruptCheckpoint(path, 1, str(error)) from None
    if lines[0] != str(CHECKPOINT_VERSION):
        raise CorruptCheckpoint(path, 1, f"version {lines[0]!r} is not {CHECKPOINT_VERSION}")
    if len(lines) < 2 or not (lines[1].isdecimal() and len(lines[1]) <= MAX_COUNT_DIGITS):
        raise CorruptCheckpoint(path, 2, "the number of entries is missing")
    count = int(lines[1])
    if lines[2 + count :] != [""]:
        raise CorruptCheckpoint(path, 2, f"{count} entries are announced, {len(lines) - 3} follow")
    entries = []
    for number, line in enumerate(lines[2 : 2 + count], start=3):
        try:
            entries.append(parse(line.split()))
        except (ValueError, IndexError) as error:
            raise CorruptCheckpoint(path, number, f"{line!r}: {error}") from None
    return entries


# -- leader epochs ---------------------------------------------------------------------------------


def epochs_path(directory: str) -> str:
    return f"{directory}/{EPOCHS_NAME}"


def encode_epochs(entries: Iterable[EpochOffset]) -> bytes:
    return encode_lines(f"{entry.epoch} {entry.offset}" for entry in entries)


def read_epochs(disk: Disk, directory: str) -> list[EpochOffset] | None:
    """None when it is missing or damaged: the batches say it all again."""
    try:
        content = read_small(disk, epochs_path(directory))
        if content is None:
            return None
        entries = decode_lines(epochs_path(directory), content, _epoch_entry)
    except CorruptCheckpoint:
        return None
    rising = all(a.epoch < b.epoch and a.offset < b.offset for a, b in pairwise(entries))
    return entries if rising else None


def _epoch_entry(fields: list[str]) -> EpochOffset:
    epoch, offset = fields
    return EpochOffset(bounded(epoch, MAX_EPOCH), bounded(offset, MAX_OFFSET))


# -- offsets of all partitions of a log directory -------------------------------------------------


def write_offsets(
    disk: Disk, log_dir: str, name: str, offsets: Mapping[PartitionName, int]
) -> None:
    lines = (f"{key.topic} {key.partition} {offset}" for key, offset in sorted(offsets.items()))
    replace(disk, f"{log_dir}/{name}", encode_lines(lines))


def read_offsets(disk: Disk, log_dir: str, name: str) -> dict[PartitionName, int]:
    """Empty when there is no such file. CorruptCheckpoint: the caller decides what a hint is
    worth."""
    path = f"{log_dir}/{name}"
    content = read_small(disk, path)
    return {} if content is None else dict(decode_lines(path, content, _offset_entry))


def _offset_entry(fields: list[str]) -> tuple[PartitionName, int]:
    topic, partition, offset = fields
    name = PartitionName(topic, bounded(partition, MAX_PARTITION))
    return name, bounded(offset, MAX_OFFSET)


def bounded(text: str, maximum: int) -> int:
    """Return the number from 0 to `maximum` that `text` holds. Raise ValueError."""
    number = int(text) if len(text) <= len(str(maximum)) else maximum + 1
    if not 0 <= number <= maximum:
        raise ValueError(f"{text[:40]!r} is not between 0 and {maximum}")
    return number


# -- partition.metadata ----------------------------------------------------------------------------


def write_partition_metadata(disk: Disk, directory: str, topic_id: Uuid) -> None:
    """Not synced, as that would cost each new partition a write to the disk: after a crash of the
    machine `read_partition_metadata` may say None."""
    file = disk.open(f"{directory}/{PARTITION_METADATA_NAME}", create=True)
    try:
        file.pwrite(
            f"version: {CHECKPOINT_VERSION}\ntopic_id: {uuid_to_text(topic_id)}".encode(), 0
        )
    finally:
        file.close()


def read_partition_metadata(disk: Disk, directory: str) -> Uuid | None:
    """None when the file is missing or empty: it did not survive a crash."""
    path = f"{directory}/{PARTITION_METADATA_NAME}"
    content = read_small(disk, path, max_bytes=MAX_STATE_FILE_BYTES)
    if content is None or not content.strip(b"\0"):
        return None
    try:
        version, topic_id = (line.split(": ", 1) for line in content.decode().splitlines())
        if version != ["version", str(CHECKPOINT_VERSION)] or topic_id[0] != "topic_id":
            raise ValueError(f"{version} and {topic_id}")
        return uuid_from_text(topic_id[1])
    except (ValueError, IndexError) as error:
        raise CorruptCheckpoint(
            path, 2, f"no topic id ({error}): write the one that `quorate topics --describe` tells"
        ) from None


# -- clean shutdown --------------------------------------------------------------------------------


def write_clean_shutdown(disk: Disk, log_dir: str, broker_epoch: int) -> None:
    content = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    replace(disk, f"{log_dir}/{CLEAN_SHUTDOWN_NAME}", content.encode())


def take_clean_shutdown(disk: Disk, log_dir: str) -> int | None:
    """The broker epoch of the last orderly shutdown, -1 when it is not told (Kafka wrote an empty
    file once); None when there was none, or the file is damaged, for what was written before it may
    be, too. The file is gone, durably, when this returns: the next start must not believe it
    again."""
    path = f"{log_dir}/{CLEAN_SHUTDOWN_NAME}"
    try:
        content = read_small(disk, path, max_bytes=MAX_STATE_FILE_BYTES)
    except CorruptCheckpoint:
        content = b"?"
    if content is None:
        return None
    disk.remove(path)
    disk.sync_dir(log_dir)
    if not content:
        return -1
    try:
        epoch = json.loads(content)["brokerEpoch"]
        return epoch if type(epoch) is int and -1 <= epoch <= MAX_OFFSET else None
    except UNREADABLE:
        return None
