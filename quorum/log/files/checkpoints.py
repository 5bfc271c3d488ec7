"""The small files beside the segments and in the root of a log directory, in Kafka's formats.

`replace` writes a file atomically: to a temporary file, which is synced and renamed. The text
checkpoints have a version line, a line with the number of entries, and one line for each entry.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import TypeVar

from quorate.quorum.ids import EpochOffset, Uuid, uuid_from_text, uuid_to_text
from quorate.quorum.log.files.errors import CorruptCheckpoint
from quorate.quorum.log.files.names import TEMPORARY_SUFFIX, PartitionName
from quorate.quorum.seams import Buffer, Disk

T = TypeVar("T")

EPOCHS_NAME = "leader-epoch-checkpoint"
PARTITION_METADATA_NAME = "partition.metadata"
CUT_OFF_ID = re.compile(rb"[A-Za-z0-9_-]{0,21}")
"""The beginning of a topic id as text, which has 22 characters."""
CLEAN_SHUTDOWN_NAME = ".kafka_cleanshutdown"
HIGH_WATERMARKS_NAME = "replication-offset-checkpoint"
RECOVERY_POINTS_NAME = "recovery-point-offset-checkpoint"
START_OFFSETS_NAME = "log-start-offset-checkpoint"
CLEANER_OFFSETS_NAME = "cleaner-offset-checkpoint"

CHECKPOINT_VERSION = 0
MAX_SMALL_FILE_BYTES = 64 * 1024 * 1024
"""Bound of a file with an entry for each partition, and of an index."""
MAX_STATE_FILE_BYTES = 1024 * 1024
"""Bound of a file about one node or one log, which does not grow with the number of partitions."""
MAX_COUNT_DIGITS = 10
"""Bound of the digits of a number of entries."""
MAX_PARTITION = (1 << 31) - 1
MAX_OFFSET = (1 << 63) - 1
MAX_EPOCH = (1 << 31) - 1
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
"""The exceptions that reading a value from arbitrary JSON can raise."""


def replace(disk: Disk, path: str, content: Buffer) -> None:
    """Write a file atomically, in an existing directory. Block.

    The new content is durable on return. After a crash the file has the old content or the new one.
    """
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
    """Return the content of a file, or None if there is no such file. Block.

    Raise CorruptCheckpoint, and read nothing, if the file is larger than `max_bytes`."""
    try:
        file = disk.open(path, writable=False)
    except FileNotFoundError:
        return None
    try:
        size = file.size()
        if size > max_bytes:
            reason = f"the file has {size} bytes, but at most {max_bytes} are valid"
            raise CorruptCheckpoint(
                path, 0, f"{reason}. Another program wrote it; restore or remove the file"
            )
        return file.pread(size, 0)
    finally:
        file.close()


# -- Kafka's checkpoint text: a version, a count, that many lines ---------------------------------


def encode_lines(lines: Iterable[str]) -> bytes:
    """Return a text checkpoint with these entries. An entry must not contain a newline."""
    body = list(lines)
    return "".join(f"{line}\n" for line in (CHECKPOINT_VERSION, len(body), *body)).encode()


def decode_lines(path: str, content: bytes, parse: Callable[[list[str]], T]) -> list[T]:
    """Return the entries of a text checkpoint. `parse` gets the fields of one line.

    Raise CorruptCheckpoint, which names the line, if the content is no checkpoint or if `parse`
    raises ValueError or IndexError. `path` is only for the message."""
    try:
        lines = content.decode().split("\n")
    except UnicodeDecodeError as error:
        raise CorruptCheckpoint(path, 1, str(error)) from None
    if lines[0] != str(CHECKPOINT_VERSION):
        raise CorruptCheckpoint(path, 1, f"version {lines[0]!r} is not {CHECKPOINT_VERSION}")
    if len(lines) < 2 or not (lines[1].isdecimal() and len(lines[1]) <= MAX_COUNT_DIGITS):
        raise CorruptCheckpoint(path, 2, "this line must hold the number of entries")
    count = int(lines[1])
    if lines[2 + count :] != [""]:
        raise CorruptCheckpoint(
            path, 2, f"line 2 declares {count} entries, but {len(lines) - 3} follow"
        )
    entries = []
    for number, line in enumerate(lines[2 : 2 + count], start=3):
        try:
            entries.append(parse(line.split()))
        except (ValueError, IndexError) as error:
            raise CorruptCheckpoint(path, number, f"{line!r}: {error}") from None
    return entries


# -- leader epochs ---------------------------------------------------------------------------------


def epochs_path(directory: str) -> str:
    """Return the path of the leader epoch checkpoint of the log in `directory`."""
    return f"{directory}/{EPOCHS_NAME}"


def encode_epochs(entries: Iterable[EpochOffset]) -> bytes:
    """Return the content of a leader epoch checkpoint."""
    return encode_lines(f"{entry.epoch} {entry.offset}" for entry in entries)


def read_epochs(disk: Disk, directory: str) -> list[EpochOffset] | None:
    """Return the leader epochs of the log in `directory`, with their start offsets. Block.

    Return None if the checkpoint is missing or damaged, or if its numbers do not rise: the caller
    reads the batches instead."""
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
    """Write a checkpoint of one offset for each partition, atomically. Block. `name` is the file's
    name."""
    lines = (f"{key.topic} {key.partition} {offset}" for key, offset in sorted(offsets.items()))
    replace(disk, f"{log_dir}/{name}", encode_lines(lines))


def read_offsets(disk: Disk, log_dir: str, name: str) -> dict[PartitionName, int]:
    """Return the offsets of a checkpoint, empty if there is no such file. Block.

    Raise CorruptCheckpoint. The caller decides whether it can do without the file."""
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
    """Write `partition.metadata`, which holds the topic id. Block for the page cache only.

    The file is not synced, because an fsync for each new partition would be too slow. After a power
    cut `read_partition_metadata` may return None."""
    file = disk.open(f"{directory}/{PARTITION_METADATA_NAME}", create=True)
    try:
        file.pwrite(
            f"version: {CHECKPOINT_VERSION}\ntopic_id: {uuid_to_text(topic_id)}".encode(), 0
        )
    finally:
        file.close()


def sync_partition_metadata(disk: Disk, directory: str) -> None:
    """Make the content of `partition.metadata` durable. Block."""
    file = disk.open(f"{directory}/{PARTITION_METADATA_NAME}")
    try:
        file.sync()
    finally:
        file.close()


def read_partition_metadata(disk: Disk, directory: str) -> Uuid | None:
    """Return the topic id, or None if the file is missing, empty or cut off, as after a power cut
    or if the disk was full. Block.

    A file that holds only zero bytes counts as empty. Raise CorruptCheckpoint if the file holds
    anything else."""
    path = f"{directory}/{PARTITION_METADATA_NAME}"
    content = read_small(disk, path, max_bytes=MAX_STATE_FILE_BYTES)
    if content is None or not content.strip(b"\0") or is_cut_off(content):
        return None
    try:
        version, topic_id = (line.split(": ", 1) for line in content.decode().splitlines())
        if version != ["version", str(CHECKPOINT_VERSION)] or topic_id[0] != "topic_id":
            raise ValueError(f"{version} and {topic_id}")
        return uuid_from_text(topic_id[1])
    except (ValueError, IndexError) as error:
        raise CorruptCheckpoint(
            path,
            2,
            f"no valid topic id ({error}). Write the id that `quorate topics --describe` prints",
        ) from None


def is_cut_off(content: bytes) -> bool:
    """Return True if a valid `partition.metadata` begins with `content`, and is longer."""
    head = f"version: {CHECKPOINT_VERSION}\ntopic_id: ".encode()
    if head.startswith(content):
        return True
    return content.startswith(head) and CUT_OFF_ID.fullmatch(content[len(head) :]) is not None


# -- clean shutdown --------------------------------------------------------------------------------


def write_clean_shutdown(disk: Disk, log_dir: str, broker_epoch: int) -> None:
    """Write the marker of a clean shutdown with the broker epoch, atomically. Block."""
    content = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    replace(disk, f"{log_dir}/{CLEAN_SHUTDOWN_NAME}", content.encode())


def take_clean_shutdown(disk: Disk, log_dir: str) -> int | None:
    """Remove the marker of a clean shutdown and return its broker epoch. Block.

    Return -1 if the marker has no epoch (older versions of Kafka wrote an empty file). Return None
    if there is no marker or it is damaged: the logs must be recovered then. The removal is durable
    on return, so that the next start cannot trust the marker again."""
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
