"""The DescribeLogDirs messages (KIP-113, KIP-784, KIP-827): the log directories of a broker and
their contents.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.quorum.protocol.field_bounds import PARTITIONS, TOPIC_NAME, TOPICS
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
