"""Names of files and directories below a log directory.

They are Apache Kafka's, except for DAMAGED_SUFFIX.
"""

from __future__ import annotations

from typing import NamedTuple

LOG_SUFFIX = ".log"
OFFSET_INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TRANSACTION_INDEX_SUFFIX = ".txnindex"
PRODUCER_SNAPSHOT_SUFFIX = ".snapshot"
SEGMENT_SUFFIXES = (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
)

TEMPORARY_SUFFIX = ".tmp"
CLEANED_SUFFIX = ".cleaned"
"""Follows the name of a segment file that Kafka's log cleaner is writing."""
SWAP_SUFFIX = ".swap"
"""Follows the name of a complete segment file that is about to replace others."""
DELETED_SUFFIX = ".deleted"
"""Follows the name of a segment's data file that is about to be removed."""
SNAPSHOT_SUFFIX = ".checkpoint"
SNAPSHOT_DELETED_SUFFIX = ".checkpoint.deleted"
PART_SUFFIX = ".part"
"""Follows SNAPSHOT_SUFFIX in the name of a snapshot that is not complete."""
DAMAGED_SUFFIX = ".damaged"
"""Follows the name of a file that was set aside because it is damaged."""
DELETED_DIRECTORY_SUFFIX = "-delete"
FUTURE_DIRECTORY_SUFFIX = "-future"
"""Ends the name of a directory to which a replica is being moved."""
STRAY_DIRECTORY_SUFFIX = "-stray"
"""Ends the name of a directory that no node reads: a stray, or metadata that was set aside."""

OFFSET_DIGITS = 20
MAX_NAME_BYTES = 255


class PartitionName(NamedTuple):
    """A partition by topic and number. `str()` of it is the name of its directory."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def segment_file(directory: str, base_offset: int, suffix: str) -> str:
    """Return the path of a segment's file with this suffix."""
    return f"{directory}/{base_offset:0{OFFSET_DIGITS}d}{suffix}"


def offset_of(name: str) -> int | None:
    """Return the offset with which the name of a segment's file starts, whatever its suffix is.

    Return None if the name does not start with 20 digits."""
    digits = name.split(".", 1)[0]
    return (
        int(digits)
        if len(digits) == OFFSET_DIGITS and digits.isdecimal() and digits.isascii()
        else None
    )


def partition_of(directory_name: str) -> PartitionName | None:
    """Return the partition whose directory has this name, or None if the name is no partition's.

    For the directory of a deleted or stray partition the result is None."""
    topic, dash, partition = directory_name.rpartition("-")
    if not (dash and topic and partition.isascii() and partition.isdecimal()):
        return None
    return PartitionName(topic, int(partition))


def deleted_directory_name(name: PartitionName, unique: str) -> str:
    """Return `<topic>-<partition>.<unique>-delete`, with the topic cut if the name would be
    too long."""
    return _unique_name(name, unique, DELETED_DIRECTORY_SUFFIX)


def stray_directory_name(name: PartitionName, unique: str) -> str:
    """Return `<topic>-<partition>.<unique>-stray`, with the topic cut if the name would be
    too long."""
    return _unique_name(name, unique, STRAY_DIRECTORY_SUFFIX)


def future_directory_name(name: PartitionName, unique: str) -> str:
    """Return `<topic>-<partition>.<unique>-future`. It may be too long for a file system."""
    return f"{name}.{unique}{FUTURE_DIRECTORY_SUFFIX}"


def future_partition_of(directory_name: str) -> PartitionName | None:
    """Return the partition that is being moved to the directory with this name, or None if the name
    is no future directory's."""
    name, dot, unique = directory_name.rpartition(".")
    if not (dot and unique.endswith(FUTURE_DIRECTORY_SUFFIX)):
        return None
    return partition_of(name)


def _unique_name(name: PartitionName, unique: str, suffix: str) -> str:
    suffix = f"-{name.partition}.{unique}{suffix}"
    return name.topic[: MAX_NAME_BYTES - len(suffix)] + suffix


def is_deleted_directory(name: str) -> bool:
    """Return True for the name of the directory of a deleted partition, which is about to be
    removed."""
    return name.endswith(DELETED_DIRECTORY_SUFFIX) and "." in name
