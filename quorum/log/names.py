"""Kafka's names of files and directories below a log directory."""

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
SWAP_SUFFIX = ".swap"
DELETED_SUFFIX = ".deleted"
SNAPSHOT_SUFFIX = ".checkpoint"
SNAPSHOT_DELETED_SUFFIX = ".checkpoint.deleted"
PART_SUFFIX = ".part"
DAMAGED_SUFFIX = ".damaged"
DELETED_DIRECTORY_SUFFIX = "-delete"
STRAY_DIRECTORY_SUFFIX = "-stray"

OFFSET_DIGITS = 20
MAX_NAME_BYTES = 255


class PartitionName(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def segment_file(directory: str, base_offset: int, suffix: str) -> str:
    return f"{directory}/{base_offset:0{OFFSET_DIGITS}d}{suffix}"


def offset_of(name: str) -> int | None:
    """The offset that a segment's file name starts with."""
    digits = name.split(".", 1)[0]
    return int(digits) if len(digits) == OFFSET_DIGITS and digits.isdigit() else None


def partition_of(directory_name: str) -> PartitionName | None:
    """None when the directory cannot be a partition's (or is one that is being deleted)."""
    topic, dash, partition = directory_name.rpartition("-")
    if not (dash and topic and partition.isascii() and partition.isdigit()):
        return None
    return PartitionName(topic, int(partition))


def deleted_directory_name(name: PartitionName, unique: str) -> str:
    """`<topic>-<partition>.<unique>-delete`, the topic cut where the whole would be too long."""
    return _unique_name(name, unique, DELETED_DIRECTORY_SUFFIX)


def stray_directory_name(name: PartitionName, unique: str) -> str:
    """`<topic>-<partition>.<unique>-stray`, cut likewise."""
    return _unique_name(name, unique, STRAY_DIRECTORY_SUFFIX)


def _unique_name(name: PartitionName, unique: str, suffix: str) -> str:
    suffix = f"-{name.partition}.{unique}{suffix}"
    return name.topic[: MAX_NAME_BYTES - len(suffix)] + suffix


def is_deleted_directory(name: str) -> bool:
    return name.endswith(DELETED_DIRECTORY_SUFFIX) and "." in name
