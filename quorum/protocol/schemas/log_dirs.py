"""The messages about the log directories of a broker: DescribeLogDirs (KIP-113, KIP-784, KIP-827),
and AlterReplicaLogDirs (KIP-113), which moves replicas between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.quorum.protocol.field_bounds import (
    CLIENT_TEXT,
    LOG_DIRS,
    PARTITIONS,
    TOPIC_NAME,
    TOPICS,
)
from quorate.quorum.protocol.wire import Message, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribableLogDirTopic:
    """Partitions of one topic."""

    topic: str = wire("string", bound=TOPIC_NAME)
    partitions: tuple[int, ...] = wire("int32", count=PARTITIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeLogDirsRequest(Message):
    """Asks for the partitions in the log directories. None means all partitions."""

    API_KEY: ClassVar[int] = 35
    topics: tuple[DescribableLogDirTopic, ...] | None = wire(nullable="0+", count=TOPICS)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeLogDirsPartition:
    """One replica: its size in bytes, and its lag behind the high watermark in offsets."""

    partition_index: int = wire("int32")
    partition_size: int = wire("int64")
    offset_lag: int = wire("int64")
    is_future_key: bool = wire("bool")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeLogDirsTopic:
    """The replicas of one topic in a directory."""

    name: str = wire("string")
    partitions: tuple[DescribeLogDirsPartition, ...] = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeLogDirsResult:
    """One directory: its replicas, and the bytes of its file system or -1."""

    error_code: int = wire("int16", default=0)
    log_dir: str = wire("string")
    topics: tuple[DescribeLogDirsTopic, ...] = wire()
    total_bytes: int = wire("int64", versions="4+", default=-1)
    usable_bytes: int = wire("int64", versions="4+", default=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeLogDirsResponse(Message):
    """The directories of the broker."""

    API_KEY: ClassVar[int] = 35
    throttle_time_ms: int = wire("int32", default=0)
    error_code: int = wire("int16", versions="3+", default=0)
    results: tuple[DescribeLogDirsResult, ...] = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterReplicaLogDirTopic:
    """Partitions of one topic."""

    name: str = wire("string", bound=TOPIC_NAME)
    partitions: tuple[int, ...] = wire("int32", count=PARTITIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterReplicaLogDir:
    """The partitions to move to one log directory, named by its absolute path."""

    path: str = wire("string", bound=CLIENT_TEXT)
    topics: tuple[AlterReplicaLogDirTopic, ...] = wire(count=TOPICS)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterReplicaLogDirsRequest(Message):
    """Asks a broker to move its replicas to other log directories."""

    API_KEY: ClassVar[int] = 34
    dirs: tuple[AlterReplicaLogDir, ...] = wire(count=LOG_DIRS)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterReplicaLogDirPartitionResult:
    """The error of one partition, or 0 if its move has begun or is not needed."""

    partition_index: int = wire("int32")
    error_code: int = wire("int16")


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterReplicaLogDirTopicResult:
    """The results of one topic."""

    topic_name: str = wire("string")
    partitions: tuple[AlterReplicaLogDirPartitionResult, ...] = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterReplicaLogDirsResponse(Message):
    """The results of all partitions."""

    API_KEY: ClassVar[int] = 34
    throttle_time_ms: int = wire("int32", default=0)
    results: tuple[AlterReplicaLogDirTopicResult, ...] = wire()
